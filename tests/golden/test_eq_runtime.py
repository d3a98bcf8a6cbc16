"""What each quota group may use, against Koordinator's own figures (eq_runtime.json)."""

from typing import Any

import pytest

from nodeagent.admission.elastic_quota.amounts import in_units
from nodeagent.admission.elastic_quota.runtime import Share, redistribute, scaled_minimums
from tests.golden import bugs
from tests.golden.elastic_quotas import Case, amounts
from tests.golden.eq_cases import FAULTS, check_sequence


@pytest.mark.golden("eq_runtime.json", "cases")
def test_runtime(case: Case) -> None:
    checks: dict[str, Any] = {"redistribute": _redistribute, "scale_min": _scale_min, "tree": check_sequence}
    bugs.check(case, checks.get(case.get("kind", ""), check_sequence), FAULTS)


def _redistribute(case: Case) -> None:
    shares = [
        Share(
            node["name"],
            node["sharedWeight"],
            node["request"],
            node["min"],
            node["guarantee"],
            node["allowLentResource"],
        )
        for node in case["nodes"]
    ]
    assert redistribute(case["total"], shares) == case["expect"]


def _scale_min(case: Case) -> None:
    minimums = {child["name"]: in_units(amounts(child["min"])) for child in case["children"]}
    scaling = [child["name"] for child in case["children"] if child["enableScale"]]
    fixed = [minimums[child["name"]] for child in case["children"] if not child["enableScale"]]
    scaled = scaled_minimums(in_units(amounts(case["total"])), [minimums[name] for name in scaling], fixed)
    found = {name: minimums[name] | smaller for name, smaller in zip(scaling, scaled, strict=True)}
    for name, expected in case["expect"].items():
        assert (name in found) == expected["apply"]
        if expected["apply"]:
            want = in_units(amounts(expected["autoScaleMin"]))
            assert {k: v for k, v in found[name].items() if v} == {k: v for k, v in want.items() if v}
