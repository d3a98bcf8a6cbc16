"""The static CPU policy's options: names, gates, values, and which cannot go together."""

from collections.abc import Mapping
from dataclasses import dataclass

from nodeagent.hardware.topology import Topology
from nodeagent.resources.errors import OptionError
from nodeagent.resources.options import parse_bool

FULL_PCPUS_ONLY = "full-pcpus-only"
DISTRIBUTE_ACROSS_NUMA = "distribute-cpus-across-numa"
ALIGN_BY_SOCKET = "align-by-socket"
DISTRIBUTE_ACROSS_CORES = "distribute-cpus-across-cores"
STRICT_RESERVATION = "strict-cpu-reservation"
PREFER_ALIGN_BY_UNCORE = "prefer-align-cpus-by-uncorecache"

STABLE = (FULL_PCPUS_ONLY, STRICT_RESERVATION, PREFER_ALIGN_BY_UNCORE)
BETA = (DISTRIBUTE_ACROSS_NUMA,)
ALPHA = (ALIGN_BY_SOCKET, DISTRIBUTE_ACROSS_CORES)

NOT_TOGETHER = (
    (FULL_PCPUS_ONLY, DISTRIBUTE_ACROSS_CORES),
    (DISTRIBUTE_ACROSS_NUMA, DISTRIBUTE_ACROSS_CORES),
    (PREFER_ALIGN_BY_UNCORE, DISTRIBUTE_ACROSS_CORES),
    (PREFER_ALIGN_BY_UNCORE, DISTRIBUTE_ACROSS_NUMA),
)


@dataclass(frozen=True, slots=True)
class CpuPolicyOptions:
    """The options by their names in the configuration, `-` as `_`."""

    full_pcpus_only: bool = False
    distribute_cpus_across_numa: bool = False
    align_by_socket: bool = False
    distribute_cpus_across_cores: bool = False
    strict_cpu_reservation: bool = False
    prefer_align_cpus_by_uncorecache: bool = False


def parse_cpu_options(
    options: Mapping[str, str], *, alpha: bool = False, beta: bool = True
) -> CpuPolicyOptions:
    """Read the configuration's options. Raises OptionError. An option set to false needs its gate too."""
    parsed: dict[str, bool] = {}
    for name, value in options.items():
        if name in ALPHA and not alpha:
            raise OptionError(
                f'CPU Manager Policy Alpha-level Options not enabled, but option "{name}" provided'
            )
        if name in BETA and not beta:
            raise OptionError(
                f'CPU Manager Policy Beta-level Options not enabled, but option "{name}" provided'
            )
        if name not in STABLE + BETA + ALPHA:
            raise OptionError(f'unknown CPU Manager Policy option: "{name}"')
        parsed[name] = parse_bool(name, value)
    for first, second in NOT_TOGETHER:
        if parsed.get(first) and parsed.get(second):
            raise OptionError(f"static policy options {first} and {second} can not be used at the same time")
    return CpuPolicyOptions(**{name.replace("-", "_"): value for name, value in parsed.items()})


def check_against_machine(options: CpuPolicyOptions, topology: Topology, topology_policy: str) -> None:
    """Raise OptionError where the machine or the topology policy makes an option meaningless."""
    if not options.align_by_socket:
        return
    if topology_policy == "single-numa-node":
        # Spelt as kubelet spells it, because people search for the message.
        raise OptionError(
            "Topolgy manager single-numa-node policy is incompatible with "
            "CPUManager align-by-socket policy option"
        )
    if len(topology.sockets) > len(topology.numas):
        raise OptionError(
            "Align by socket is not compatible with hardware where "
            "number of sockets are more than number of NUMA"
        )
