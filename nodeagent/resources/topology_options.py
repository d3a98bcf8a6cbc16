"""What the topology manager is set to: policy, scope, options, and whether this machine suits them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from nodeagent.hardware.topology import NumaNode
from nodeagent.resources.errors import OptionError
from nodeagent.resources.options import parse_bool

PREFER_CLOSEST = "prefer-closest-numa-nodes"
MAX_NODES = "max-allowable-numa-nodes"
DEFAULT_MAX_NODES = 8


class Policy(StrEnum):
    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"


class Scope(StrEnum):
    CONTAINER = "container"
    POD = "pod"


@dataclass(frozen=True, slots=True)
class TopologySettings:
    """Checked settings. With policy none the rest means nothing."""

    policy: Policy = Policy.NONE
    scope: Scope = Scope.CONTAINER
    prefer_closest: bool = False


def parse_topology_settings(
    policy: str, scope: str, options: Mapping[str, str], nodes: tuple[NumaNode, ...]
) -> TopologySettings:
    """Check the configuration against a machine with `nodes`. Raises OptionError."""
    if policy == Policy.NONE:
        return TopologySettings()
    prefer_closest, most_nodes = _parse_options(options)
    if prefer_closest and not all(node.distances for node in nodes):
        raise OptionError("cannot discover NUMA topology: error getting NUMA distances from cadvisor")
    if len(nodes) > most_nodes:
        raise OptionError(f"unsupported on machines with more than {most_nodes} NUMA Nodes")
    if policy not in set(Policy):
        raise OptionError(f'unknown policy: "{policy}"')
    if scope not in set(Scope):
        raise OptionError(f'unknown scope: "{scope}"')
    return TopologySettings(Policy(policy), Scope(scope), prefer_closest)


def _parse_options(options: Mapping[str, str]) -> tuple[bool, int]:
    prefer_closest, most_nodes = False, DEFAULT_MAX_NODES
    for name, value in options.items():
        if name == PREFER_CLOSEST:
            prefer_closest = parse_bool(name, value)
        elif name == MAX_NODES:
            if not re.fullmatch(r"[+-]?[0-9]{1,18}", value):
                raise OptionError(
                    f'unable to convert policy option to integer "{name}": '
                    f'strconv.Atoi: parsing "{value}": invalid syntax'
                )
            most_nodes = int(value)
            if most_nodes < DEFAULT_MAX_NODES:
                raise OptionError(
                    f'the minimum value of "{name}" should not be less than {DEFAULT_MAX_NODES}'
                )
        else:
            raise OptionError(f'unknown Topology Manager Policy option: "{name}"')
    return prefer_closest, most_nodes
