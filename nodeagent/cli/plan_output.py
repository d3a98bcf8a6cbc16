"""A plan as text for people, and as data that carries all of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nodeagent.api.qos import pod_priority, qos_class
from nodeagent.api.quantity import Quantity
from nodeagent.api.resources import pod_limits, pod_requests
from nodeagent.cli.amounts import comparison_sentence
from nodeagent.cli.plan_manifests import Refused
from nodeagent.cli.planning import Plan, PlannedCgroup, PlannedContainer, PlannedNode, PlannedPod
from nodeagent.scheduling.fit import Comparison

_INDENT = "  "


def plan_text(plan: Plan, node: PlannedNode) -> str:
    """The node, then every pod with the decision, the reasons, and what would be written."""
    topology = node.topology
    lines = [
        f"Node {node.view.name}: CPUs {topology.online}, {len(topology.sockets)} sockets, "
        f"{len(topology.numa_nodes)} NUMA nodes",
        f"{_INDENT}capacity:    {_amounts(node.capacity)}",
        f"{_INDENT}allocatable: {_amounts(node.view.allocatable)}",
    ]
    for cgroup in plan.upper:
        lines += _cgroup_lines(cgroup, _INDENT)
    for planned in plan.pods:
        lines += ["", *_pod_lines(planned)]
    admitted = sum(planned.admitted for planned in plan.pods)
    return "\n".join(
        [*lines, "", f"{len(plan.pods)} pods: {admitted} admitted, {len(plan.pods) - admitted} refused"]
    )


def _pod_lines(planned: PlannedPod) -> Iterator[str]:
    pod = planned.pod
    verdict = "admitted" if planned.admitted else f"refused, {planned.reason}: {planned.message}"
    yield f"Pod {pod.metadata.namespace}/{pod.metadata.name} ({planned.source}): {qos_class(pod)}, {verdict}"
    yield f"{_INDENT}requests: {_amounts(pod_requests(pod))}"
    yield f"{_INDENT}limits:   {_amounts(pod_limits(pod))}"
    for sentence in reasons(planned):
        yield f"{_INDENT}because:  {sentence}"
    if planned.cgroup is not None:
        yield from _cgroup_lines(planned.cgroup, _INDENT)
    for container in planned.containers:
        yield f"{_INDENT}{container.kind} container {container.name}: {_placement(container)}"
        yield from _cgroup_lines(container.cgroup, 2 * _INDENT)


def reasons(planned: PlannedPod) -> list[str]:
    """What was compared and what decided, as sentences."""
    sentences = list(planned.policy)
    if planned.fit is not None:
        sentences += [comparison_sentence(comparison) for comparison in planned.fit.comparisons]
        failures = (each for each in planned.fit.failures if not isinstance(each, Comparison))
        sentences += [failure.message for failure in failures]
    return sentences + list(planned.admission.explanation if planned.admission else ())


def _placement(container: PlannedContainer) -> str:
    words = f"{'exclusive ' if container.exclusive else ''}CPUs {container.cpus or 'all'}"
    if container.mems:
        words += f", memory of NUMA nodes {container.mems}"
    return f"{words}, oom_score_adj {container.oom_score_adj}"


def _cgroup_lines(cgroup: PlannedCgroup, indent: str) -> Iterator[str]:
    yield f"{indent}{cgroup.path}"
    width = max((len(file) for file in cgroup.values), default=0)
    for file, text in cgroup.values.items():
        yield f"{indent}{_INDENT}{file.ljust(width)}  {text}"


def _amounts(amounts: Mapping[str, Quantity]) -> str:
    return ", ".join(f"{name} {quantity}" for name, quantity in sorted(amounts.items())) or "nothing"


def plan_data(plan: Plan, node: PlannedNode, refused: Sequence[Refused]) -> dict[str, Any]:
    """Everything in the plan, in Kubernetes' spelling."""
    topology = node.topology
    return {
        "node": {
            "name": node.view.name,
            "cpus": str(topology.online),
            "sockets": len(topology.sockets),
            "cores": len(topology.cores),
            "numaNodes": len(topology.numa_nodes),
            "capacity": _amount_data(node.capacity),
            "allocatable": _amount_data(node.view.allocatable),
            "sharedCPUs": str(node.managers.shared_pool),
            "cgroups": [_cgroup_data(cgroup) for cgroup in plan.upper],
        },
        "pods": [_pod_data(planned) for planned in plan.pods],
        "refused": [{"source": item.source, "errors": item.sentence.splitlines()} for item in refused],
        "ok": not refused and all(planned.admitted for planned in plan.pods),
    }


def _pod_data(planned: PlannedPod) -> dict[str, Any]:
    pod = planned.pod
    data: dict[str, Any] = {
        "namespace": pod.metadata.namespace,
        "name": pod.metadata.name,
        "uid": pod.metadata.uid,
        "source": planned.source,
        "qosClass": str(qos_class(pod)),
        "priority": pod_priority(pod),
        "requests": _amount_data(pod_requests(pod)),
        "limits": _amount_data(pod_limits(pod)),
        "admitted": planned.admitted,
        "reason": planned.reason,
        "message": planned.message,
        "comparisons": [_comparison_data(each) for each in (planned.fit.comparisons if planned.fit else ())],
        "because": reasons(planned),
    }
    if planned.cgroup is not None:
        data["cgroup"] = _cgroup_data(planned.cgroup)
    data["containers"] = [_container_data(container) for container in planned.containers]
    return data


def _container_data(container: PlannedContainer) -> dict[str, Any]:
    return {
        "name": container.name,
        "kind": container.kind,
        "cpus": container.cpus,
        "exclusive": container.exclusive,
        "mems": container.mems,
        "oomScoreAdj": container.oom_score_adj,
        "cgroup": _cgroup_data(container.cgroup),
    }


def _comparison_data(comparison: Comparison) -> dict[str, Any]:
    return {
        "resource": comparison.resource,
        "requested": comparison.requested,
        "used": comparison.used,
        "capacity": comparison.capacity,
        "fits": comparison.fits,
    }


def _cgroup_data(cgroup: PlannedCgroup) -> dict[str, Any]:
    return {"path": cgroup.path, "values": dict(cgroup.values)}


def _amount_data(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(quantity) for name, quantity in sorted(amounts.items())}
