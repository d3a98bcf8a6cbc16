"""What of a container's log is wanted: PodLogOptions (core/v1), as a query says it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from nodeagent.api.meta import format_time, parse_time

_TRUE, _FALSE = ("true", "True", "1", "t"), ("false", "False", "0", "f", "")
_KNOWN = frozenset(
    (
        *("container", "follow", "previous", "sinceSeconds", "sinceTime", "timestamps", "tailLines"),
        *("limitBytes", "insecureSkipTLSVerifyBackend", "pretty", "stream"),
    )
)


class InvalidLogOptions(ValueError):
    """A query that asks for nothing that there is; the text says what was expected."""


@dataclass(frozen=True, slots=True)
class PodLogOptions:
    """`since` is RFC 3339 text in UTC; None is no bound."""

    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: str | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None


def parse_log_options(query: Mapping[str, str], now: datetime) -> PodLogOptions:
    """Read a query; raises InvalidLogOptions."""
    unknown = sorted(query.keys() - _KNOWN)
    if unknown:
        raise InvalidLogOptions(f"{unknown[0]}: expected one of {', '.join(sorted(_KNOWN))}")
    if "sinceSeconds" in query and "sinceTime" in query:
        raise InvalidLogOptions("at most one of `sinceTime` or `sinceSeconds` may be specified")
    if query.get("stream", "All") not in ("All", ""):
        raise InvalidLogOptions(
            f"stream {query['stream']!r}: this node only gives both streams together: All"
        )
    since = None
    if seconds := _number(query, "sinceSeconds", 1):
        since = format_time(now - timedelta(seconds=min(seconds, 10**9)))
    elif "sinceTime" in query:
        try:
            since = format_time(parse_time(query["sinceTime"]))
        except ValueError as error:
            raise InvalidLogOptions(f"sinceTime: {error}") from error
    return PodLogOptions(
        container=query.get("container", ""),
        follow=_flag(query, "follow"),
        previous=_flag(query, "previous"),
        timestamps=_flag(query, "timestamps"),
        since=since,
        tail_lines=_number(query, "tailLines", 0),
        limit_bytes=_number(query, "limitBytes", 1),
    )


def _flag(query: Mapping[str, str], name: str) -> bool:
    text = query.get(name, "")
    if text not in (*_TRUE, *_FALSE):
        raise InvalidLogOptions(f"{name} {text!r}: expected true or false")
    return text in _TRUE


def _number(query: Mapping[str, str], name: str, least: int) -> int | None:
    text = query.get(name)
    if text is None or (name == "tailLines" and text == "-1"):
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 18 or int(text) < least:
        words = "greater than 0" if least else "greater than or equal to 0"
        raise InvalidLogOptions(f"{name}: Invalid value: {text!r}: must be {words}")
    return int(text)
