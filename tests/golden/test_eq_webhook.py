"""Which quota groups and pods may exist, in Koordinator's words (eq_webhook.json)."""

import pytest

from tests.golden import bugs
from tests.golden.elastic_quotas import Case, WebhookPlayer
from tests.golden.eq_cases import FAULTS, check_sequence


@pytest.mark.golden("eq_webhook.json", "cases")
def test_webhook(case: Case) -> None:
    def play(case: Case) -> None:
        check_sequence(case, WebhookPlayer(case))

    bugs.check(case, play, dict.fromkeys(FAULTS, play))
