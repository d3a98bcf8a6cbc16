"""Quota trees of node pools: profiles, groups and pods together, against Koordinator (eq_trees.json)."""

import pytest

from tests.golden import bugs
from tests.golden.elastic_quotas import Case
from tests.golden.eq_cases import FAULTS, check_sequence


@pytest.mark.golden("eq_trees.json", "cases")
def test_trees(case: Case) -> None:
    bugs.check(case, check_sequence, FAULTS)
