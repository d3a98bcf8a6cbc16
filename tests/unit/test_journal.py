"""Log records reach the journal with their fields, and stderr as lines elsewhere."""

import io
import logging
import os
import tempfile
from collections.abc import Iterator

import pytest

from nodeagent.journal import JournalHandler, configure_logging, is_journal


@pytest.fixture(autouse=True)
def untouched_root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


class Journal:
    def __init__(self) -> None:
        self.entries: list[dict[str, str]] = []

    def send(self, message: str, *, CODE_LINE: int, **fields: str) -> None:
        # systemd-python wants this one field as a number.
        self.entries.append({"MESSAGE": message, "CODE_LINE": f"{CODE_LINE:d}", **fields})


def logger_to(journal: Journal) -> logging.Logger:
    logger = logging.Logger("nodeagent.pods")
    logger.addHandler(JournalHandler(journal.send))
    return logger


def test_fields_of_the_pod_become_fields_of_the_entry() -> None:
    journal = Journal()
    logger_to(journal).warning(
        "%s restarts", "web", extra={"POD_NAME": "web", "POD_UID": "u1", "RESTARTS": 3}
    )
    (entry,) = journal.entries
    assert entry["MESSAGE"] == "web restarts"
    assert (entry["POD_NAME"], entry["POD_UID"], entry["RESTARTS"]) == ("web", "u1", "3")
    assert (entry["SYSLOG_IDENTIFIER"], entry["LOGGER"]) == ("nodeagent", "nodeagent.pods")
    assert entry["CODE_FILE"].endswith("test_journal.py")


@pytest.mark.parametrize(
    ("level", "priority"),
    [(logging.DEBUG, "7"), (logging.INFO, "6"), (logging.WARNING, "4"), (logging.ERROR, "3"), (50, "2")],
)
def test_levels_are_syslog_priorities(level: int, priority: str) -> None:
    journal = Journal()
    logger_to(journal).log(level, "text")
    assert journal.entries[0]["PRIORITY"] == priority


def test_an_exception_is_part_of_the_message() -> None:
    journal = Journal()
    try:
        raise KeyError("lost")
    except KeyError:
        logger_to(journal).exception("worker failed")
    assert "KeyError: 'lost'" in journal.entries[0]["MESSAGE"]


def test_a_silent_journal_does_not_stop_the_agent(capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(message: str, **fields: str) -> None:
        raise ConnectionRefusedError(message)

    logger = logging.Logger("nodeagent")
    logger.addHandler(JournalHandler(refuse))
    logger.info("text")
    assert "ConnectionRefusedError" in capsys.readouterr().err


def test_the_stream_is_the_journal_only_while_it_leads_there() -> None:
    with tempfile.TemporaryFile("w") as stream:
        status = os.fstat(stream.fileno())
        assert is_journal(f"{status.st_dev}:{status.st_ino}", stream)
        assert not is_journal(f"{status.st_dev}:{status.st_ino + 1}", stream)
        assert not is_journal("", stream)
    assert not is_journal("8:1", io.StringIO())


def test_without_a_journal_records_are_lines_on_the_stream() -> None:
    stream = io.StringIO()
    configure_logging(environment={}, stream=stream)
    logging.getLogger("nodeagent.pods").info("web runs", extra={"POD_NAME": "web"})
    logging.getLogger("nodeagent.pods").debug("unheard")
    assert stream.getvalue().endswith("INFO nodeagent.pods: web runs\n")
