"""What a node has, what is kept from pods, and what is left for them."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeagent.api.quantity import BINARY_SI, ZERO, Quantity, ResourceList
from nodeagent.api.resources import CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, MEMORY, PODS, amount
from nodeagent.hardware.node import NodeInfo

ENFORCE_PODS = "pods"
# The hard eviction signals that take from a resource; imagefs belongs to no resource of its own.
_RESERVING_SIGNALS = {"memory.available": MEMORY, "nodefs.available": EPHEMERAL_STORAGE}
_IGNORED_THRESHOLDS = ("0%", "100%")


@dataclass(frozen=True, slots=True)
class NodeResources:
    """A node's capacity and the reservations from it; what remains is derived.

    `eviction_hard` maps a signal to its threshold, a quantity or a percentage.
    """

    capacity: ResourceList
    system_reserved: ResourceList = field(default_factory=dict)
    kube_reserved: ResourceList = field(default_factory=dict)
    eviction_hard: Mapping[str, str] = field(default_factory=dict)
    enforce: frozenset[str] = frozenset((ENFORCE_PODS,))

    @property
    def reservation(self) -> dict[str, Quantity]:
        """What pods may not request: system, kube and eviction reserves together, zero ones left out."""
        eviction = self._eviction_reservation()
        total = {name: ZERO + self._reserved(name) + amount(eviction, name) for name in self.capacity}
        return {name: reserved for name, reserved in total.items() if not reserved.is_zero}

    @property
    def without_reserved(self) -> dict[str, Quantity]:
        """Capacity less the system and kube reserves: what the pods together may use before they are cut."""
        return {name: _floor(total - self._reserved(name)) for name, total in self.capacity.items()}

    @property
    def kubepods(self) -> ResourceList:
        """What is written on the cgroup of all pods. Eviction needs room below it, so is not taken off."""
        return self.without_reserved if ENFORCE_PODS in self.enforce else self.capacity

    def errors(self) -> tuple[str, ...]:
        """Say which reservations exceed what there is, a sentence each; such a node must not start."""
        return tuple(
            f"invalid Node Allocatable configuration. Resource {name!r}: {reserved} is reserved "
            f"(systemReserved + kubeReserved + evictionHard) but the node has {self.capacity[name]}; "
            "expected a reservation within the capacity"
            for name, reserved in self.reservation.items()
            if reserved > self.capacity[name]
        )

    def _reserved(self, name: str) -> Quantity:
        return amount(self.system_reserved, name) + amount(self.kube_reserved, name)

    def _eviction_reservation(self) -> dict[str, Quantity]:
        reserved = {}
        for signal, resource in _RESERVING_SIGNALS.items():
            threshold = self.eviction_hard.get(signal)
            if threshold is not None and threshold not in _IGNORED_THRESHOLDS:
                reserved[resource] = _threshold_amount(threshold, amount(self.capacity, resource))
        return reserved


def node_capacity(node: NodeInfo, max_pods: int, pods_per_core: int = 0) -> dict[str, Quantity]:
    """Return a node's capacity as its status shows it."""
    pods = max_pods
    if pods_per_core > 0:
        pods = min(max_pods, pods_per_core * (node.cpu_milli // 1000))
    capacity = {
        CPU: Quantity.of_milli(node.cpu_milli),
        MEMORY: Quantity.of(node.memory_bytes, BINARY_SI),
        PODS: Quantity.of(pods),
    }
    if node.ephemeral_storage_bytes is not None:
        capacity[EPHEMERAL_STORAGE] = Quantity.of(node.ephemeral_storage_bytes, BINARY_SI)
    for size, total in node.hugepages_bytes.items():
        capacity[hugepages_resource(size)] = Quantity.of(total, BINARY_SI)
    return capacity


def node_allocatable(capacity: ResourceList, reservation: ResourceList) -> dict[str, Quantity]:
    """Return what pods may request: capacity less the whole reservation, and no memory in huge pages."""
    left = {name: _floor(total - amount(reservation, name)) for name, total in capacity.items()}
    for name, total in capacity.items():
        if name.startswith(HUGEPAGES_PREFIX) and MEMORY in left:
            left[MEMORY] = _floor(left[MEMORY] - total)
    return left


def hugepages_resource(page_size_bytes: int) -> str:
    """Return the resource name of huge pages of a size: "hugepages-2Mi"."""
    return f"{HUGEPAGES_PREFIX}{Quantity.of(page_size_bytes, BINARY_SI)}"


def _threshold_amount(threshold: str, capacity: Quantity) -> Quantity:
    if not threshold.endswith("%"):
        return Quantity.parse(threshold)
    # The original computes the fraction in single precision, and thresholds are compared to the byte.
    fraction = _float32(_float32(float(threshold[:-1])) / 100)
    return Quantity.of(int(capacity.value() * fraction), BINARY_SI)


def _float32(number: float) -> float:
    single: float = struct.unpack("f", struct.pack("f", number))[0]
    return single


def _floor(left: Quantity) -> Quantity:
    return left if left.sign >= 0 else Quantity(0, left.format)
