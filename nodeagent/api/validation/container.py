"""Is a container as the API server would take it? (core/v1 validation, Kubernetes 1.36)"""

from collections.abc import Iterable, Mapping

from nodeagent.api import names
from nodeagent.api.errors import duplicate, forbidden, invalid, not_supported, required
from nodeagent.api.pod import (
    Container,
    ContainerPort,
    HTTPGetAction,
    Lifecycle,
    LifecycleHandler,
    PodSpec,
    Probe,
    Volume,
)
from nodeagent.api.resources import is_restartable_init
from nodeagent.api.validation.checks import LONGEST_SECONDS, Errors, each, no_nul, one_of
from nodeagent.api.validation.environment import environment_errors, environment_from_errors
from nodeagent.api.validation.resources import container_resources_errors
from nodeagent.api.validation.security import container_security_errors
from nodeagent.api.validation.volume import mount_errors

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
PROTOCOLS = ("SCTP", "TCP", "UDP")
SCHEMES = ("HTTP", "HTTPS")

NOT_FOR_INIT = "may not be set for init containers without restartPolicy=Always"


def containers_errors(spec: PodSpec) -> Errors:
    """Check the regular and the init containers of a pod."""
    volumes = {volume.name: volume for volume in spec.volumes}
    if not spec.containers:
        yield required("spec.containers")
    taken: set[str] = set()
    for index, container in enumerate(spec.containers):
        path = f"spec.containers[{index}]"
        yield from _container_errors(container, spec, volumes, path)
        yield from _unique_name_errors(container, taken, path)
        yield from _running_errors(container, spec, path)
        if container.restart_policy is not None:
            yield forbidden(f"{path}.restartPolicy", "may not be set for non-init containers")
    yield from _host_port_errors(spec.containers, "spec.containers", set())
    for index, container in enumerate(spec.init_containers):
        path = f"spec.initContainers[{index}]"
        yield from _container_errors(container, spec, volumes, path)
        yield from _unique_name_errors(container, taken, path)
        # Init containers run one by one, so that each may have the same ports.
        yield from _host_port_errors((container,), "spec.initContainers", set(), index)
        yield from _init_errors(container, spec, path)


def _unique_name_errors(container: Container, taken: set[str], path: str) -> Errors:
    if container.name in taken:
        yield duplicate(f"{path}.name", container.name)
    elif container.name:
        taken.add(container.name)


def _init_errors(container: Container, spec: PodSpec, path: str) -> Errors:
    if container.restart_policy not in (None, "Always"):
        yield not_supported(f"{path}.restartPolicy", container.restart_policy, ("Always",))
    if is_restartable_init(container):
        yield from _running_errors(container, spec, path)
        return
    parts = {
        "lifecycle": container.lifecycle,
        "livenessProbe": container.liveness_probe,
        "readinessProbe": container.readiness_probe,
        "startupProbe": container.startup_probe,
    }
    yield from (forbidden(f"{path}.{name}", NOT_FOR_INIT) for name, part in parts.items() if part is not None)


def _container_errors(
    container: Container, spec: PodSpec, volumes: Mapping[str, Volume], path: str
) -> Errors:
    if not container.name:
        yield required(f"{path}.name")
    else:
        yield from each(names.label(container.name), f"{path}.name", container.name)
    image = container.image or ""
    # No image is needed where processes come from the host's own files; a runtime that needs one says so.
    if image != image.strip():
        yield invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    yield from one_of(container.image_pull_policy, PULL_POLICIES, f"{path}.imagePullPolicy")
    yield from one_of(
        container.termination_message_policy, MESSAGE_POLICIES, f"{path}.terminationMessagePolicy"
    )
    texts = {
        "workingDir": container.working_dir,
        "terminationMessagePath": container.termination_message_path,
    }
    for name, text in texts.items():
        yield from no_nul(text or "", f"{path}.{name}")
    for name, items in {"command": container.command, "args": container.args}.items():
        for index, item in enumerate(items):
            yield from no_nul(item, f"{path}.{name}[{index}]")
    yield from _port_errors(container.ports, f"{path}.ports")
    yield from environment_errors(container.env, f"{path}.env")
    yield from environment_from_errors(container.env_from, f"{path}.envFrom")
    yield from mount_errors(container.volume_mounts, volumes, f"{path}.volumeMounts")
    claims = {claim.name for claim in spec.resource_claims}
    yield from container_resources_errors(container.resources, claims, f"{path}.resources")
    yield from container_security_errors(container.security_context, spec, f"{path}.securityContext")


def _running_errors(container: Container, spec: PodSpec, path: str) -> Errors:
    """Check what only containers that keep running have: lifecycle hooks and probes."""
    grace_seconds = spec.termination_grace_period_seconds
    if container.lifecycle is not None:
        yield from _lifecycle_errors(container.lifecycle, grace_seconds, f"{path}.lifecycle")
    probes = {
        "livenessProbe": container.liveness_probe,
        "readinessProbe": container.readiness_probe,
        "startupProbe": container.startup_probe,
    }
    for name, probe in probes.items():
        if probe is None:
            continue
        yield from _probe_errors(probe, f"{path}.{name}")
        if name != "readinessProbe":
            if probe.success_threshold not in (None, 1):
                yield invalid(f"{path}.{name}.successThreshold", probe.success_threshold, "must be 1")
        elif probe.termination_grace_period_seconds is not None:
            field = f"{path}.{name}.terminationGracePeriodSeconds"
            yield invalid(
                field, probe.termination_grace_period_seconds, "must not be set for readinessProbes"
            )


