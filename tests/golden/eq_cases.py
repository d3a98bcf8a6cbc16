"""How a case of the elastic quota files is held to what was measured, operation by operation."""

import re
from collections.abc import Callable
from typing import Any

from tests.golden.bugs import Check
from tests.golden.elastic_quotas import Case, Player, as_numbers

# Where the words of Go's JSON decoder begin, which are not ours to repeat.
GO_JSON = re.compile(
    r"json: |invalid character|unexpected end of JSON|quantities must match|unable to parse quantity"
)


def check_sequence(case: Case, player: Player | None = None) -> None:
    """Play a case and compare each result; where the original was at fault, with what is right."""
    player = player or Player(case)
    wanted = {**case["expect"], **case.get("ours", {})}
    for index, operation in enumerate(case["ops"]):
        result = player.play(operation)
        expected = wanted.get(str(index))
        if expected is not None:
            compare = COMPARE.get(operation["op"], _compare_exactly)
            compare(player, operation, result, expected)


def _compare_exactly(player: Player, operation: Case, result: Any, expected: Any) -> None:
    assert result == expected, operation


def _compare_dump(player: Player, operation: Case, result: Case, expected: Case) -> None:
    for name, group in expected["quotas"].items():
        assert as_numbers(result["quotas"].get(name)) == as_numbers(group), name


def _compare_totals(player: Player, operation: Case, result: Case, expected: Case) -> None:
    for tree, totals in expected["trees"].items():
        for name, amounts in totals.items():
            nonzero = {key: number for key, number in amounts.items() if number}
            assert {k: v for k, v in result["trees"][tree][name].items() if v} == nonzero, (tree, name)


def _compare_refresh(player: Player, operation: Case, result: Case, expected: Case) -> None:
    for name, returned in expected["returned"].items():
        found = {key: number for key, number in result["returned"][name].items() if number}
        assert found == {key: number for key, number in returned.items() if number}, name


def _compare_schedule(player: Player, operation: Case, result: Case, expected: Case) -> None:
    """Ours is always settled; what follows in the case goes by the original's own answer."""
    settled = expected.get("ifAllRefreshedBefore", expected)
    assert (result["code"], result["message"]) == (settled["code"], settled["message"]), operation
    if result["code"] != expected["code"]:
        player.quotas.reserve(operation["pod"], is_assigned=expected["code"] == "Success")


def _compare_debug(player: Player, operation: Case, result: Case, expected: Case) -> None:
    assert result["found"] == expected["found"]
    if not expected["found"]:
        return
    assert result["body"].keys() == expected["body"].keys()
    for name, value in expected["body"].items():
        assert result["body"][name] == (value if value is not None else {}), name


def _compare_status(player: Player, operation: Case, result: Case, expected: Case) -> None:
    """null and an absent quota both say that nothing changes."""
    for name in operation["quotas"]:
        assert result["annotations"].get(name) == expected["annotations"].get(name), name


def _compare_topology(player: Player, operation: Case, result: Case, expected: Case) -> None:
    """A map that was left out and one that was given empty are the same to us."""
    ours, theirs = result["topology"], expected["topology"]
    assert ours["quotaHierarchyInfo"] == theirs["quotaHierarchyInfo"]
    assert ours["quotaInfoMap"].keys() == theirs["quotaInfoMap"].keys()
    for name, group in theirs["quotaInfoMap"].items():
        assert ours["quotaInfoMap"][name] == {
            **group,
            "max": group["max"] or None,
            "min": group["min"] or None,
        }


def _compare_answer(player: Player, operation: Case, result: Case, expected: Case) -> None:
    assert result["allowed"] == expected["allowed"], (operation, result)
    if "object" in expected:
        assert result["object"] == {name: each for name, each in expected["object"].items() if each}
    for name in ("affinityInjected", "requiredNodeSelectorTerms"):
        assert result.get(name) == expected.get(name) or "affinityInjected" not in expected
    if expected["allowed"]:
        return
    assert result["stage"] == expected["stage"]
    if "anyOf" in expected:
        assert result["message"] in expected["anyOf"]
    elif "message" in expected:
        said_by_us = GO_JSON.split(expected["message"])[0]
        compared = (
            result["message"][: len(said_by_us)] if said_by_us != expected["message"] else result["message"]
        )
        assert compared == said_by_us


def _ignore(player: Player, operation: Case, result: Any, expected: Any) -> None:
    """Numbers for information."""


COMPARE: dict[str, Callable[[Player, Case, Any, Any], None]] = {
    "dump": _compare_dump,
    "dump_totals": _compare_totals,
    "refresh": _compare_refresh,
    "refresh_all": _ignore,
    "schedule": _compare_schedule,
    "debug": _compare_debug,
    "status": _compare_status,
    "topology": _compare_topology,
    **dict.fromkeys(("create", "update", "delete", "pod_create", "pod_update"), _compare_answer),
}

FAULTS: dict[str, Check] = {
    "the answer depends on the order of refreshing": check_sequence,
    "usage of the system and default quotas is taken twice": check_sequence,
    "deleting or moving a group subtracts more": check_sequence,
    "a group that lends nothing counts 0": check_sequence,
    "revoking forgets amounts": check_sequence,
    "the call ends in an error at a pod that fails both tests": check_sequence,
    "a victim of the quota test alone": check_sequence,
    "accepts a group that is its own ancestor": check_sequence,
    "an update that is let through unchecked": check_sequence,
    "creating the root quota forgets its children": check_sequence,
}
