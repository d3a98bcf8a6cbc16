"""May this object be stored: admission for every kind, in the API server's order; pure."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from msgspec import structs

from nodeagent.admission import limit_range, resource_quota
from nodeagent.admission.chain import admit_request
from nodeagent.admission.policies import Policies
from nodeagent.admission.priority_class import admit_priority_class
from nodeagent.admission.refusal import Refusal, invalid
from nodeagent.admission.request import Operation, Request
from nodeagent.api.errors import FieldError
from nodeagent.api.errors import forbidden as forbidden_field
from nodeagent.api.pod import Pod
from nodeagent.api.policy import PriorityClass, ResourceQuota
from nodeagent.cluster import codec
from nodeagent.cluster.elastic_quotas import admit_group, check_pod
from nodeagent.cluster.errors import refused
from nodeagent.cluster.kinds import ELASTIC_QUOTA, PERSISTENT_VOLUME_CLAIM, POD, PRIORITY_CLASS, Kind

_POD_UPDATES = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
    "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)

Admitted = tuple[Any, Sequence[ResourceQuota]]
"""The object as it may be stored, and the quotas whose `status.used` grows with it."""


def admit(
    kind: Kind, request: Request[Any], policies: Policies, pods: Callable[[], Sequence[Pod]], now: datetime
) -> Admitted:
    """Return the object as policy makes it; raises ApiError. `pods` tells which there are."""
    if kind is POD:
        return _admit_pod(request, policies, now)
    codec.validate(kind, request.object)
    if kind is PRIORITY_CLASS:
        errors = _changed_value(request)
        _raise(kind, request, invalid(kind.qualified, request.name, errors) if errors else None)
        _raise(kind, request, admit_priority_class(request, policies.priority_classes))
    if kind is ELASTIC_QUOTA:
        request = replace(request, object=admit_group(request, policies, pods()))
    if kind is PERSISTENT_VOLUME_CLAIM:
        ranges = policies.limit_ranges_of(request.object.metadata.namespace)
        _raise(kind, request, limit_range.check_claim(request, ranges).refusal)
    quotas = policies.quotas_of(request.object.metadata.namespace) if kind.namespaced else ()
    decision = resource_quota.check(request, quotas, now, policies.limited_resources)
    _raise(kind, request, decision.refusal)
    return request.object, decision.changed


def _admit_pod(request: Request[Pod], policies: Policies, now: datetime) -> Admitted:
    if request.operation is Operation.UPDATE and request.old is not None and not request.subresource:
        errors = pod_update_errors(request.object, request.old)
        _raise(POD, request, invalid("Pod", request.name, errors) if errors else None)
    if request.operation is Operation.CREATE:
        check_pod(request.object, policies)
    outcome = admit_request(request, policies, now)
    _raise(POD, request, outcome.refusal)
    return outcome.pod, outcome.changed


def pod_update_errors(pod: Pod, old: Pod) -> tuple[FieldError, ...]:
    """Return what an update may not change; nothing if it keeps to what may."""
    spec = structs.replace(
        pod.spec,
        active_deadline_seconds=old.spec.active_deadline_seconds,
        containers=_with_images_of(pod.spec.containers, old.spec.containers),
        init_containers=_with_images_of(pod.spec.init_containers, old.spec.init_containers),
        priority=old.spec.priority if pod.spec.priority is None else pod.spec.priority,
        preemption_policy=pod.spec.preemption_policy or old.spec.preemption_policy,
        node_name=pod.spec.node_name or old.spec.node_name,
        tolerations=old.spec.tolerations
        if set(old.spec.tolerations) <= set(pod.spec.tolerations)
        else pod.spec.tolerations,
    )
    return () if spec == old.spec else (forbidden_field("spec", _POD_UPDATES),)


def _with_images_of(containers: Sequence[Any], old: Sequence[Any]) -> tuple[Any, ...]:
    if len(containers) != len(old):
        return tuple(containers)
    return tuple(
        structs.replace(new, image=before.image) for new, before in zip(containers, old, strict=True)
    )


def _changed_value(request: Request[PriorityClass]) -> tuple[FieldError, ...]:
    """A class keeps its value: the pods that name it have it already."""
    old, new = request.old, request.object
    if old is None:
        return ()
    may_not = "may not be changed in an update."
    return tuple(
        forbidden_field(path, may_not)
        for path, before, after in (
            ("value", old.value, new.value),
            ("preemptionPolicy", old.preemption_policy, new.preemption_policy),
        )
        if before != after
    )


def _raise(kind: Kind, request: Request[Any], refusal: Refusal | None) -> None:
    if refusal is not None:
        raise refused(refusal, kind, request.name)
