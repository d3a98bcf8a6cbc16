"""Jobs: pods until enough have succeeded, or too many have failed."""

from collections.abc import Sequence

from nodeagent.cluster.kinds import JOB, POD
from nodeagent.controllers.objects import (
    Action,
    Create,
    Delete,
    Json,
    Tell,
    from_template,
    is_going,
    owned_by,
    phase_of,
    uid_of,
)

_ENDS = ("Complete", "Failed")
_PREFIX = "batch.kubernetes.io/"


def decide(job: Json, pods: Sequence[Json], now: str) -> list[Action]:
    """Keep `parallelism` pods at work while there is work; `now` is written when it is over."""
    status: Json = job.get("status", {})
    if is_going(job) or any(
        each.get("type") in ("Complete", "Failed") for each in status.get("conditions", [])
    ):
        return []
    spec = job["spec"]
    own = owned_by(job, pods)
    succeeded = sum(phase_of(pod) == "Succeeded" for pod in own)
    failed = sum(phase_of(pod) == "Failed" for pod in own)
    active = [pod for pod in own if phase_of(pod) in ("Pending", "Running") and not is_going(pod)]
    completions = int(spec.get("completions") or 1)
    is_failed, is_complete = failed > int(spec.get("backoffLimit", 6)), succeeded >= completions
    wanted = min(int(spec.get("parallelism", 1)), completions - succeeded)
    if is_failed or is_complete or spec.get("suspend"):
        wanted = 0
    template = spec.get("template") or {}
    labels = {
        "batch.kubernetes.io/job-name": job["metadata"]["name"],
        "batch.kubernetes.io/controller-uid": uid_of(job),
    }
    actions: list[Action] = [
        Create(POD, from_template(JOB, job, template, labels)) for _ in range(wanted - len(active))
    ]
    actions += [Delete(POD, pod) for pod in active[max(wanted, 0) :]]
    told: Json = {
        **status,
        "active": min(len(active), max(wanted, 0)),
        "succeeded": succeeded,
        "failed": failed,
    }
    told.setdefault("startTime", now)
    if is_complete or is_failed:
        told["conditions"] = [_end(is_complete, now)]
        told |= {"completionTime": now} if is_complete else {}
    return [*actions, Tell(JOB, job, told)]


def _end(is_complete: bool, now: str) -> Json:
    words = ("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    if not is_complete:
        words = ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    kind, reason, message = words
    return {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now}
