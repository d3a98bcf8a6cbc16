"""Whom of its own group a pod displaces, against Koordinator (eq_preempt.json)."""

import pytest

from tests.golden import bugs
from tests.golden.elastic_quotas import Case
from tests.golden.eq_cases import FAULTS, check_sequence


@pytest.mark.golden("eq_preempt.json", "cases")
def test_preempt(case: Case) -> None:
    bugs.check(case, check_sequence, FAULTS)
