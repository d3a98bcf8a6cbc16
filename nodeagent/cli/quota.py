"""`nodeagent quota tree`: the groups that share the node, what each may use, and who lends to whom."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from nodeagent.api.quantity import ZERO, Quantity
from nodeagent.cli.client import AgentClient
from nodeagent.cli.common import add_output_option, print_data
from nodeagent.cli.get import add_server_options
from nodeagent.cli.table import columns

HELP = "show the elastic quota groups: min, max, used, asked for, usable now, lent, borrowed"
EXAMPLES = """
  nodeagent quota tree
  nodeagent quota tree -o json

MAY USE is what a group may use just now (its runtime quota). LENT is what is guaranteed to it and in use by
others, BORROWED what it uses beyond what is guaranteed.
"""
UNSET = "-"
_FIELDS = ("min", "max", "used", "request", "runtime")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("tree",), metavar="tree")
    add_output_option(parser, "json", "yaml")
    add_server_options(parser)


def run(arguments: argparse.Namespace) -> int:
    groups = AgentClient(arguments.server).get("apis", "v1", "plugins", "ElasticQuota", "quotas")
    if arguments.output in ("json", "yaml"):
        print_data([_as_data(group) for group, _ in _in_order(groups)], arguments.output)
    else:
        print(quota_table(groups))
    return 0


def quota_table(groups: Mapping[str, Any]) -> str:
    """One row a group and resource, children below their parents."""
    rows = []
    for group, depth in _in_order(groups):
        for place, resource in enumerate(_resources(group)):
            name = "  " * depth + str(group["name"]) if place == 0 else ""
            figures = [group[field].get(resource, UNSET) for field in _FIELDS]
            lent, borrowed = lent_and_borrowed(group, resource)
            rows.append([name, resource, *figures, _text(lent), _text(borrowed)])
    return columns(["GROUP", "RESOURCE", "MIN", "MAX", "USED", "ASKED", "MAY USE", "LENT", "BORROWED"], rows)


def lent_and_borrowed(group: Mapping[str, Any], resource: str) -> tuple[Quantity, Quantity]:
    """What a group gives of its minimum to others just now, and what it uses beyond it."""
    least, usable, used = (
        Quantity.parse(group[field][resource]) if resource in group[field] else ZERO
        for field in ("autoScaleMin", "runtime", "used")
    )
    return max(least - usable, ZERO), max(used - least, ZERO)


def _in_order(groups: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Yield every group with its depth, parents first, names in order."""
    below: dict[str, list[str]] = {}
    for name in sorted(groups):
        parent = str(groups[name]["parentName"])
        below.setdefault(parent if parent in groups else "", []).append(name)
    pending = [(name, 0) for name in reversed(below.get("", []))]
    while pending:
        name, depth = pending.pop()
        yield groups[name], depth
        pending += [(child, depth + 1) for child in reversed(below.get(name, []))]


def _resources(group: Mapping[str, Any]) -> list[str]:
    return sorted({*group["max"], *group["used"]}) or [UNSET]


def _as_data(group: Mapping[str, Any]) -> dict[str, Any]:
    pairs = {resource: lent_and_borrowed(group, resource) for resource in _resources(group)}
    lent = {resource: str(pair[0]) for resource, pair in pairs.items() if pair[0]}
    borrowed = {resource: str(pair[1]) for resource, pair in pairs.items() if pair[1]}
    return {**group, "lent": lent, "borrowed": borrowed}


def _text(amount: Quantity) -> str:
    return str(amount) if amount else UNSET
