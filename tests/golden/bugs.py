"""One rule for the cases in which the real system was at fault (`bug`, `ours`, `bug_op`)."""

from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[dict[str, Any]], None]


def check(case: dict[str, Any], exact: Check, faults: Mapping[str, Check]) -> None:
    """Hold a sound case to what was measured, and a faulty one to what its fault's own check demands.

    `faults` maps the beginning of a `bug` text to the check of that kind of fault. A fault that nobody
    wrote a check for fails, so that new data cannot pass unread.
    """
    if "bug" not in case:
        exact(case)
        return
    for beginning, fault_check in faults.items():
        if case["bug"].startswith(beginning):
            fault_check(case)
            return
    raise AssertionError(f"no check for this fault of the original: {case['bug']}")
