"""StatefulSets: pods with numbers, which come in order and go in the other."""

from collections.abc import Sequence

from nodeagent.cluster.kinds import POD, STATEFUL_SET
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

NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"


def decide(owner: Json, pods: Sequence[Json]) -> list[Action]:
    """Create the first that is missing once those before it are ready; delete the last that is too much."""
    if is_going(owner):
        return []
    meta, spec = owner["metadata"], owner["spec"]
    own = {pod["metadata"]["name"]: pod for pod in owned_by(owner, pods)}
    wanted = [f"{meta['name']}-{number}" for number in range(int(spec.get("replicas", 1)))]
    in_parallel = spec.get("podManagementPolicy") == "Parallel"
    actions: list[Action] = []
    for number, name in enumerate(wanted):
        pod = own.get(name)
        if pod is None:
            labels = {NAME_LABEL: name, INDEX_LABEL: str(number)}
            actions.append(
                Create(POD, from_template(STATEFUL_SET, owner, spec.get("template") or {}, labels, name))
            )
        if not in_parallel and (pod is None or is_going(pod) or not is_ready(pod)):
            break
    surplus = sorted(set(own) - set(wanted), key=lambda name: int(name.rpartition("-")[2]), reverse=True)
    going = [name for name in surplus if is_going(own[name])]
    if surplus and (in_parallel or not going):
        actions += [Delete(POD, own[name]) for name in (surplus if in_parallel else surplus[:1])]
    present = [pod for pod in own.values() if not is_going(pod)]
    status = {
        "replicas": len(present),
        "currentReplicas": len(present),
        "readyReplicas": sum(map(is_ready, present)),
        "availableReplicas": sum(map(is_ready, present)),
        "observedGeneration": meta.get("generation", 1),
    }
    return [*actions, Tell(STATEFUL_SET, owner, status)]
