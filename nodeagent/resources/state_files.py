"""State files in an operator's hands: does one suit this machine and configuration, and putting it aside."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from nodeagent.hardware.topology import Topology
from nodeagent.resources import cpu_checkpoint, device_manager, memory_checkpoint, startup
from nodeagent.resources.checkpoint import StateFile, StateProblem, sync_directory
from nodeagent.resources.settings import ManagerSettings

FILES = {
    "cpu": cpu_checkpoint.FILE_NAME,
    "memory": memory_checkpoint.FILE_NAME,
    "device": device_manager.FILE_NAME,
}
"""Manager -> the name of its file in the state directory."""


class _Untouched(StateFile):
    """Read as the agent reads it, and never written."""

    def write(self, content: Callable[[], bytes]) -> bool:
        return False


def state_problem(
    manager: str, path: Path, settings: ManagerSettings, topology: Topology
) -> StateProblem | None:
    """Return why an agent would not take a file up, None where it would. Raises OptionError."""
    file = _Untouched(path, manager)
    match manager:
        case "cpu":
            startup.cpu_manager(settings, topology, file, ())
        case "memory":
            startup.memory_manager(settings, topology, file)
        case _:
            startup.device_manager(settings, topology, file)
    return file.problem


def put_aside(path: Path, now: datetime) -> Path:
    """Give a file another name beside its own, and return that; done when this returns. Raises OSError.

    A running agent writes a new file from what its pods hold, at its next reconcile.
    """
    aside = path.with_name(f"{path.name}.{now:%Y%m%dT%H%M%S.%fZ}")
    path.rename(aside)
    sync_directory(path.parent)
    return aside
