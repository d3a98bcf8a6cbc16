"""Which CPUs a pod's containers may run on, read from the live tree."""

from pathlib import Path

from nodeagent.api.pod import Pod
from nodeagent.api.qos import qos_class
from nodeagent.cgroup.errors import CgroupError
from nodeagent.cgroup.files import CgroupTree
from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.cli.table import NONE
from nodeagent.hardware.cpuset import CpuSet

CGROUP_ROOT = Path("/sys/fs/cgroup")


class CpuLookup:
    """CPUs by pod; `<none>` where the tree is not this machine's or shows nothing."""

    def __init__(self, root: Path = CGROUP_ROOT, layout: CgroupLayout | None = None) -> None:
        self._layout = layout or CgroupLayout()
        try:
            self._tree: CgroupTree | None = CgroupTree(root)
        except OSError:
            self._tree = None

    def cpus(self, pod: Pod) -> str:
        """The union of the CPUs of the pod's containers, as a CPU list."""
        if self._tree is None:
            return NONE
        cpus = CpuSet()
        try:
            path = self._layout.pod(pod.metadata.uid, qos_class(pod))
            for leaf in self._tree.children(path):
                cpus |= CpuSet.parse(self._tree.read(leaf, "cpuset.cpus.effective") or "")
        except (CgroupError, OSError, ValueError):
            return NONE
        return str(cpus) or NONE
