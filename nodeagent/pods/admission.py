"""May a pod come to this node now: pressure, room, and the resource managers, asked in kubelet's order."""

from collections.abc import Callable, Collection, Sequence

from nodeagent.api.pod import Pod
from nodeagent.eviction.admission import refuse
from nodeagent.eviction.manager import Policy
from nodeagent.eviction.signals import Condition
from nodeagent.pods.worker import Refusal
from nodeagent.resources.managers import ResourceManagers
from nodeagent.scheduling.fit import NodeView, fit


class NodeAdmission:
    """Admits pods; what it admits holds its CPUs, memory and devices until it is released."""

    def __init__(
        self,
        node: Callable[[], NodeView],
        managers: ResourceManagers,
        policy: Policy,
        conditions: Callable[[], Collection[Condition]],
        rivals_of: Callable[[Pod], Sequence[Pod]],
    ) -> None:
        self._node = node
        self._managers = managers
        self._policy = policy
        self._conditions = conditions
        self._rivals_of = rivals_of

    def admit(self, pod: Pod) -> Refusal | None:
        """Return why the pod may not run here now, or None and let it have what it asks for."""
        pressure = refuse(self._policy, pod, self._conditions())
        if pressure is not None:
            return Refusal(pressure.reason, pressure.message)
        others = self._rivals_of(pod)
        fits = fit(pod, self._node(), others)
        if not fits.fits:
            return Refusal(fits.reason, fits.message)
        admission = self._managers.admit(pod, others)
        return None if admission.admitted else Refusal(admission.reason, admission.message)

    def may_return(self) -> bool:
        """Say whether evicted pods may be tried again: the node is under no pressure."""
        return not self._conditions()

    def release(self, pod_uid: str) -> None:
        """Take back what the pod held."""
        self._managers.remove(pod_uid)
