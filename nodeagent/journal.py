"""Where log records go: the journal with its fields under systemd, plain lines on stderr elsewhere.

What a record's `extra` holds under upper-case names (POD_NAME, POD_NAMESPACE, POD_UID, CONTAINER_NAME, ...)
becomes fields of its journal entry: `journalctl -u nodeagent POD_NAME=web`.
"""

import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import TextIO

IDENTIFIER = "nodeagent"
# syslog's severities, least urgent first.
_PRIORITIES = ((logging.DEBUG, 7), (logging.INFO, 6), (logging.WARNING, 4), (logging.ERROR, 3))
_CRITICAL = 2


def configure_logging(
    level: int = logging.INFO, *, environment: Mapping[str, str] = os.environ, stream: TextIO = sys.stderr
) -> None:
    """Send all records from `level` up to the journal if the stream leads there, else to the stream."""
    handler: logging.Handler
    if is_journal(environment.get("JOURNAL_STREAM", ""), stream):
        import systemd.journal

        handler = JournalHandler(systemd.journal.send)
    else:
        handler = logging.StreamHandler(stream)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)


def is_journal(journal_stream: str, stream: TextIO) -> bool:
    """Whether the stream is the one that systemd connected to the journal; it may be redirected."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return journal_stream == f"{status.st_dev}:{status.st_ino}"


class JournalHandler(logging.Handler):
    """Sends a record as one journal entry, with its fields."""

    def __init__(self, send: Callable[..., object]) -> None:
        super().__init__()
        self._send = send
        # Level and logger are fields; basicConfig would put them into the text as well.
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        fields = {name: str(value) for name, value in vars(record).items() if name.isupper()}
        try:
            self._send(
                self.format(record),
                PRIORITY=str(_priority(record.levelno)),
                SYSLOG_IDENTIFIER=IDENTIFIER,
                LOGGER=record.name,
                CODE_FILE=record.pathname,
                CODE_LINE=record.lineno,
                CODE_FUNC=record.funcName,
                **fields,
            )
        except OSError:
            self.handleError(record)


def _priority(level: int) -> int:
    return next((priority for bound, priority in _PRIORITIES if level <= bound), _CRITICAL)
