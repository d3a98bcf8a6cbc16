"""A directory that behaves like a cgroup v2 mount, as far as the drivers can tell."""

import errno
from pathlib import Path

from nodeagent.cgroup.errors import WriteRefused
from nodeagent.cgroup.files import CgroupTree

CONTROLLERS = "cpuset cpu io memory hugetlb pids rdma misc"
DEFAULTS = {
    "cpu": {"cpu.weight": "100", "cpu.max": "max 100000"},
    "cpuset": {"cpuset.cpus": "", "cpuset.mems": ""},
    "memory": {
        "memory.current": "0",
        "memory.min": "0",
        "memory.low": "0",
        "memory.high": "max",
        "memory.max": "max",
        "memory.swap.max": "max",
        "memory.oom.group": "0",
    },
    "pids": {"pids.max": "max"},
    "hugetlb": {"hugetlb.2MB.max": "max"},
}


class FakeTree(CgroupTree):
    """Interface files come with a cgroup and its controllers; processes are numbers in cgroup.procs.

    `unkillable` processes survive cgroup.kill; `writes` is what was written, in order.
    """

    def __init__(self, root: Path, controllers: str = CONTROLLERS) -> None:
        super().__init__(root)
        self.unkillable: set[int] = set()
        self.writes: list[tuple[str, str, str]] = []
        self._fill("", controllers)

    def create(self, path: str) -> None:
        if self.exists(path):
            return
        super().create(path)
        parent = path.rpartition("/")[0]
        self._fill(path, self.read(parent, "cgroup.subtree_control") or "")

    def remove(self, path: str) -> bool:
        if not self.exists(path):
            return True
        if self.children(path) or self.processes(path):
            return False
        for file in (self.root / path).iterdir():
            file.unlink()
        return super().remove(path)

    def write(self, path: str, file: str, value: str) -> None:
        self.writes.append((path, file, value))
        if file == "cgroup.subtree_control":
            self._enable(path, {word.removeprefix("+") for word in value.split()})
        elif file == "cgroup.procs":
            self._move(path, value)
        elif file == "cgroup.kill" and self.exists(path):
            for each in (*self.descendants(path), path):
                left = self.unkillable.intersection(self.processes(each))
                self._put(each, "cgroup.procs", "".join(f"{pid}\n" for pid in left))
            self._tell_populated()
        else:
            super().write(path, file, value)
            self._put(path, file, value + "\n")

    def _fill(self, path: str, controllers: str) -> None:
        files = {"cgroup.controllers": controllers, "cgroup.subtree_control": "", "cgroup.procs": ""}
        files |= {"cgroup.events": "populated 0\nfrozen 0\n"} if path else {}
        for controller in controllers.split() if path else ():
            files |= DEFAULTS.get(controller, {})
        for file, text in files.items():
            self._put(path, file, text)

    def _enable(self, path: str, wanted: set[str]) -> None:
        """All or none, as the kernel does."""
        if self.processes(path) and path:
            raise WriteRefused(path, "cgroup.subtree_control", str(wanted), errno.EBUSY)
        if not wanted <= self.controllers(path):
            raise WriteRefused(path, "cgroup.subtree_control", str(wanted), errno.ENOENT)
        added = wanted - self.enabled(path)
        enabled = " ".join(sorted(self.enabled(path) | wanted))
        self._put(path, "cgroup.subtree_control", enabled)
        for child in self.children(path):
            self._put(child, "cgroup.controllers", enabled)
            for controller in added:
                for file, text in DEFAULTS.get(controller, {}).items():
                    self._put(child, file, text)

    def _move(self, path: str, pid: str) -> None:
        if self.enabled(path) and path:
            raise WriteRefused(path, "cgroup.procs", pid, errno.EBUSY)
        self._put(path, "cgroup.procs", (self.read(path, "cgroup.procs") or "") + f"\n{pid}\n")
        self._tell_populated()

    def _tell_populated(self) -> None:
        for each in self.descendants(""):
            populated = int(bool(self.processes_below(each)))
            self._put(each, "cgroup.events", f"populated {populated}\nfrozen 0\n")

    def _put(self, path: str, file: str, text: str) -> None:
        (self.root / path / file).write_text(text)
