"""Groups as their users see them: the debug endpoint's body, and what is written back to the objects."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from nodeagent.admission.elastic_quota import names
from nodeagent.admission.elastic_quota.amounts import Amounts, masked, same
from nodeagent.admission.elastic_quota.group import Group
from nodeagent.api.elastic_quota import PREFIX, ElasticQuota


def debug_body(group: Group, tree_id: str, *, with_pods: bool = False) -> dict[str, Any]:
    """Return a group in the shape of Koordinator's debug endpoint."""
    body: dict[str, Any] = {
        "name": group.name,
        "parentName": group.parent,
        "isParent": group.is_parent,
        "allowLentResource": group.lends,
        "tree": tree_id,
        "max": group.max,
        "min": group.min,
        "sharedWeight": group.shared_weight,
        "autoScaleMin": group.auto_scale_min,
        "runtime": group.runtime or {},
        "request": group.all.request,
        "childRequest": group.child_request,
        "used": group.all.used,
        "nonPreemptibleRequest": group.all.non_preemptible_request,
        "nonPreemptibleUsed": group.all.non_preemptible_used,
        "allocated": group.allocated,
        "guaranteed": group.guaranteed,
        "selfRequest": group.own.request,
        "selfUsed": group.own.used,
        "selfNonPreemptibleRequest": group.own.non_preemptible_request,
        "selfNonPreemptibleUsed": group.own.non_preemptible_used,
    }
    written = {name: _written(value) if isinstance(value, Mapping) else value for name, value in body.items()}
    if with_pods and group.pods:
        written["podCache"] = {
            key: {"isAssigned": pod.is_assigned, "resource": _written(pod.request)}
            for key, pod in group.pods.items()
        }
    return written


def status_change(group: Group) -> ElasticQuota | None:
    """Return the object with the annotations and the use that it should show; None where it does already."""
    quota = group.quota
    wanted: dict[str, Amounts] = {
        "request": group.all.request,
        "child-request": group.child_request,
        "runtime": masked(group.runtime or {}, group.max.keys()),
        "guaranteed": group.guaranteed,
        "allocated": group.allocated,
        "non-preemptible-request": group.all.non_preemptible_request,
        "non-preemptible-used": group.all.non_preemptible_used,
    }
    annotations = dict(quota.metadata.annotations)
    for name, value in wanted.items():
        if not same(_read(annotations.get(PREFIX + name, "")), value):
            annotations[PREFIX + name] = names.amounts_text(value)
    used = quota.status.used if same(quota.status.used, group.all.used) else group.all.used
    if annotations == quota.metadata.annotations and used is quota.status.used:
        return None
    return replace(
        quota,
        metadata=replace(quota.metadata, annotations=annotations),
        status=replace(quota.status, used=dict(used)),
    )


def _read(text: str) -> Amounts:
    try:
        return names.read_amounts(text)
    except ValueError:
        return {}


def _written(amounts: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(quantity) for name, quantity in amounts.items()}
