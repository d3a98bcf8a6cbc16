"""What an agent does about the pods that an earlier one left, before it looks at any new one."""

import logging
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from nodeagent.api.pod import Pod
from nodeagent.pods.cgroups import PodCgroups
from nodeagent.pods.containers import ContainerRecords, forget_pod
from nodeagent.pods.events import EventRecorder
from nodeagent.pods.record import PodRecord
from nodeagent.resources.hotplug import Displacement
from nodeagent.resources.managers import ResourceManagers
from nodeagent.runtime.process import ProcessRuntime

logger = logging.getLogger(__name__)


async def remove_orphans(
    known_uids: AbstractSet[str], cgroups: PodCgroups, runtime: ProcessRuntime, records: ContainerRecords
) -> AbstractSet[str]:
    """End the pods that nothing wants any more; return the UIDs of those that had containers."""
    orphans = records.pod_uids() - known_uids
    for uid in orphans:
        logger.warning("pod %s is no longer wanted by anything: ending its containers", uid)
    for path in await cgroups.remove_orphans(known_uids):
        logger.warning("removed %s, which belongs to no pod", path)
    for uid in orphans:
        await forget_pod(runtime, records, uid)
    return orphans


def readmit(stored: Iterable[PodRecord], managers: ResourceManagers, events: EventRecorder) -> None:
    """Let the pods that run already keep what they hold."""
    active = [record.pod for record in stored if record.admitted and not record.is_over]
    for pod in active:
        admission = managers.admit(pod, active)
        if not admission.admitted:
            events.pod(pod, admission.reason, f"{admission.message}; it runs on", warning=True)


def report_state_files(managers: ResourceManagers, events: EventRecorder) -> None:
    """Say which state files do not suit, and what mends them."""
    for problem in managers.problems:
        events.node("StateFileProblem", str(problem), warning=True)


def refresh_state_files(managers: ResourceManagers, events: EventRecorder) -> None:
    """Write the files that an operator has put aside, and say so of those that did not suit."""
    problems = set(managers.problems)
    managers.refresh()
    for problem in problems - set(managers.problems):
        events.node("StateFileRenewed", f"{problem.path} is written again, from what the pods hold")


def report_displaced(
    displacements: Iterable[Displacement], pods: Iterable[Pod], events: EventRecorder
) -> None:
    """Tell of each container whose own CPUs went offline, or are all there again."""
    by_uid = {pod.metadata.uid: pod for pod in pods}
    for each in displacements:
        if each.pod_uid in by_uid:
            reason = "ExclusiveCPUsOffline" if each.missing else "ExclusiveCPUsOnline"
            events.pod(by_uid[each.pod_uid], reason, str(each), warning=bool(each.missing))
