"""kubelet's preemption: which running pods make room for a critical one, when resources are all it lacks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nodeagent.api.pod import Pod
from nodeagent.api.qos import QOSClass, is_critical, qos_class
from nodeagent.api.resources import pod_requests
from nodeagent.scheduling.fit import Comparison, Failure, amounts

REASON = "Preempting"
MESSAGE = "Preempted in order to admit critical pod"
# The pod's DisruptionTarget condition.
CONDITION_REASON = "TerminationByKubelet"
CONDITION_MESSAGE = "Pod was preempted by Kubelet to accommodate a critical pod."

_NOBODY = (
    "preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: "
)


@dataclass(frozen=True, slots=True)
class Preemption:
    """Whom to kill, in order; or why the pod stays refused (`remaining` failures, or `error`)."""

    victims: tuple[Pod, ...] = ()
    remaining: tuple[Failure, ...] = ()
    error: str = ""

    @property
    def admits(self) -> bool:
        """Whether the pod is admitted once the victims are gone."""
        return not self.remaining and not self.error


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A pod that may be preempted, with what its end would free."""

    pod: Pod
    freed: Mapping[str, int]


def preempt(pod: Pod, failures: Sequence[Failure], running: Iterable[Pod]) -> Preemption:
    """Choose the pods that a critical pod displaces; others displace none, other failures have no remedy."""
    if not is_critical(pod):
        return Preemption(remaining=tuple(failures))
    shortages = [each for each in failures if isinstance(each, Comparison)]
    if len(shortages) < len(failures):
        return Preemption(remaining=tuple(each for each in failures if not isinstance(each, Comparison)))
    needs = {each.resource: each.shortage for each in shortages}

    of_class: dict[QOSClass, list[_Candidate]] = {each: [] for each in QOSClass}
    for other in running:
        if may_preempt(pod, other):
            of_class[qos_class(other)].append(_Candidate(other, _freed(other)))
    best_effort, burstable = of_class[QOSClass.BEST_EFFORT], of_class[QOSClass.BURSTABLE]
    guaranteed = of_class[QOSClass.GUARANTEED]

    lacking = _still_needed(needs, [*best_effort, *burstable, *guaranteed])
    if lacking:
        return Preemption(error=_NOBODY + _text(lacking))
    # From the best class down, each gives only what all the lower ones together could not.
    chosen_guaranteed = _nearest(guaranteed, _still_needed(needs, [*best_effort, *burstable]))
    chosen_burstable = _nearest(burstable, _still_needed(needs, [*best_effort, *chosen_guaranteed]))
    chosen_best_effort = _nearest(best_effort, _still_needed(needs, [*chosen_burstable, *chosen_guaranteed]))
    chosen = [*chosen_best_effort, *chosen_burstable, *chosen_guaranteed]
    return Preemption(victims=tuple(each.pod for each in chosen))


def may_preempt(preemptor: Pod, victim: Pod) -> bool:
    """Whether the one pod is worth the other: critical over not critical, then the higher given priority."""
    if is_critical(preemptor) and not is_critical(victim):
        return True
    mine, its = preemptor.spec.priority, victim.spec.priority
    return mine is not None and its is not None and mine > its


def _freed(pod: Pod) -> dict[str, int]:
    bare = amounts(pod_requests(pod, overhead=False))
    overhead = amounts(pod.spec.overhead)
    # kubelet counts a pod's overhead only beside a request for the same resource.
    freed = {name: amount + overhead.get(name, 0) for name, amount in bare.items() if amount}
    return freed | {"pods": 1}


def _still_needed(needs: Mapping[str, int], candidates: Iterable[_Candidate]) -> dict[str, int]:
    left = dict(needs)
    for candidate in candidates:
        for name in left:
            left[name] -= candidate.freed.get(name, 0)
    return {name: amount for name, amount in left.items() if amount > 0}


def _nearest(candidates: Sequence[_Candidate], needs: Mapping[str, int]) -> list[_Candidate]:
    """Take the candidate closest to what is still needed, until nothing is; they are known to suffice."""
    left = list(candidates)
    chosen = []
    while needs:
        best = 0
        for index, candidate in enumerate(left):
            distance, shortest = _distance(needs, candidate), _distance(needs, left[best])
            # Of two equals the smaller goes, and the later when they are equal in that too.
            if distance < shortest or (distance == shortest and _size(candidate) <= _size(left[best])):
                best = index
        chosen.append(left[best])
        needs = _still_needed(needs, [left[best]])
        # The last takes the place of the chosen one, as in the original: it decides later ties.
        left[best] = left[-1]
        left.pop()
    return chosen


def _distance(needs: Mapping[str, int], candidate: _Candidate) -> float:
    missing = ((need, max(0, need - candidate.freed.get(name, 0))) for name, need in needs.items())
    return float(sum((short / need) ** 2 for need, short in missing))


def _size(candidate: _Candidate) -> tuple[int, int]:
    return candidate.freed.get("memory", 0), candidate.freed.get("cpu", 0)


def _text(needs: Mapping[str, int]) -> str:
    return "[" + "".join(f"(res: {name}, q: {amount}), " for name, amount in needs.items()) + "]"
