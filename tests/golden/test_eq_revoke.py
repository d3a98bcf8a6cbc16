"""Which pods must give back what their group was lent, against Koordinator (eq_revoke.json)."""

import pytest

from tests.golden import bugs
from tests.golden.elastic_quotas import Case
from tests.golden.eq_cases import FAULTS, check_sequence


@pytest.mark.golden("eq_revoke.json", "cases")
def test_revoke(case: Case) -> None:
    bugs.check(case, check_sequence, FAULTS)
