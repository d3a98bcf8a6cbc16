"""Pods for the tests of the resource managers."""

from collections.abc import Mapping

from nodeagent.api.meta import ObjectMeta
from nodeagent.api.pod import Container, Pod, PodSpec, ResourceRequirements
from nodeagent.api.quantity import Quantity


def container(
    name: str,
    cpu: str = "",
    memory: str = "64Mi",
    *,
    sidecar: bool = False,
    more: Mapping[str, str] | None = None,
) -> Container:
    """A container whose limits are its requests; without `cpu` it requests nothing."""
    amounts = {"cpu": cpu, "memory": memory, **(more or {})} if cpu else {}
    quantities = {resource: Quantity.parse(amount) for resource, amount in amounts.items()}
    return Container(
        name=name,
        image="x",
        resources=ResourceRequirements(requests=quantities, limits=quantities),
        restart_policy="Always" if sidecar else None,
    )


def pod(uid: str, *containers: Container, init: tuple[Container, ...] = ()) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=uid, namespace="default", uid=uid),
        spec=PodSpec(containers=containers, init_containers=init),
    )
