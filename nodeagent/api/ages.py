"""How long ago something was, as kubectl says it."""

from datetime import datetime

from nodeagent.api.meta import parse_time

UNKNOWN = "<unknown>"

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def age(since: datetime | None, now: datetime) -> str:
    """Return how long ago a moment was, in the two units that matter."""
    if since is None:
        return UNKNOWN
    return human_duration((now - since).total_seconds())


def human_duration(seconds: float) -> str:
    """Return a length of time with as much detail as people read: 119s, 5m30s, 2h, 3d4h."""
    whole = max(int(seconds), 0)
    if seconds < -1:
        return "<invalid>"
    for below, unit, minor in (
        (2 * _MINUTE, (1, "s"), None),
        (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
        (3 * _HOUR, (_MINUTE, "m"), None),
        (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
        (2 * _DAY, (_HOUR, "h"), None),
        (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
        (2 * _YEAR, (_DAY, "d"), None),
        (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
    ):
        if whole < below:
            size, name = unit
            rest = whole % size // minor[0] if minor else 0
            return f"{whole // size}{name}" + (f"{rest}{minor[1]}" if minor and rest else "")
    return f"{whole // _YEAR}y"


def moment(text: str | None) -> datetime | None:
    """A time stamp as a moment; None for none and for one that is no time."""
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None
