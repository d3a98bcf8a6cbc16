"""What pods use as wholes, read on descriptors that stay open: for a decision that cannot wait."""

from collections.abc import Collection
from dataclasses import dataclass

from nodeagent.cgroup.files import CgroupTree
from nodeagent.stats.kept_file import KeptFile, parse_number, value_of
from nodeagent.stats.summary import MemoryStats, PodReference, PodStats, ProcessStats


@dataclass(frozen=True, slots=True)
class _PodFiles:
    usage: KeptFile
    stat: KeptFile
    tasks: KeptFile

    def close(self) -> None:
        for file in (self.usage, self.stat, self.tasks):
            file.close()


class PodUsageReader:
    """Reads memory and tasks of pods; holds three descriptors a pod."""

    def __init__(self, tree: CgroupTree) -> None:
        self._tree = tree
        self._pods: dict[str, _PodFiles] = {}

    def read(self, reference: PodReference, path: str) -> PodStats | None:
        """Measure the pod whose cgroup is at `path`; None if its memory is unknown."""
        files = self._pods.get(path)
        if files is None:
            files = self._pods[path] = _PodFiles(
                *(self._file(path, name) for name in ("memory.current", "memory.stat", "pids.current"))
            )
        usage = parse_number(files.usage.read())
        inactive_file = value_of(files.stat.read(), b"\ninactive_file ")
        if usage is None or inactive_file is None:
            return None
        return PodStats(
            pod_ref=reference,
            memory=MemoryStats(usage_bytes=usage, working_set_bytes=max(usage - inactive_file, 0)),
            process_stats=ProcessStats(process_count=parse_number(files.tasks.read())),
        )

    def keep_only(self, paths: Collection[str]) -> None:
        """Give back the descriptors of all other pods."""
        for path in [path for path in self._pods if path not in paths]:
            self._pods.pop(path).close()

    def _file(self, path: str, name: str) -> KeptFile:
        return KeptFile(lambda: self._tree.open(path, name))
