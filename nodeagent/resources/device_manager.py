"""Hand out devices of a fixed list (the operator's, until plugins register), with hints."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from nodeagent.resources.checkpoint import StateFile, checksum
from nodeagent.resources.cpu_manager import ActivePods
from nodeagent.resources.errors import AllocationError
from nodeagent.resources.hints import Hint, Hints, NumaMasks
from nodeagent.resources.requests import ContainerRequest, Kind, PodRequest

FILE_NAME = "device_manager_state"


@dataclass(frozen=True, slots=True)
class DeviceMount:
    """What else of the host a container must see to use a device."""

    host_path: str
    container_path: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Device:
    """One device: where it sits, and what a container needs to use it."""

    id: str
    numa_nodes: tuple[int, ...] = ()
    device_nodes: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[DeviceMount, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceResource:
    """The devices that are interchangeable under one extended resource, such as `example.com/gpu`."""

    name: str
    devices: tuple[Device, ...]


@dataclass(frozen=True, slots=True)
class DeviceAllocation:
    """The device ids that a container got, by resource."""

    ids: Mapping[str, tuple[str, ...]]
    affinity: int | None = None
    kept: bool = False


Holdings = Mapping[str, Mapping[str, Mapping[str, tuple[str, ...]]]]
"""Pod UID -> container -> resource -> device ids."""


class _Content(msgspec.Struct):
    entries: dict[str, dict[str, dict[str, tuple[str, ...]]]] = {}
    checksum: int = 0


class DeviceManager:
    """Who holds which device; its file follows with `save`."""

    def __init__(
        self,
        resources: Iterable[DeviceResource],
        numa_nodes: Iterable[int],
        file: StateFile,
        *,
        single_node: bool = False,
    ) -> None:
        """Load the file, unless it has a problem already. Raises StateFileError; it is untouched then."""
        self.resources = {
            resource.name: {device.id: device for device in resource.devices} for resource in resources
        }
        self._masks = NumaMasks(numa_nodes, single=single_node)
        self._file = file
        self.state: Holdings = _load(file)
        self._saved = self.state

    def save(self) -> None:
        """Write the holdings if they changed, or their file is gone."""
        is_lost = self._file.is_missing and (self.state or self._file.problem)
        if self.state == self._saved and not is_lost:
            return
        if self._file.write(lambda: _encode(self.state)):
            self._saved = self.state

    def devices_of(self, pod_uid: str, container: str) -> tuple[Device, ...]:
        """Return the devices that a container holds; one that has left the list is left out."""
        held = self.state.get(pod_uid, {}).get(container, {})
        return tuple(
            self.resources[resource][device]
            for resource, ids in held.items()
            for device in ids
            if device in self.resources.get(resource, {})
        )

    def container_hints(self, pod: PodRequest, container: ContainerRequest) -> Hints:
        held = self.state.get(pod.uid, {}).get(container.name, {})
        return {
            resource: self._hints(pod, resource, count, held.get(resource))
            for resource, count in self._known(container)
        }

    def pod_hints(self, pod: PodRequest) -> Hints:
        return {
            resource: self._hints(pod, resource, count, None)
            for resource, count in self._pod_needs(pod).items()
        }

    def allocate(
        self, pod: PodRequest, container: ContainerRequest, affinity: Hint
    ) -> DeviceAllocation | None:
        """Give a container its devices; None where it asks for none. Raises AllocationError."""
        needs = self._known(container)
        if not needs:
            return None
        if kept := self.kept(pod.uid, container):
            return kept
        ids = {resource: self._choose(pod, resource, count, affinity.mask) for resource, count in needs}
        of_pod = {**self.state.get(pod.uid, {}), container.name: ids}
        self.state = {**self.state, pod.uid: of_pod}
        return DeviceAllocation(ids, affinity.mask)

    def release_pod(self, pod_uid: str) -> None:
        self.state = {uid: containers for uid, containers in self.state.items() if uid != pod_uid}

    def release_stale(self, active: ActivePods) -> None:
        """Give back what belongs to no container of an active pod."""
        kept = {
            uid: {name: held for name, held in containers.items() if name in active.get(uid, ())}
            for uid, containers in self.state.items()
        }
        self.state = {uid: containers for uid, containers in kept.items() if containers}

    def situation(self, pod: PodRequest, container: ContainerRequest | None) -> str:
        needs = self._pod_needs(pod) if container is None else dict(self._known(container))
        return "; ".join(
            f"{count} of {resource} were asked for; free are {sorted(self._free(pod, resource)) or 'none'}"
            for resource, count in needs.items()
        )

    def kept(self, pod_uid: str, container: ContainerRequest) -> DeviceAllocation | None:
        """Return what a container holds already."""
        held = self.state.get(pod_uid, {}).get(container.name)
        return DeviceAllocation(held, kept=True) if held is not None else None

    def needs(self, container: ContainerRequest) -> bool:
        return bool(self._known(container))

    def _known(self, container: ContainerRequest) -> list[tuple[str, int]]:
        """Other extended resources are not ours: the scheduler has judged them."""
        return [(resource, count) for resource, count in container.devices if resource in self.resources]

    def _pod_needs(self, pod: PodRequest) -> dict[str, int]:
        """Return the most that a pod has at one time of each resource."""
        totals: dict[str, int] = {}
        for resource in self.resources:
            sidecars = apps = largest = 0
            for container in pod.containers:
                count = dict(container.devices).get(resource, 0)
                if container.kind is Kind.SIDECAR:
                    sidecars += count
                elif container.kind is Kind.INIT:
                    largest = max(largest, sidecars + count)
                else:
                    apps += count
            totals[resource] = max(largest, sidecars + apps)
        return {resource: count for resource, count in totals.items() if count}

    def _free(self, pod: PodRequest, resource: str) -> set[str]:
        """Return the devices that nobody holds, and those of the pod's finished init containers."""
        taken = {
            device
            for uid, containers in self.state.items()
            for name, held in containers.items()
            if uid != pod.uid or not _is_init(pod, name)
            for device in held.get(resource, ())
        }
        return set(self.resources[resource]) - taken

    def _left_by_init(self, pod: PodRequest, resource: str) -> set[str]:
        """Return what the pod's finished init containers held and no other container has taken up."""
        held = self.state.get(pod.uid, {})
        left = {
            device
            for container in pod.of_kind(Kind.INIT)
            for device in held.get(container.name, {}).get(resource, ())
        }
        return left & self._free(pod, resource)

    def _choose(self, pod: PodRequest, resource: str, count: int, affinity: int | None) -> tuple[str, ...]:
        """Take what init containers leave, then near devices, then those that sit nowhere, then the rest."""
        free = self._free(pod, resource)
        if len(free) < count:
            raise AllocationError(
                f"requested number of devices unavailable for {resource}. Requested: {count}, "
                f"Available: {len(free)}"
            )
        left_by_init = self._left_by_init(pod, resource)

        def rank(device: str) -> tuple[bool, int, str]:
            nodes = self.resources[resource][device].numa_nodes
            near = affinity is None or any(affinity >> node & 1 for node in nodes)
            return device not in left_by_init, 0 if near else 2 if nodes else 1, device

        return tuple(sorted(sorted(free, key=rank)[:count]))

    def _hints(
        self, pod: PodRequest, resource: str, count: int, held: tuple[str, ...] | None
    ) -> tuple[Hint, ...] | None:
        """List the sets of nodes with enough free devices; None where no device says where it sits.

        What init containers leave is taken first, so every set has to hold it.
        """
        devices = self.resources[resource]
        if not any(device.numa_nodes for device in devices.values()):
            return None
        free = set(held) & set(devices) if held is not None else self._free(pod, resource)
        if held is not None and len(held) != count:
            return ()
        left = set() if held is not None else self._left_by_init(pod, resource)
        needed = [devices[device].numa_nodes for device in left if devices[device].numa_nodes]
        least = len(self._masks.nodes)
        masks = []
        for mask in self._masks.masks:
            if self._count_on(mask, devices.values()) >= count:
                least = min(least, mask.bit_count())
            holds_left = all(any(mask >> node & 1 for node in nodes) for nodes in needed)
            if holds_left and self._count_on(mask, (devices[device] for device in free)) >= count:
                masks.append(mask)
        return tuple(Hint(mask, mask.bit_count() == least) for mask in masks)

    def _count_on(self, mask: int, devices: Iterable[Device]) -> int:
        return sum(any(mask >> node & 1 for node in device.numa_nodes) for device in devices)


def _encode(holdings: Holdings) -> bytes:
    entries = msgspec.json.encode(holdings, order="sorted")
    return b'{"entries":%s,"checksum":%d}' % (entries, checksum(entries.decode()))


def _load(file: StateFile) -> Holdings:
    data = file.read()
    if data is None:
        return {}
    try:
        content = msgspec.json.decode(data, type=_Content)
        if content.checksum != checksum(msgspec.json.encode(content.entries, order="sorted").decode()):
            raise ValueError("checkpoint is corrupted")
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise file.error(str(error)) from None
    return content.entries


def _is_init(pod: PodRequest, name: str) -> bool:
    return any(container.name == name for container in pod.of_kind(Kind.INIT))
