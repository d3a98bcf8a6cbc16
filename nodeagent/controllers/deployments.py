"""Deployments: one ReplicaSet a template; the newest has pods once the others have given theirs up."""

from collections.abc import Sequence

from nodeagent.cluster.kinds import DEPLOYMENT, REPLICA_SET
from nodeagent.controllers.objects import (
    HASH_LABEL,
    Action,
    Create,
    Delete,
    Json,
    Scale,
    Tell,
    is_going,
    owned_by,
    reference_to,
    template_hash,
)

REVISION = "deployment.kubernetes.io/revision"


def decide(deployment: Json, replica_sets: Sequence[Json]) -> list[Action]:
    """Roll over by recreating: the old pods go, then the new ones come, so that no quota is passed."""
    if is_going(deployment):
        return []
    spec = deployment["spec"]
    own = [each for each in owned_by(deployment, replica_sets) if not is_going(each)]
    short = template_hash(spec.get("template") or {})
    newest = next((each for each in own if each["metadata"]["labels"].get(HASH_LABEL) == short), None)
    old = [each for each in own if each is not newest]
    leaving = sum(_count(each) for each in old)
    wanted = 0 if leaving else int(spec.get("replicas", 1))
    actions: list[Action] = []
    if not spec.get("paused"):
        actions += [Scale(REPLICA_SET, each, 0) for each in old if each["spec"].get("replicas") != 0]
        if newest is None:
            actions.append(Create(REPLICA_SET, _replica_set(deployment, own, short, wanted)))
        elif newest["spec"].get("replicas") != wanted:
            actions.append(Scale(REPLICA_SET, newest, wanted))
        kept = int(spec.get("revisionHistoryLimit", 10))
        idle = sorted((each for each in old if not _count(each)), key=_revision)
        actions += [Delete(REPLICA_SET, each) for each in idle[: max(len(idle) - kept, 0)]]
    return [*actions, Tell(DEPLOYMENT, deployment, _status(deployment, newest, own))]


def _replica_set(deployment: Json, own: Sequence[Json], short: str, replicas: int) -> Json:
    spec, meta = deployment["spec"], deployment["metadata"]
    template = spec.get("template") or {}
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: short}
    selector = spec.get("selector") or {}
    revision = max(map(_revision, own), default=0) + 1
    return {
        "metadata": {
            "name": f"{meta['name'][:52]}-{short}",
            "namespace": meta["namespace"],
            "labels": labels,
            "annotations": {REVISION: str(revision)},
            "ownerReferences": [reference_to(DEPLOYMENT, deployment)],
        },
        "spec": {
            "replicas": replicas,
            "selector": {
                **selector,
                "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: short},
            },
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }


def _status(deployment: Json, newest: Json | None, own: Sequence[Json]) -> Json:
    total = {
        name: sum(int(each.get("status", {}).get(name, 0)) for each in own)
        for name in ("replicas", "readyReplicas", "availableReplicas")
    }
    wanted = int(deployment["spec"].get("replicas", 1))
    is_available = total["availableReplicas"] >= wanted
    return {
        **total,
        "updatedReplicas": _count(newest) if newest is not None else 0,
        "unavailableReplicas": max(wanted - total["availableReplicas"], 0),
        "observedGeneration": deployment["metadata"].get("generation", 1),
        "conditions": [
            {
                "type": "Available",
                "status": "True" if is_available else "False",
                "reason": "MinimumReplicasAvailable" if is_available else "MinimumReplicasUnavailable",
                "message": f"Deployment {'has' if is_available else 'does not have'} minimum availability.",
            }
        ],
    }


def _count(replica_set: Json) -> int:
    return int(replica_set.get("status", {}).get("replicas", 0))


def _revision(replica_set: Json) -> int:
    text = replica_set["metadata"].get("annotations", {}).get(REVISION, "0")
    return int(text) if text.isdigit() else 0
