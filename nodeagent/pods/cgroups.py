"""The pods' part of the cgroup tree: what each level should hold, made so and kept so."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from nodeagent.api.pod import Container, Pod
from nodeagent.api.qos import QOSClass, qos_class
from nodeagent.api.quantity import ResourceList
from nodeagent.cgroup.drivers import Driver
from nodeagent.cgroup.errors import NoSuchCgroup
from nodeagent.cgroup.files import CgroupTree
from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.cgroup.reconcile import Difference
from nodeagent.cgroup.settings import CgroupSettings
from nodeagent.cgroup.values import Values, container_values, node_values, pod_values, qos_values
from nodeagent.hardware.cpuset import CpuSet
from nodeagent.pods.containers import ContainerRecords
from nodeagent.pods.lifecycle import has_ended
from nodeagent.resources.managers import ResourceManagers

_LIMITS = frozenset(("cpu.max", "cpu.weight", "memory.max", "pids.max", "cpuset.cpus", "cpuset.mems"))
_TIERS = (QOSClass.BURSTABLE, QOSClass.BEST_EFFORT)


@dataclass(frozen=True, slots=True)
class Drift:
    """A file that somebody else had written; it holds the right value again."""

    path: str
    difference: Difference

    def __str__(self) -> str:
        each = self.difference
        return f"{self.path}/{each.file} had been set to {each.is_!r}; it holds {each.should!r} again"


class PodCgroups:
    """Computes the tree from the active pods, and brings the kernel's tree to it through a driver.

    Levels above the pods follow the active pods, which `active_pods` returns.
    """

    def __init__(
        self,
        tree: CgroupTree,
        driver: Driver,
        layout: CgroupLayout,
        settings: CgroupSettings,
        *,
        kubepods_resources: ResourceList,
        managers: ResourceManagers,
        records: ContainerRecords,
        active_pods: Callable[[], Iterable[Pod]],
    ) -> None:
        self.tree = tree
        self.layout = layout
        self._driver = driver
        self._settings = settings
        self._kubepods_resources = kubepods_resources
        self._managers = managers
        self._records = records
        self._active_pods = active_pods
        self.upper_is_stale = asyncio.Event()
        """Set when pods came or went since the levels above them were last written."""
        self._upper_lock = asyncio.Lock()
        self._written: dict[str, Values] = {}
        self._slices: dict[str, str] = {}
        self._computed: dict[str, tuple[object, Values]] = {}

    def slice(self, pod: Pod) -> str:
        """Return the pod's slice; a pod's class never changes."""
        uid = pod.metadata.uid
        if uid not in self._slices:
            self._slices[uid] = self.layout.pod(uid, qos_class(pod))
        return self._slices[uid]

    def leaf(self, pod: Pod, container_id: str) -> str:
        """Return a container's leaf."""
        return self.layout.container(pod.metadata.uid, qos_class(pod), container_id)

    async def ensure_upper(self) -> None:
        """Make kubepods and the QoS slices, with the values that the active pods call for."""
        async with self._upper_lock:
            self.upper_is_stale.clear()
            for path, values in self._upper_values().items():
                if not self.tree.exists(path):
                    await self._driver.ensure_slice(path, values)
                elif self._written.get(path) != values:
                    await self._driver.update(path, values)
                self._written[path] = values

    async def ensure_pod(self, pod: Pod) -> None:
        """Make the pod's slice; the levels above follow a moment later, once for all that come together."""
        path = self.slice(pod)
        if path in self._written and self.tree.exists(path):
            return
        if not self.tree.exists(self.layout.qos(qos_class(pod))):
            await self.ensure_upper()
        self.upper_is_stale.set()
        await self._make_room(pod)
        values = self._pod_values(pod)
        await self._driver.ensure_slice(path, values)
        self._written[path] = values

    async def attach(self, pod: Pod, container: Container, path: str, pid: int) -> None:
        """Put a process that waits before its first instruction into its container's leaf."""
        values = self._container_values(pod, container)
        # Who may use which CPUs can change while the leaf is made: that is then no foreign write.
        self._written[path] = values
        await self._driver.attach(path, pid, values)

    def kill(self, pod: Pod) -> None:
        """Kill every process of the pod, at once and without waiting."""
        self.tree.kill(self.slice(pod))

    async def remove_pod(self, pod: Pod) -> None:
        """Kill what is left of the pod and remove its cgroups; raises StuckCgroup."""
        path = self.slice(pod)
        for known in (self._computed, self._written):
            for level in [each for each in known if f"{each}/".startswith(f"{path}/")]:
                del known[level]
        self._slices.pop(pod.metadata.uid, None)
        if self.tree.exists(path):
            await self._driver.remove(path)
            self.upper_is_stale.set()

    async def remove_orphans(self, known_uids: Iterable[str]) -> tuple[str, ...]:
        """Remove the pod slices that belong to no known pod; return their paths."""
        known = frozenset(known_uids)
        orphans = [
            path
            for parent in (self.layout.kubepods, *(self.layout.qos(tier) for tier in _TIERS))
            for path in self.tree.children(parent)
            if (uid := self.layout.pod_uid_of(path)) is not None and uid not in known
        ]
        for path in orphans:
            await self._driver.remove(path)
        return tuple(orphans)

    async def reconcile(self, *, thorough: bool) -> tuple[Drift, ...]:
        """Bring every level back to what it should hold; return what others had changed.

        A value that we changed our own mind about (a shared pool that moved) is no drift. Unless `thorough`,
        only the limits are looked at: reading every file of a full node costs a slow machine.
        """
        await self.ensure_upper()
        drifts: list[Drift] = []
        for path, values in self._desired().items():
            try:
                wanted = values if thorough else {f: values[f] for f in values if f in _LIMITS}
                written = await self._driver.update(path, wanted)
            except NoSuchCgroup:
                # It went while we were looking: its worker sees to it.
                continue
            before = self._written.get(path, values)
            drifts += [Drift(path, each) for each in written if before.get(each.file) == each.should]
            self._written[path] = values
        return tuple(drifts)

    def exclusive_leaves(self) -> dict[str, CpuSet]:
        """Return the live leaves of containers that have CPUs of their own, with these."""
        found: dict[str, CpuSet] = {}
        for pod in self._active_pods():
            own = self._managers.exclusive_cpus(pod.metadata.uid)
            for record in self._records.of(pod.metadata.uid) if own else ():
                spec = record.spec
                if spec.container_name in own and not has_ended(record) and self.tree.exists(spec.cgroup):
                    found[spec.cgroup] = own[spec.container_name]
        return found

    async def _make_room(self, pod: Pod) -> None:
        """Move the shared containers off the CPUs that this pod was just given for itself."""
        if not self._managers.has_exclusive_cpus(pod):
            return
        for path, values in self._leaves().items():
            await self._driver.update(path, values)
            self._written[path] = values

    def _upper_values(self) -> dict[str, Values]:
        pods = tuple(self._active_pods())
        specs = tuple(pod.spec for pod in pods)
        kubepods = self.layout.kubepods
        upper = {
            kubepods: self._unless_known(
                kubepods, specs, lambda: node_values(self._kubepods_resources, pods, self._settings)
            )
        }
        for tier in _TIERS:
            path = self.layout.qos(tier)
            upper[path] = self._unless_known(path, specs, partial(qos_values, tier, pods, self._settings))
        return upper

    def _pod_values(self, pod: Pod) -> Values:
        exclusive = self._managers.has_exclusive_cpus(pod)
        return self._unless_known(
            self.slice(pod),
            (pod.spec, exclusive),
            lambda: pod_values(pod, self._settings, exclusive_cpus=exclusive),
        )

    def _container_values(self, pod: Pod, container: Container) -> Values:
        uid, name = pod.metadata.uid, container.name
        cpus, mems = self._managers.container_cpus(uid, name), self._managers.container_mems(uid, name)
        exclusive = self._managers.is_exclusive(uid, name)
        return self._unless_known(
            f"{self.slice(pod)}/{name}",
            (pod.spec, cpus, mems, exclusive),
            lambda: container_values(
                pod, container, self._settings, cpus=cpus, mems=mems, exclusive=exclusive
            ),
        )

    def _unless_known(self, level: str, inputs: object, compute: Callable[[], Values]) -> Values:
        """Return a level's values, computed again only when what they follow from has changed.

        A pod's spec stays the same object for as long as nobody changes it, so that comparing costs nothing.
        """
        known = self._computed.get(level)
        if known is not None and known[0] == inputs:
            return known[1]
        values = compute()
        self._computed[level] = (inputs, values)
        return values

    def _desired(self) -> dict[str, Values]:
        """Return what every level that exists should hold, parents before children."""
        desired = self._upper_values()
        for pod in self._active_pods():
            path = self.slice(pod)
            if path in self._written:
                desired[path] = self._pod_values(pod)
        return desired | self._leaves()

    def _leaves(self) -> dict[str, Values]:
        leaves: dict[str, Values] = {}
        for pod in self._active_pods():
            containers = {c.name: c for c in (*pod.spec.init_containers, *pod.spec.containers)}
            for record in self._records.of(pod.metadata.uid):
                container = containers.get(record.spec.container_name)
                if container is not None and not has_ended(record) and self.tree.exists(record.spec.cgroup):
                    leaves[record.spec.cgroup] = self._container_values(pod, container)
        return leaves
