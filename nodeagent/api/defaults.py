"""What the API server fills into a pod before anything else sees it (core/v1 defaulting, Kubernetes 1.36)."""

from typing import TypeVar

from msgspec import Struct
from msgspec.structs import fields, replace

from nodeagent.api.pod import (
    Container,
    ContainerPort,
    EmptyDirVolumeSource,
    Lifecycle,
    LifecycleHandler,
    Pod,
    PodSecurityContext,
    PodSpec,
    Probe,
    ResourceRequirements,
    Volume,
)
from nodeagent.api.resources import (
    CPU,
    HUGEPAGES_PREFIX,
    MEMORY,
    Resources,
    aggregate_limits,
    aggregate_requests,
    is_pod_level_resource,
)

T = TypeVar("T", bound=Struct)
ContainerT = TypeVar("ContainerT", bound=Container)
HandlerT = TypeVar("HandlerT", LifecycleHandler, Probe)

FILE_MODE = 0o644
TERMINATION_GRACE_PERIOD_SECONDS = 30
_VOLUME_SOURCES = tuple(field.name for field in fields(Volume) if field.name != "name")


def default_pod(pod: Pod) -> Pod:
    """Return the pod with what the API server would fill in where nothing is said; idempotent."""
    spec = _filled(
        pod.spec,
        restart_policy="Always",
        dns_policy="ClusterFirst",
        termination_grace_period_seconds=TERMINATION_GRACE_PERIOD_SECONDS,
        scheduler_name="default-scheduler",
        enable_service_links=True,
        security_context=PodSecurityContext(),
    )
    network = spec.host_network
    spec = replace(
        spec,
        containers=tuple(_container(container, network) for container in spec.containers),
        init_containers=tuple(_container(container, network) for container in spec.init_containers),
        ephemeral_containers=tuple(_fill_container(container) for container in spec.ephemeral_containers),
        volumes=tuple(map(_volume, spec.volumes)),
    )
    if spec.resources is not None:
        spec = replace(spec, resources=_pod_level_resources(replace(pod, spec=spec), spec.resources))
    # Rounding comes last: pod-level amounts are summed from what was written.
    return replace(pod, spec=_rounded_spec(spec))


def _filled(struct: T, **defaults: object) -> T:
    """Set each named field that is absent or empty; Go knows no difference."""
    absent = {name: value for name, value in defaults.items() if getattr(struct, name) in (None, "")}
    return replace(struct, **absent) if absent else struct


def _container(container: Container, host_network: bool) -> Container:
    container = _fill_container(container)
    return replace(
        container,
        resources=_requests_from_limits(container.resources),
        ports=tuple(_port(port, host_network) for port in container.ports),
    )


def _fill_container(container: ContainerT) -> ContainerT:
    container = _filled(
        container,
        image_pull_policy=image_pull_policy(container.image or ""),
        termination_message_path="/dev/termination-log",
        termination_message_policy="File",
    )
    return replace(
        container,
        ports=tuple(_filled(port, protocol="TCP") for port in container.ports),
        liveness_probe=_probe(container.liveness_probe),
        readiness_probe=_probe(container.readiness_probe),
        startup_probe=_probe(container.startup_probe),
        lifecycle=_lifecycle(container.lifecycle),
    )


def image_pull_policy(image: str) -> str:
    """Return the policy for an image reference that none was given for: Always for the tag `latest`."""
    name, _, digest = image.partition("@")
    _, _, tag = name.rpartition("/")[2].partition(":")
    return "Always" if image and (tag == "latest" or not (tag or digest)) else "IfNotPresent"


def _requests_from_limits(resources: ResourceRequirements) -> ResourceRequirements:
    if resources.limits.keys() <= resources.requests.keys():
        return resources
    return replace(resources, requests={**resources.limits, **resources.requests})


def _port(port: ContainerPort, host_network: bool) -> ContainerPort:
    return replace(port, host_port=port.container_port) if host_network and not port.host_port else port


def _probe(probe: Probe | None) -> Probe | None:
    if probe is None:
        return None
    if probe.grpc is not None:
        probe = replace(probe, grpc=_filled(probe.grpc, service=""))
    return replace(
        _handler(probe),
        timeout_seconds=probe.timeout_seconds or 1,
        period_seconds=probe.period_seconds or 10,
        success_threshold=probe.success_threshold or 1,
        failure_threshold=probe.failure_threshold or 3,
    )


def _lifecycle(lifecycle: Lifecycle | None) -> Lifecycle | None:
    if lifecycle is None:
        return None
    return replace(
        lifecycle,
        post_start=lifecycle.post_start and _handler(lifecycle.post_start),
        pre_stop=lifecycle.pre_stop and _handler(lifecycle.pre_stop),
    )


def _handler(handler: HandlerT) -> HandlerT:
    if handler.http_get is None:
        return handler
    return replace(handler, http_get=_filled(handler.http_get, path="/", scheme="HTTP"))


def _volume(volume: Volume) -> Volume:
    if all(getattr(volume, source) is None for source in _VOLUME_SOURCES):
        return replace(volume, empty_dir=EmptyDirVolumeSource())
    changes: dict[str, object] = {}
    for name in ("config_map", "secret", "downward_api", "projected"):
        source = getattr(volume, name)
        if source is not None:
            changes[name] = _filled(source, default_mode=FILE_MODE)
    if volume.host_path is not None:
        changes["host_path"] = _filled(volume.host_path, type="")
    return replace(volume, **changes) if changes else volume


def _pod_level_resources(pod: Pod, stated: ResourceRequirements) -> ResourceRequirements:
    """Complete `spec.resources` from the containers and from its own limits."""
    if not stated.requests and not stated.limits:
        return stated
    limits = dict(stated.limits)
    for name, amount in aggregate_limits(pod).items():
        if name.startswith(HUGEPAGES_PREFIX):
            limits.setdefault(name, amount)
    requests = dict(stated.requests)
    if limits:
        for name, amount in aggregate_requests(pod).items():
            if name in (CPU, MEMORY):
                requests.setdefault(name, amount)
        for name, amount in limits.items():
            if is_pod_level_resource(name):
                requests.setdefault(name, amount)
    return replace(stated, requests=requests, limits=limits)


def _rounded_spec(spec: PodSpec) -> PodSpec:
    return replace(
        spec,
        containers=tuple(map(_rounded_container, spec.containers)),
        init_containers=tuple(map(_rounded_container, spec.init_containers)),
        ephemeral_containers=tuple(map(_rounded_container, spec.ephemeral_containers)),
        resources=spec.resources and _rounded(spec.resources),
        overhead=_rounded_amounts(spec.overhead),
    )


def _rounded_container(container: ContainerT) -> ContainerT:
    return replace(container, resources=_rounded(container.resources))


def _rounded(resources: ResourceRequirements) -> ResourceRequirements:
    return replace(
        resources,
        requests=_rounded_amounts(resources.requests),
        limits=_rounded_amounts(resources.limits),
    )


def _rounded_amounts(amounts: Resources) -> Resources:
    return {name: amount.round_up_milli() for name, amount in amounts.items()}
