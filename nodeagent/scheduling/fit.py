"""kubelet's node admission: does the pod fit what this node has left.

Every comparison made is kept, so that events, `plan` and `explain` render the decision, not remake it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from nodeagent.api.node import Taint
from nodeagent.api.pod import Container, Pod
from nodeagent.api.qos import is_static
from nodeagent.api.quantity import Quantity
from nodeagent.api.resources import is_restartable_init, pod_requests
from nodeagent.scheduling.affinity import selects_node, untolerated_taint

OS_LABEL = "kubernetes.io/os"
_OS = "linux"
_PRIMARY = ("cpu", "memory", "ephemeral-storage")
_ANY_ADDRESS = "0.0.0.0"


@dataclass(frozen=True, slots=True)
class NodeView:
    """What admission needs to know of the node."""

    name: str
    allocatable: Mapping[str, Quantity]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """One resource, compared: cpu in millicores, every other in its base unit."""

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def fits(self) -> bool:
        return self.requested <= self.capacity - self.used

    @property
    def shortage(self) -> int:
        """How much is missing; not positive when the request fits."""
        return self.requested - (self.capacity - self.used)

    @property
    def reason(self) -> str:
        return f"OutOf{self.resource}"

    @property
    def message(self) -> str:
        return (
            f"Node didn't have enough resource: {self.resource}, requested: {self.requested}, "
            f"used: {self.used}, capacity: {self.capacity}"
        )

    @property
    def description(self) -> str:
        """The scheduler's words for the same failure."""
        return f"Insufficient {self.resource}"


@dataclass(frozen=True, slots=True)
class PredicateFailure:
    """A rule about where the pod may run that this node does not satisfy."""

    predicate: str
    description: str

    @property
    def reason(self) -> str:
        return self.predicate

    @property
    def message(self) -> str:
        return f"Predicate {self.predicate} failed: {self.description}"


Failure = Comparison | PredicateFailure


@dataclass(frozen=True, slots=True)
class FitResult:
    """The decision; `reason` and `message` are kubelet's and name the first failure only."""

    fits: bool
    reason: str = ""
    message: str = ""
    comparisons: tuple[Comparison, ...] = ()
    failures: tuple[Failure, ...] = ()


def fit(pod: Pod, node: NodeView, others: Collection[Pod]) -> FitResult:
    """Decide as kubelet does whether the node admits the pod beside the others (none of them terminal)."""
    refused = _other_os(pod)
    if refused is not None:
        return refused
    capacity = amounts(node.allocatable)
    # What no device plugin has announced here cannot be short here.
    requested = {
        name: amount
        for name, amount in amounts(pod_requests(pod)).items()
        if name in capacity or not is_extended(name)
    }
    comparisons = compare_resources(requested, capacity, others)
    failures: list[Failure] = [each for each in comparisons if not each.fits]
    failures += _misplaced(pod, node, others)
    if not failures:
        return FitResult(True, comparisons=comparisons)
    return FitResult(False, failures[0].reason, failures[0].message, comparisons, tuple(failures))


def _other_os(pod: Pod) -> FitResult | None:
    # kubelet reads the pod's label here, not its nodeSelector.
    if pod.metadata.labels.get(OS_LABEL, _OS) != _OS:
        reason = "PodOSSelectorNodeLabelDoesNotMatch"
        return FitResult(
            False, reason, f"Failed to admit pod as the `{OS_LABEL}` label doesn't match node label"
        )
    if pod.spec.os is not None and pod.spec.os.name != _OS:
        return FitResult(
            False, "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
        )
    return None


def compare_resources(
    requested: Mapping[str, int], capacity: Mapping[str, int], others: Collection[Pod]
) -> tuple[Comparison, ...]:
    """Compare the number of pods, then every resource that is asked for, in kubelet's order."""
    used = total_requests(others)
    rest = sorted(name for name in requested if name not in _PRIMARY and is_countable(name))
    return (
        Comparison("pods", 1, len(others), capacity.get("pods", 0)),
        *(
            Comparison(name, requested[name], used.get(name, 0), capacity.get(name, 0))
            for name in (*_PRIMARY, *rest)
            if requested.get(name, 0) > 0
        ),
    )


def total_requests(pods: Iterable[Pod]) -> dict[str, int]:
    """Sum the pods' requests, a pod at a time: kubelet rounds every pod's to whole units before it adds."""
    total: dict[str, int] = {}
    for pod in pods:
        for name, amount in amounts(pod_requests(pod)).items():
            total[name] = total.get(name, 0) + amount
    return total


def amounts(resources: Mapping[str, Quantity]) -> dict[str, int]:
    """Whole numbers for comparing: millicores for cpu, base units (rounded up) for the rest."""
    return {
        name: quantity.milli_value() if name == "cpu" else quantity.value()
        for name, quantity in resources.items()
    }


def is_extended(name: str) -> bool:
    """Whether a device plugin or an administrator defines the resource, not Kubernetes itself."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def is_countable(name: str) -> bool:
    """Whether admission counts a resource other than cpu, memory and ephemeral-storage."""
    return (
        is_extended(name)
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in name
    )


def _misplaced(pod: Pod, node: NodeView, others: Iterable[Pod]) -> list[PredicateFailure]:
    failures = []
    if not selects_node(pod.spec, node.name, node.labels):
        failures.append(PredicateFailure("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"))
    if pod.spec.node_name not in (None, "", node.name):
        failures.append(PredicateFailure("NodeName", "node(s) didn't match the requested node name"))
    if not ports_free(pod, others):
        description = "node(s) didn't have free ports for the requested pod ports"
        failures.append(PredicateFailure("NodePorts", description))
    # A taint of another effect concerns the scheduler only, and static pods are nobody's to move.
    if not is_static(pod) and untolerated_taint(node.taints, pod.spec.tolerations, frozenset({"NoExecute"})):
        description = "node(s) had taints that the pod didn't tolerate"
        failures.append(PredicateFailure("TaintToleration", description))
    return failures


def ports_free(pod: Pod, others: Iterable[Pod]) -> bool:
    """Whether no other pod holds a host port of this one; the unspecified address stands for all."""
    taken: dict[tuple[str, int], set[str]] = {}
    for other in others:
        for address, protocol, port in _host_ports(other):
            taken.setdefault((protocol, port), set()).add(address)
    for address, protocol, port in _host_ports(pod):
        addresses = taken.get((protocol, port), set())
        if addresses and (address == _ANY_ADDRESS or addresses & {address, _ANY_ADDRESS}):
            return False
    return True


def _host_ports(pod: Pod) -> Iterable[tuple[str, str, int]]:
    for container in _long_running(pod):
        for port in container.ports:
            if port.host_port:
                yield port.host_ip or _ANY_ADDRESS, port.protocol or "TCP", port.host_port


def _long_running(pod: Pod) -> Iterable[Container]:
    yield from pod.spec.containers
    yield from (each for each in pod.spec.init_containers if is_restartable_init(each))
