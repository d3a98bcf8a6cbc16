"""Priority: from the name of a pod's PriorityClass to its priority and preemption policy."""

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from nodeagent.admission.priority_class import PREEMPT_LOWER_PRIORITY, global_default
from nodeagent.admission.refusal import Refusal, forbidden
from nodeagent.admission.request import Operation, Request
from nodeagent.api.pod import Pod
from nodeagent.api.policy import PriorityClass

PRIORITY_WITHOUT_CLASS = 0


@dataclass(frozen=True, slots=True)
class Resolution:
    """Which class a pod asked for, and what was found for it; without a name it is the default."""

    asked: str
    found: PriorityClass | None

    @property
    def class_name(self) -> str:
        return self.found.metadata.name if self.found is not None else ""

    @property
    def priority(self) -> int:
        return self.found.value if self.found is not None else PRIORITY_WITHOUT_CLASS

    @property
    def preemption_policy(self) -> str:
        found = self.found
        return (found.preemption_policy if found is not None else None) or PREEMPT_LOWER_PRIORITY

    def __str__(self) -> str:
        if self.asked and self.found is None:
            return f"no PriorityClass {self.asked} exists"
        origin = f"PriorityClass {self.class_name}" if self.class_name else "no PriorityClass"
        default = " (the default)" if self.class_name and not self.asked else ""
        return f"priority {self.priority}, {self.preemption_policy}, from {origin}{default}"


@dataclass(frozen=True, slots=True)
class Prioritized:
    """The pod with its priority, or why it is refused."""

    pod: Pod
    refusal: Refusal | None = None
    resolution: Resolution | None = None


def prioritize(request: Request[Pod], classes: Iterable[PriorityClass]) -> Prioritized:
    """Resolve the pod's PriorityClass on creation; on update keep what was resolved then."""
    pod = request.object
    if request.subresource:
        return Prioritized(pod)
    if request.operation is Operation.CREATE:
        return _resolve(request, tuple(classes))
    if request.operation is Operation.UPDATE and request.old is not None:
        return Prioritized(_kept(pod, request.old))
    return Prioritized(pod)


def _resolve(request: Request[Pod], classes: tuple[PriorityClass, ...]) -> Prioritized:
    pod = request.object
    asked = pod.spec.priority_class_name or ""
    if asked:
        found = next((each for each in classes if each.metadata.name == asked), None)
    else:
        found = global_default(classes)
    resolution = Resolution(asked, found)
    why = _conflict(pod, resolution)
    if why:
        return Prioritized(pod, forbidden(request.resource, request.name, why), resolution)
    spec = replace(
        pod.spec,
        priority_class_name=resolution.class_name or None,
        priority=resolution.priority,
        preemption_policy=resolution.preemption_policy,
    )
    return Prioritized(replace(pod, spec=spec), None, resolution)


def _conflict(pod: Pod, resolution: Resolution) -> str:
    """Return what in the pod contradicts its class; nothing if all is well."""
    computed = "priority admission controller computed {} from the given PriorityClass name"
    if resolution.asked and resolution.found is None:
        return f"no PriorityClass with name {resolution.asked} was found"
    priority = pod.spec.priority
    if priority is not None and priority != resolution.priority:
        given = f"the integer value of priority ({priority}) must not be provided in pod spec"
        return f"{given}; {computed.format(resolution.priority)}"
    policy = pod.spec.preemption_policy
    if policy is not None and policy != resolution.preemption_policy:
        given = f"the string value of PreemptionPolicy ({policy}) must not be provided in pod spec"
        return f"{given}; {computed.format(resolution.preemption_policy)}"
    return ""


def _kept(pod: Pod, old: Pod) -> Pod:
    spec = pod.spec
    if spec.priority is None:
        spec = replace(spec, priority=old.spec.priority)
    if spec.preemption_policy is None:
        spec = replace(spec, preemption_policy=old.spec.preemption_policy)
    return replace(pod, spec=spec)
