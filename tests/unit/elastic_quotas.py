"""Elastic quota groups, nodes and pods for tests: amounts are whole CPUs and GiB."""

from nodeagent.api.elastic_quota import PREFIX, ElasticQuota, ElasticQuotaSpec
from nodeagent.api.meta import ObjectMeta
from nodeagent.api.node import Node, NodeStatus
from nodeagent.api.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from nodeagent.api.quantity import BINARY_SI, Quantity

GIB = 1 << 30


def amounts(cpus: int, gib: int) -> dict[str, Quantity]:
    return {"cpu": Quantity.of(cpus), "memory": Quantity.of(gib * GIB, BINARY_SI)}


def quota(
    name: str,
    least: tuple[int, int],
    most: tuple[int, int],
    *,
    parent: str = "",
    is_parent: bool = False,
    lends: bool = True,
) -> ElasticQuota:
    labels = {PREFIX + "is-parent": "true" if is_parent else "false"}
    labels |= {PREFIX + "parent": parent} if parent else {}
    labels |= {} if lends else {PREFIX + "allow-lent-resource": "false"}
    return ElasticQuota(
        metadata=ObjectMeta(name=name, namespace="teams", labels=labels),
        spec=ElasticQuotaSpec(min=amounts(*least), max=amounts(*most)),
    )


def quota_node(name: str, cpus: int, gib: int) -> Node:
    return Node(metadata=ObjectMeta(name=name), status=NodeStatus(allocatable=amounts(cpus, gib)))


def quota_pod(
    name: str,
    group: str,
    cpus: int,
    gib: int,
    *,
    node: str = "",
    priority: int = 0,
    preemptible: bool = True,
    started: str | None = None,
) -> Pod:
    labels = {PREFIX + "name": group} | ({} if preemptible else {PREFIX + "preemptible": "false"})
    container = Container(name="main", resources=ResourceRequirements(requests=amounts(cpus, gib)))
    return Pod(
        metadata=ObjectMeta(name=name, namespace="teams", uid=name, labels=labels),
        spec=PodSpec(containers=(container,), node_name=node, priority=priority),
        status=PodStatus(phase="Running" if node else "Pending", start_time=started),
    )
