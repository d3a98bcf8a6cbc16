"""Which pods a quota lets in, with its words and figures, against Koordinator (eq_admission.json)."""

import pytest

from tests.golden import bugs
from tests.golden.elastic_quotas import Case
from tests.golden.eq_cases import FAULTS, check_sequence


@pytest.mark.golden("eq_admission.json", "cases")
def test_admission(case: Case) -> None:
    bugs.check(case, check_sequence, FAULTS)
