"""What can go wrong with the tree, each with the words an operator needs."""

import errno
import os


class CgroupError(Exception):
    """The tree could not be brought to its desired state."""


class InvalidName(ValueError):
    """A UID, an id or a path that may not become part of a cgroup path."""


class WriteRefused(CgroupError):
    """The kernel refused a value."""

    def __init__(self, path: str, file: str, value: str, error: int) -> None:
        self.path, self.file, self.value, self.errno = path, file, value, error
        super().__init__(f"{path or '/'}/{file}: the kernel refused {value!r}: {_reason(error)}")


class MissingController(CgroupError):
    """A controller that is needed is not offered."""

    def __init__(self, controller: str, looked_in: str) -> None:
        self.controller, self.looked_in = controller, looked_in
        super().__init__(
            f"cgroup controller {controller!r} is missing from {looked_in}: boot with "
            "systemd.unified_cgroup_hierarchy=1 and without cgroup_disable=, on a kernel that has it"
        )


class NoSuchCgroup(CgroupError):
    """A cgroup that should have been there."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"cgroup {path} is not there: something else removed it, or it was never made")


class StuckCgroup(CgroupError):
    """A cgroup that could not be removed, with the processes that hold it."""

    def __init__(self, path: str, pids: tuple[int, ...]) -> None:
        self.path, self.pids = path, pids
        held = f"processes {', '.join(map(str, pids))} do not end" if pids else "it stays busy"
        super().__init__(f"cannot remove cgroup {path}: {held}")


class UnitFailed(CgroupError):
    """systemd refused or failed a job, or did not answer in time."""

    def __init__(self, unit: str, action: str, result: str) -> None:
        self.unit, self.action, self.result = unit, action, result
        super().__init__(f"systemd did not {action} {unit}: {result}")


class UnitExists(UnitFailed):
    """The name is taken by a unit that is loaded."""


class NoSuchUnit(UnitFailed):
    """The unit is not loaded: never made, or gone already."""


def _reason(error: int) -> str:
    hints = {
        errno.EBUSY: "a cgroup can hold processes, or hand controllers to its children, not both",
        errno.ENOENT: "the controller is not enabled in the parent's cgroup.subtree_control",
        errno.EINVAL: "not a value the kernel accepts here",
    }
    return f"{os.strerror(error)}" + (f" ({hints[error]})" if error in hints else "")
