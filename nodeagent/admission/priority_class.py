"""PriorityClass: the two that the system brings along, defaults, validation, and the one default class."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from nodeagent.admission.refusal import Refusal, forbidden
from nodeagent.admission.request import Operation, Request
from nodeagent.api import errors
from nodeagent.api.errors import FieldError
from nodeagent.api.meta import ObjectMeta
from nodeagent.api.policy import PriorityClass
from nodeagent.api.qos import SYSTEM_CLUSTER_CRITICAL, SYSTEM_NODE_CRITICAL, SYSTEM_PRIORITIES
from nodeagent.api.validation import metadata_errors
from nodeagent.api.validation.checks import one_of

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
NEVER = "Never"
SYSTEM_PREFIX = "system-"
HIGHEST_USER_DEFINABLE_PRIORITY = 1_000_000_000

SYSTEM_CLASSES = (
    PriorityClass(
        metadata=ObjectMeta(name=SYSTEM_NODE_CRITICAL),
        value=SYSTEM_PRIORITIES[SYSTEM_NODE_CRITICAL],
        preemption_policy=PREEMPT_LOWER_PRIORITY,
        description="Used for system critical pods that must not be moved from their current node.",
    ),
    PriorityClass(
        metadata=ObjectMeta(name=SYSTEM_CLUSTER_CRITICAL),
        value=SYSTEM_PRIORITIES[SYSTEM_CLUSTER_CRITICAL],
        preemption_policy=PREEMPT_LOWER_PRIORITY,
        description="Used for system critical pods that must run in the cluster, "
        "but can be moved to another node if necessary.",
    ),
)


def default_priority_class(priority_class: PriorityClass) -> PriorityClass:
    """Return the class with what the API server fills in."""
    if priority_class.preemption_policy:
        return priority_class
    return replace(priority_class, preemption_policy=PREEMPT_LOWER_PRIORITY)


def validate_priority_class(priority_class: PriorityClass) -> tuple[FieldError, ...]:
    """Return everything that is wrong with a PriorityClass."""
    return tuple(_errors(priority_class))


def admit_priority_class(
    request: Request[PriorityClass], existing: Iterable[PriorityClass]
) -> Refusal | None:
    """Refuse a second default class; `existing` are the classes as stored."""
    if request.subresource or not request.object.global_default or request.operation is Operation.DELETE:
        return None
    default = global_default(existing)
    if default is None:
        return None
    taken = default.metadata.name
    if request.operation is Operation.UPDATE and taken == request.object.metadata.name:
        return None
    why = f"PriorityClass {taken} is already marked as default. Only one default can exist"
    return forbidden(request.resource, request.name, why)


def global_default(classes: Iterable[PriorityClass]) -> PriorityClass | None:
    """Return the class of pods that name none: the lowest, should several call themselves default."""
    defaults = [candidate for candidate in classes if candidate.global_default]
    return min(defaults, key=lambda candidate: candidate.value, default=None)


def _errors(priority_class: PriorityClass) -> Iterator[FieldError]:
    yield from metadata_errors(priority_class.metadata, namespaced=False)
    if priority_class.metadata.name.startswith(SYSTEM_PREFIX):
        fault = _fault_of_system_class(priority_class)
        if fault:
            detail = (
                f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. "
                f"error: {fault}"
            )
            yield errors.forbidden("metadata.name", detail)
    elif priority_class.value > HIGHEST_USER_DEFINABLE_PRIORITY:
        highest = HIGHEST_USER_DEFINABLE_PRIORITY
        yield errors.forbidden("value", f"maximum allowed value of a user defined priority is {highest}")
    yield from one_of(priority_class.preemption_policy, (PREEMPT_LOWER_PRIORITY, NEVER), "preemptionPolicy")


def _fault_of_system_class(priority_class: PriorityClass) -> str:
    """Return how the class differs from the system's class of its name; nothing if it is the same."""
    name = priority_class.metadata.name
    for known in SYSTEM_CLASSES:
        if name == known.metadata.name:
            if priority_class.value != known.value:
                return f"value of {name} PriorityClass must be {known.value}"
            if priority_class.global_default:
                return f"globalDefault of {name} PriorityClass must be false"
            return ""
    return f"{name} is not a known system priority class"
