"""A pod's live cgroups with the limit that binds each, and what the kernel counted there."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nodeagent.api.pod import Pod
from nodeagent.api.qos import qos_class
from nodeagent.cgroup.errors import CgroupError
from nodeagent.cgroup.files import CgroupTree
from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.cli.amounts import amount_text
from nodeagent.cli.client import AgentClient
from nodeagent.stats.kernel_files import parse_flat_keyed
from nodeagent.stats.live_tree import MACHINE, Bound, LiveCgroup, bound_place, read_machine, read_tree

_PLACES = {"self": "itself", "pod": "its pod", MACHINE: "the machine"}


@dataclass(frozen=True, slots=True)
class LiveLimits:
    """The cgroups asked for, parents first; none where the tree is not this machine's."""

    layout: CgroupLayout = field(default_factory=CgroupLayout)
    levels: Sequence[LiveCgroup] = ()
    oom_kills: int | None = None


def read_limits(client: AgentClient, pod: Pod | None, cgroup_root: Path, proc_root: Path) -> LiveLimits:
    """Read a pod's cgroups, or for None the levels above the pods."""
    kubelet = client.get("configz").get("kubeletconfig")
    layout = CgroupLayout(str(kubelet.get("cgroupRoot", "")) if isinstance(kubelet, dict) else "")
    try:
        tree = CgroupTree(cgroup_root)
    except OSError:
        return LiveLimits(layout)
    try:
        everything = read_tree(tree, layout, read_machine(tree, proc_root))
        if pod is None:
            return LiveLimits(layout, [level for level in everything if level.kind in ("kubepods", "qos")])
        path = layout.pod(pod.metadata.uid, qos_class(pod))
        levels = [level for level in everything if f"{level.path}/".startswith(f"{path}/")]
        kills = parse_flat_keyed(tree.read(path, "memory.events") or "").get("oom_kill")
        return LiveLimits(layout, levels, kills)
    except (CgroupError, OSError, ValueError):
        return LiveLimits(layout)
    finally:
        tree.close()


def limit_sentences(level: LiveCgroup, layout: CgroupLayout) -> Iterator[str]:
    """How much a cgroup may use, and which level says so."""
    for resource, bound in sorted(level.bounds.items()):
        yield _sentence(level, resource, bound, layout)
    weight = level.values.get("cpu.weight")
    if weight:
        yield f"cpu: weight {weight} beside its neighbours when there are too few CPUs for all"
    if level.usage.throttled_usec:
        yield f"cpu: held back by its quota for {level.usage.throttled_usec / 1e6:.1f} s so far"


def limits_data(limits: LiveLimits) -> list[dict[str, Any]]:
    """The same as data."""
    return [
        {
            "path": level.path,
            "kind": level.kind,
            "cpus": level.values.get("cpuset.cpus.effective", ""),
            "boundBy": {
                resource: {**asdict(bound), "place": bound_place(level, bound, limits.layout)}
                for resource, bound in sorted(level.bounds.items())
            },
        }
        for level in limits.levels
    ]


def _sentence(level: LiveCgroup, resource: str, bound: Bound, layout: CgroupLayout) -> str:
    place = bound_place(level, bound, layout)
    sentence = f"{resource}: {amount_text(resource, bound.limit)} at most"
    sentence += f", by {bound.file} of {_PLACES.get(place, place)}"
    if resource == "cpu":
        return sentence
    return f"{sentence}, of which {amount_text(resource, bound.left)} are left"
