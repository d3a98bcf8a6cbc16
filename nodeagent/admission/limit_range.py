"""LimitRanger: gives containers the requests and limits they lack, then holds what there is to the bounds."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from nodeagent.admission.limit_range_bounds import Comparison, compare
from nodeagent.admission.limit_range_validation import CONTAINER, PERSISTENT_VOLUME_CLAIM, POD
from nodeagent.admission.refusal import Refusal, aggregate, forbidden
from nodeagent.admission.request import RESIZE, HasMetadata, Operation, Request
from nodeagent.api.persistent_volume_claim import PersistentVolumeClaim
from nodeagent.api.pod import Container, Pod
from nodeagent.api.policy import LimitRange
from nodeagent.api.quantity import Quantity, ResourceList
from nodeagent.api.resources import CPU, MEMORY, Resources, aggregate_limits, aggregate_requests

ANNOTATION = "kubernetes.io/limit-ranger"

T = TypeVar("T", bound=HasMetadata)


@dataclass(frozen=True, slots=True)
class Default:
    """An amount that a container got because it had none."""

    limit_range: str
    container: str
    field: str
    resource: str
    amount: Quantity
    is_maximum: bool

    def __str__(self) -> str:
        origin = f"LimitRange {self.limit_range}{', where it is the maximum too' if self.is_maximum else ''}"
        return f"{self.resource} {self.field} {self.amount} of {self.container} came from {origin}"


@dataclass(frozen=True, slots=True)
class Defaulted:
    """The pod with defaults filled in, and which."""

    pod: Pod
    defaults: tuple[Default, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """Whether an object keeps to the LimitRanges, and every comparison that was made."""

    refusal: Refusal | None = None
    comparisons: tuple[Comparison, ...] = ()


def set_defaults(request: Request[Pod], limit_ranges: Iterable[LimitRange]) -> Defaulted:
    """Fill in what the pod lacks, and say so in an annotation; the first LimitRange to name a resource wins.

    `limit_ranges` are those of the pod's namespace, as stored (with their own defaults).
    """
    pod = request.object
    made: tuple[Default, ...] = ()
    if _acts_on_pod(request):
        for limit_range in limit_ranges:
            pod, more = _defaulted(pod, limit_range)
            made += more
    return Defaulted(pod, made)


def check_pod(request: Request[Pod], limit_ranges: Iterable[LimitRange]) -> Checked:
    """Hold a pod's requests and limits to the bounds; the first LimitRange that fails answers."""
    return _check(request, limit_ranges, _compared_pod) if _acts_on_pod(request) else Checked()


def check_claim(request: Request[PersistentVolumeClaim], limit_ranges: Iterable[LimitRange]) -> Checked:
    """Hold a claim's storage request to the bounds."""
    acts = request.operation in (Operation.CREATE, Operation.UPDATE) and not request.subresource
    if not acts or _is_being_deleted(request.old):
        return Checked()
    return _check(request, limit_ranges, _compared_claim)


def _acts_on_pod(request: Request[Pod]) -> bool:
    """Containers only change on creation and on resize."""
    subresource = {Operation.CREATE: "", Operation.UPDATE: RESIZE}.get(request.operation)
    return request.subresource == subresource and not _is_being_deleted(request.old)


def _is_being_deleted(old: HasMetadata | None) -> bool:
    return old is not None and old.metadata.deletion_timestamp is not None


def _defaulted(pod: Pod, limit_range: LimitRange) -> tuple[Pod, tuple[Default, ...]]:
    containers, made = _fill(pod.spec.containers, "container", limit_range)
    init_containers, made_for_init = _fill(pod.spec.init_containers, "init container", limit_range)
    made += made_for_init
    if not made:
        return pod, ()
    spec = replace(pod.spec, containers=containers, init_containers=init_containers)
    annotations = {**pod.metadata.annotations, ANNOTATION: _annotation(made)}
    return replace(pod, spec=spec, metadata=replace(pod.metadata, annotations=annotations)), made


def _fill(
    containers: tuple[Container, ...], kind: str, limit_range: LimitRange
) -> tuple[tuple[Container, ...], tuple[Default, ...]]:
    requests: Resources = {}
    limits: Resources = {}
    maximum: Resources = {}
    for item in limit_range.spec.limits:
        if item.type == CONTAINER:
            requests |= item.default_request
            limits |= item.default
            maximum |= item.max
    made: list[Default] = []

    def complete(present: Resources, defaults: Resources, container: Container, field: str) -> Resources:
        absent = sorted(defaults.keys() - present.keys())
        for name in absent:
            amount = defaults[name]
            is_maximum = amount == maximum.get(name)
            called = f"{kind} {container.name}"
            made.append(Default(limit_range.metadata.name, called, field, name, amount, is_maximum))
        return {**defaults, **present} if absent else present

    def filled(container: Container) -> Container:
        resources = container.resources
        requested = complete(resources.requests, requests, container, "request")
        limited = complete(resources.limits, limits, container, "limit")
        return replace(container, resources=replace(resources, requests=requested, limits=limited))

    return tuple(map(filled, containers)), tuple(made)


def _annotation(made: Iterable[Default]) -> str:
    names: dict[tuple[str, str], list[str]] = {}
    for default in made:
        names.setdefault((default.field, default.container), []).append(default.resource)
    parts = (f"{', '.join(resources)} {field} for {of}" for (field, of), resources in names.items())
    return f"LimitRanger plugin set: {'; '.join(parts)}"


def _check(
    request: Request[T],
    limit_ranges: Iterable[LimitRange],
    compared: Callable[[T, LimitRange], Iterator[Comparison]],
) -> Checked:
    made: tuple[Comparison, ...] = ()
    for limit_range in limit_ranges:
        comparisons = tuple(compared(request.object, limit_range))
        made += comparisons
        complaints = sorted(each.complaint for each in comparisons if each.complaint)
        if complaints:
            return Checked(forbidden(request.resource, request.name, aggregate(complaints)), made)
    return Checked(None, made)


def _compared_pod(pod: Pod, limit_range: LimitRange) -> Iterator[Comparison]:
    name = limit_range.metadata.name
    kinds = (("container", pod.spec.containers), ("init container", pod.spec.init_containers))
    for item in limit_range.spec.limits:
        if item.type == CONTAINER:
            for kind, containers in kinds:
                for each in containers:
                    of, resources = f"{kind} {each.name}", each.resources
                    yield from compare(name, item, of, resources.requests, resources.limits)
        elif item.type == POD:
            requests, limits = _pod_amounts(pod)
            yield from compare(name, item, "the pod", requests, limits)


def _compared_claim(claim: PersistentVolumeClaim, limit_range: LimitRange) -> Iterator[Comparison]:
    for item in limit_range.spec.limits:
        if item.type == PERSISTENT_VOLUME_CLAIM:
            requests = claim.spec.resources.requests
            yield from compare(limit_range.metadata.name, item, "the claim", requests, {})


def _pod_amounts(pod: Pod) -> tuple[Resources, Resources]:
    """Return requests and limits of the whole pod, without overhead; cpu and memory as the pod level says."""
    requests, limits = aggregate_requests(pod), aggregate_limits(pod)
    if pod.spec.resources is not None:
        requests |= _cpu_and_memory(pod.spec.resources.requests)
        limits |= _cpu_and_memory(pod.spec.resources.limits)
    return requests, limits


def _cpu_and_memory(amounts: ResourceList) -> Resources:
    return {name: amounts[name] for name in (CPU, MEMORY) if name in amounts}
