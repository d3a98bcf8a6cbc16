"""Ask the managers, merge their hints and allocate: a whole pod, or a refusal that says why."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from nodeagent.hardware.cpuset import bits
from nodeagent.resources.errors import TOPOLOGY_AFFINITY_ERROR, UNEXPECTED_ADMISSION_ERROR, AllocationError
from nodeagent.resources.hints import NO_AFFINITY, Hint, Hints
from nodeagent.resources.requests import ContainerRequest, PodRequest
from nodeagent.resources.topology_manager import TopologyManager
from nodeagent.resources.topology_options import Policy, Scope


class Provider(Protocol):
    """A manager of one kind of resource."""

    def container_hints(self, pod: PodRequest, container: ContainerRequest) -> Hints: ...

    def pod_hints(self, pod: PodRequest) -> Hints: ...

    def allocate(self, pod: PodRequest, container: ContainerRequest, affinity: Hint) -> object | None:
        """Return a record of what the container got, None for nothing. Raises AllocationError."""
        ...

    def situation(self, pod: PodRequest, container: ContainerRequest | None) -> str:
        """Say in one sentence what was asked (None: by the pod as a whole) and what there is."""
        ...


@dataclass(frozen=True, slots=True)
class Offer:
    """What one manager could do for one resource, in short."""

    resource: str
    preferred: tuple[int, ...]
    """NUMA masks that are as small as they can be."""
    others: int
    """How many further sets of nodes would do."""
    anywhere: bool = False


@dataclass(frozen=True, slots=True)
class ContainerDecision:
    """On which NUMA nodes a container was served, why there, and what it got."""

    container: str
    affinity: Hint = NO_AFFINITY
    offers: tuple[Offer, ...] = ()
    allocations: tuple[object, ...] = ()
    shared_because: str = ""
    """Why it has no CPUs of its own."""


@dataclass(frozen=True, slots=True)
class PodDecision:
    """The outcome for a pod. `containers` has those that were reached, `refused` the one that failed."""

    admitted: bool
    containers: tuple[ContainerDecision, ...] = ()
    reason: str = ""
    message: str = ""
    refused: ContainerDecision | None = None
    situation: tuple[str, ...] = ()

    def affinity_of(self, container: str) -> Hint:
        """Return what was found for a container; one whose turn never came, or that found none, has none."""
        failed = self.reason != TOPOLOGY_AFFINITY_ERROR and self.refused
        reached = (*self.containers, *([failed] if failed else ()))
        return next((one.affinity for one in reached if one.container == container), NO_AFFINITY)


class PodAdmission:
    """Runs pods through the providers. Their state is changed, also by the first part of a refused pod."""

    def __init__(self, topology_manager: TopologyManager, providers: Sequence[Provider]) -> None:
        self._topology_manager = topology_manager
        self._providers = tuple(providers)

    def admit(self, pod: PodRequest) -> PodDecision:
        """Serve the containers in order; the first that cannot be served refuses the pod."""
        settings = self._topology_manager.settings
        for_all: ContainerDecision | None = None
        if settings.policy is Policy.NONE:
            for_all = ContainerDecision("")
        elif settings.scope is Scope.POD:
            for_all = self._place("", [provider.pod_hints(pod) for provider in self._providers])
            if not self._topology_manager.admits(for_all.affinity):
                return self._no_affinity(pod, None, (), for_all)
        done: list[ContainerDecision] = []
        for container in pod.containers:
            placed = for_all or self._place(
                container.name,
                [provider.container_hints(pod, container) for provider in self._providers],
            )
            if not self._topology_manager.admits(placed.affinity):
                return self._no_affinity(pod, container, tuple(done), placed)
            try:
                done.append(self._allocate(pod, container, placed))
            except AllocationError as error:
                return self._failed(pod, container, tuple(done), placed, error)
        return PodDecision(True, tuple(done))

    def _place(self, container: str, hints: Sequence[Hints]) -> ContainerDecision:
        offers = tuple(offer for provider in hints for offer in _offers(provider))
        return ContainerDecision(container, self._topology_manager.merge(hints), offers)

    def _allocate(
        self, pod: PodRequest, container: ContainerRequest, placed: ContainerDecision
    ) -> ContainerDecision:
        records = [provider.allocate(pod, container, placed.affinity) for provider in self._providers]
        allocations = tuple(record for record in records if record is not None)
        return ContainerDecision(
            container.name, placed.affinity, placed.offers, allocations, container.shared_because
        )

    def _no_affinity(
        self,
        pod: PodRequest,
        container: ContainerRequest | None,
        done: tuple[ContainerDecision, ...],
        refused: ContainerDecision,
    ) -> PodDecision:
        return PodDecision(
            False,
            done,
            TOPOLOGY_AFFINITY_ERROR,
            "Resources cannot be allocated with Topology locality",
            refused,
            (self._demand(refused.affinity), *self._situation(pod, container)),
        )

    def _demand(self, best: Hint) -> str:
        """Say what the policy admits, and the best that was found."""
        policy = self._topology_manager.settings.policy
        if policy is Policy.SINGLE_NUMA_NODE:
            return f"policy {policy} admits only one NUMA node that every resource prefers, and there is none"
        nodes = ",".join(map(str, bits(best.mask or 0)))
        return (
            f"policy {policy} admits only a placement that every resource prefers; "
            f"the best common one, on NUMA nodes {nodes}, is not"
        )

    def _failed(
        self,
        pod: PodRequest,
        container: ContainerRequest,
        done: tuple[ContainerDecision, ...],
        placed: ContainerDecision,
        error: AllocationError,
    ) -> PodDecision:
        """The failed container keeps its affinity, as in kubelet: it was found before the allocation."""
        message = str(error)
        if error.reason == UNEXPECTED_ADMISSION_ERROR:
            message = f"Allocate failed due to {message}, which is unexpected"
        refused = ContainerDecision(container.name, placed.affinity, placed.offers)
        return PodDecision(False, done, error.reason, message, refused, self._situation(pod, container))

    def _situation(self, pod: PodRequest, container: ContainerRequest | None) -> tuple[str, ...]:
        sentences = (provider.situation(pod, container) for provider in self._providers)
        return tuple(sentence for sentence in sentences if sentence)


def _offers(hints: Hints) -> Iterator[Offer]:
    for resource, listed in (hints or {}).items():
        if listed is None:
            yield Offer(resource, (), 0, anywhere=True)
        else:
            preferred = tuple(hint.mask for hint in listed if hint.preferred and hint.mask is not None)
            yield Offer(resource, preferred, len(listed) - len(preferred))
