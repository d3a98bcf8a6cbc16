"""ReplicaSets and ReplicationControllers: as many pods as they say."""

from collections.abc import Sequence

from nodeagent.cluster.kinds import POD, Kind
from nodeagent.controllers.objects import (
    Action,
    Create,
    Delete,
    Json,
    Tell,
    from_template,
    is_going,
    is_ready,
    owned_by,
)


def decide(kind: Kind, owner: Json, pods: Sequence[Json]) -> list[Action]:
    """Create what is missing, delete what is too much: those that are not ready first, then the youngest.

    A pod that the node has refused or evicted stays: the node tries it again by itself.
    """
    own = [pod for pod in owned_by(owner, pods) if not is_going(pod)]
    spec = owner["spec"]
    wanted = 0 if is_going(owner) else int(spec.get("replicas", 1))
    actions: list[Action] = []
    if not is_going(owner):
        template = spec.get("template") or {}
        actions += [Create(POD, from_template(kind, owner, template, {})) for _ in range(wanted - len(own))]
        expendable = sorted(reversed(own), key=is_ready)
        actions += [Delete(POD, pod) for pod in expendable[: max(len(own) - wanted, 0)]]
    ready = sum(map(is_ready, own))
    status = {
        "replicas": len(own),
        "fullyLabeledReplicas": len(own),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "observedGeneration": owner["metadata"].get("generation", 1),
    }
    return [*actions, Tell(kind, owner, status)]
