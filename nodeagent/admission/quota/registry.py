"""Which evaluator measures which kind of object."""

from collections.abc import Mapping
from typing import Any

from nodeagent.admission.quota.evaluator import Evaluator
from nodeagent.admission.quota.objects import (
    PersistentVolumeClaimEvaluator,
    ResourceClaimEvaluator,
    ServiceEvaluator,
)
from nodeagent.admission.quota.pods import PodEvaluator
from nodeagent.admission.request import GroupResource

# Kinds that quotas count by their bare plural too.
_OLD_KINDS = ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")
# Events would soon use up any quota, and nobody could then see why.
_NEVER_CHARGED = GroupResource("events")

_KNOWN: tuple[Evaluator[Any], ...] = (
    PodEvaluator(),
    ServiceEvaluator(),
    PersistentVolumeClaimEvaluator(),
    ResourceClaimEvaluator(),
    *(Evaluator(GroupResource(kind), kind) for kind in _OLD_KINDS),
)
EVALUATORS: Mapping[GroupResource, Evaluator[Any]] = {each.resource: each for each in _KNOWN}


def evaluator_of(resource: GroupResource) -> Evaluator[Any] | None:
    """Return what measures objects of a kind: any kind is at least counted, but for events."""
    if resource == _NEVER_CHARGED:
        return None
    return EVALUATORS.get(resource) or Evaluator(resource)
