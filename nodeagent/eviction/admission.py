"""Whether a pod may come to a node that is under pressure."""

from collections.abc import Collection
from dataclasses import dataclass

from nodeagent.api.pod import Pod, Toleration
from nodeagent.api.qos import QOSClass, qos_class
from nodeagent.eviction.manager import Policy
from nodeagent.eviction.messages import node_had_conditions
from nodeagent.eviction.signals import Condition

REASON = "Evicted"
MEMORY_PRESSURE_TAINT = "node.kubernetes.io/memory-pressure"
NO_SCHEDULE = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pod is not admitted, as its status says it."""

    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"


def refuse(policy: Policy, pod: Pod, conditions: Collection[Condition]) -> Refusal | None:
    """Return why a pod may not come now, or None if it may."""
    if not conditions or policy.protects(pod):
        return None
    if set(conditions) == {Condition.MEMORY_PRESSURE} and (
        qos_class(pod) is not QOSClass.BEST_EFFORT or _tolerates_memory_pressure(pod)
    ):
        return None
    return Refusal(REASON, node_had_conditions(conditions))


def _tolerates_memory_pressure(pod: Pod) -> bool:
    return any(_matches(toleration) for toleration in pod.spec.tolerations)


def _matches(toleration: Toleration) -> bool:
    """Tell whether a toleration covers the taint of memory pressure, which has no value."""
    if toleration.effect not in (None, "", NO_SCHEDULE):
        return False
    if toleration.key not in (None, "", MEMORY_PRESSURE_TAINT):
        return False
    if toleration.operator in (None, "", "Equal"):
        return not toleration.value
    return toleration.operator == "Exists"