def _probe_errors(probe: Probe, path: str) -> Errors:
    handlers = {
        "exec": probe.exec,
        "httpGet": probe.http_get,
        "tcpSocket": probe.tcp_socket,
        "grpc": probe.grpc,
    }
    yield from _handler_errors(handlers, path)
    yield from _action_errors(probe, path)
    if probe.grpc is not None:
        yield from each(names.port_number(probe.grpc.port), f"{path}.grpc.port", probe.grpc.port)
    numbers = {
        "initialDelaySeconds": probe.initial_delay_seconds,
        "timeoutSeconds": probe.timeout_seconds,
        "periodSeconds": probe.period_seconds,
        "successThreshold": probe.success_threshold,
        "failureThreshold": probe.failure_threshold,
    }
    for name, number in numbers.items():
        if number is not None and number < 0:
            yield invalid(f"{path}.{name}", number, "must be greater than or equal to 0")
    grace_seconds = probe.termination_grace_period_seconds
    if grace_seconds is not None:
        limits = names.within(grace_seconds, 1, LONGEST_SECONDS)
        faults = ["must be greater than 0"] if grace_seconds <= 0 else limits
        yield from each(faults, f"{path}.terminationGracePeriodSeconds", grace_seconds)


def _lifecycle_errors(lifecycle: Lifecycle, grace_seconds: int | None, path: str) -> Errors:
    for name, handler in {"postStart": lifecycle.post_start, "preStop": lifecycle.pre_stop}.items():
        if handler is None:
            continue
        place = f"{path}.{name}"
        handlers = {
            "exec": handler.exec,
            "httpGet": handler.http_get,
            "tcpSocket": handler.tcp_socket,
            "sleep": handler.sleep,
        }
        yield from _handler_errors(handlers, place)
        yield from _action_errors(handler, place)
        if handler.sleep is not None:
            yield from _sleep_errors(handler.sleep.seconds, grace_seconds, f"{place}.sleep")


def _sleep_errors(seconds: int, grace_seconds: int | None, path: str) -> Errors:
    if grace_seconds is not None and not 0 <= seconds <= grace_seconds:
        detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_seconds})"
        yield invalid(path, seconds, detail)


def _handler_errors(handlers: Mapping[str, object], path: str) -> Errors:
    given = [name for name, handler in handlers.items() if handler is not None]
    if not given:
        yield required(path, "must specify a handler type")
    yield from (forbidden(f"{path}.{name}", "may not specify more than 1 handler type") for name in given[1:])


def _action_errors(handler: Probe | LifecycleHandler, path: str) -> Errors:
    if handler.exec is not None:
        if not handler.exec.command:
            yield required(f"{path}.exec.command")
        for index, item in enumerate(handler.exec.command):
            yield from no_nul(item, f"{path}.exec.command[{index}]")
    if handler.http_get is not None:
        yield from _http_errors(handler.http_get, f"{path}.httpGet")
    if handler.tcp_socket is not None:
        yield from _port_or_name_errors(handler.tcp_socket.port, f"{path}.tcpSocket.port")


def _http_errors(action: HTTPGetAction, path: str) -> Errors:
    yield from _port_or_name_errors(action.port, f"{path}.port")
    yield from one_of(action.scheme, SCHEMES, f"{path}.scheme")
    for header in action.http_headers:
        yield from each(names.header_name(header.name), f"{path}.httpHeaders", header.name)


def _port_or_name_errors(port: int | str, path: str) -> Errors:
    faults = names.port_name(port) if isinstance(port, str) else names.port_number(port)
    yield from each(faults, path, port)


def _port_errors(ports: Iterable[ContainerPort], path: str) -> Errors:
    taken: set[str] = set()
    for index, port in enumerate(ports):
        place = f"{path}[{index}]"
        if port.name:
            faults = names.port_name(port.name)
            yield from each(faults, f"{place}.name", port.name)
            if not faults and port.name in taken:
                yield duplicate(f"{place}.name", port.name)
            taken.add(port.name)
        if port.container_port == 0:
            yield required(f"{place}.containerPort")
        else:
            faults = names.port_number(port.container_port)
            yield from each(faults, f"{place}.containerPort", port.container_port)
        if port.host_port:
            yield from each(names.port_number(port.host_port), f"{place}.hostPort", port.host_port)
        if port.host_ip:
            yield from each(names.address(port.host_ip), f"{place}.hostIP", port.host_ip)
        yield from one_of(port.protocol, PROTOCOLS, f"{place}.protocol")


def _host_port_errors(
    containers: Iterable[Container], path: str, taken: set[str], first_index: int = 0
) -> Errors:
    for container_index, container in enumerate(containers, first_index):
        for index, port in enumerate(container.ports):
            if not port.host_port:
                continue
            key = f"{port.protocol or 'TCP'}/{port.host_ip or ''}/{port.host_port}"
            if key in taken:
                yield duplicate(f"{path}[{container_index}].ports[{index}].hostPort", key)
            taken.add(key)
