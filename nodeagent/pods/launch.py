"""From a pod's spec to what the runtime is told to start: command, environment, identity, paths."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nodeagent.api.pod import Container, EnvVar, Pod
from nodeagent.api.quantity import ZERO, Quantity, ResourceList
from nodeagent.api.volumes import ResourceFieldSelector
from nodeagent.config import Config
from nodeagent.resources.device_manager import Device
from nodeagent.runtime.spec import ContainerSpec, Mount

_COUNTED = ("cpu", "memory", "ephemeral-storage")
_REFERENCE = re.compile(r"\$(\$|\(([^()]*)\))")


class LaunchError(Exception):
    """A container that cannot be started as it is written; the text is one sentence."""


@dataclass(frozen=True, slots=True)
class LaunchSettings:
    """What the node adds to every container."""

    node_name: str
    host_ip: str
    log_directory: Path
    log_max_bytes: int
    log_max_files: int
    allocatable: ResourceList = field(default_factory=dict)
    """What a container without a limit is told that it may use."""


def launch_settings(config: Config, host_ip: str, allocatable: ResourceList) -> LaunchSettings:
    """Return what the configuration and the node say of containers."""
    kubelet = config.kubelet
    return LaunchSettings(
        node_name=config.agent.node_name,
        host_ip=host_ip,
        log_directory=Path(kubelet.pod_logs_dir),
        log_max_bytes=Quantity.parse(kubelet.container_log_max_size).value(),
        log_max_files=kubelet.container_log_max_files,
        allocatable=allocatable,
    )


def expand(text: str, environment: dict[str, str]) -> str:
    """Replace `$(NAME)` by its value; unknown names stay as written, and `$$` is a dollar sign."""

    def value(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        return environment.get(match[2], match[0])

    return _REFERENCE.sub(value, text)


def container_id(pod_uid: str, generation: int, name: str, attempt: int) -> str:
    """Return the id of one attempt; the same attempt always has the same id, so that none starts twice."""
    return hashlib.sha256(f"{pod_uid}/{generation}/{name}/{attempt}".encode()).hexdigest()


def pod_log_directory(pod: Pod, log_directory: Path) -> Path:
    """Return where the pod's logs lie, as kubelet lays them out."""
    meta = pod.metadata
    return log_directory / f"{meta.namespace}_{meta.name}_{meta.uid}"


def environment(
    container: Container, pod: Pod, settings: LaunchSettings, devices: Sequence[Device] = ()
) -> dict[str, str]:
    """Return the container's variables in order, with `$(NAME)` references to earlier ones expanded.

    Those of its devices come first, as with kubelet: the pod's own are stronger.
    """
    result = {name: value for device in devices for name, value in device.environment.items()}
    for variable in container.env:
        if variable.value_from is None:
            result[variable.name] = expand(variable.value or "", result)
        else:
            result[variable.name] = _source_value(variable, container, pod, settings)
    return result


def container_spec(
    container: Container,
    pod: Pod,
    settings: LaunchSettings,
    *,
    container_id: str,
    attempt: int,
    oom_score_adj: int,
    cgroup: str,
    pod_cgroup: str,
    devices: Sequence[Device] = (),
) -> ContainerSpec:
    """Return the runtime's order for one attempt; raises LaunchError."""
    variables = environment(container, pod, settings, devices)
    argv = tuple(expand(word, variables) for word in (*container.command, *container.args))
    if not container.command:
        raise LaunchError(
            f"container {container.name} has no command: this node runs programs of its own file system "
            "and has no image to take an entry point from; set `command`"
        )
    user_id, group_id = _identity(container, pod)
    own = container.security_context
    root_directory = container.image if (container.image or "").startswith("/") else None
    return ContainerSpec(
        container_id=container_id,
        pod_uid=pod.metadata.uid,
        pod_namespace=pod.metadata.namespace,
        pod_name=pod.metadata.name,
        container_name=container.name,
        attempt=attempt,
        argv=argv,
        env=variables,
        working_dir=container.working_dir or "/",
        root_directory=root_directory,
        hostname=pod.spec.hostname_override or pod.spec.hostname or "",
        mounts=_device_mounts(devices, has_own_root=root_directory is not None),
        user_id=user_id,
        group_id=group_id,
        supplementary_group_ids=pod.spec.security_context.supplemental_groups
        if pod.spec.security_context
        else (),
        no_new_privileges=own is not None and own.allow_privilege_escalation is False,
        host_pid=pod.spec.host_pid,
        host_ipc=pod.spec.host_ipc,
        oom_score_adj=oom_score_adj,
        log_path=str(pod_log_directory(pod, settings.log_directory) / container.name / f"{attempt}.log"),
        cgroup=cgroup,
        pod_cgroup=pod_cgroup,
        log_max_bytes=settings.log_max_bytes,
        log_max_files=settings.log_max_files,
    )


def _device_mounts(devices: Sequence[Device], *, has_own_root: bool) -> tuple[Mount, ...]:
    """Return what of the host a container's devices need; the host's own /dev is there without."""
    mounts = [
        Mount(source=each.host_path, target=each.container_path, read_only=each.read_only)
        for device in devices
        for each in device.mounts
    ]
    if has_own_root:
        mounts += [Mount(source=node, target=node) for device in devices for node in device.device_nodes]
    return tuple(mounts)


def _identity(container: Container, pod: Pod) -> tuple[int, int]:
    own, shared = container.security_context, pod.spec.security_context

    def choose(attribute: str) -> int | None:
        for context in (own, shared):
            value: int | None = getattr(context, attribute, None)
            if value is not None:
                return value
        return None

    user_id, group_id = choose("run_as_user"), choose("run_as_group")
    if user_id in (None, 0) and choose("run_as_non_root"):
        raise LaunchError(
            f"container {container.name} has runAsNonRoot and would run as root: "
            "set securityContext.runAsUser to a number above 0"
        )
    return user_id or 0, group_id or 0


def _source_value(variable: EnvVar, container: Container, pod: Pod, settings: LaunchSettings) -> str:
    source = variable.value_from
    assert source is not None
    if source.resource_field_ref is not None:
        return _resource_value(variable.name, source.resource_field_ref, container, pod, settings)
    return _field_value(variable.name, source.field_ref.field_path if source.field_ref else "", pod, settings)


def _resource_value(
    variable: str, reference: ResourceFieldSelector, own: Container, pod: Pod, settings: LaunchSettings
) -> str:
    """Count a limit or request in divisors, rounded up; a missing limit is what the node has to give."""
    everybody = (own, *pod.spec.init_containers, *pod.spec.containers)
    name = reference.container_name or own.name
    container = next((each for each in everybody if each.name == name), None)
    if container is None:
        raise LaunchError(f"environment variable {variable} asks for resources of {name}: no such container")
    kind, _, resource = reference.resource.partition(".")
    known = resource in _COUNTED or resource.startswith("hugepages-")
    if kind not in ("limits", "requests") or not known:
        expected = ", ".join(f"limits.{each}" for each in _COUNTED)
        raise LaunchError(
            f"environment variable {variable} asks for {reference.resource}: expected {expected}, "
            "limits.hugepages-SIZE, or the same of requests"
        )
    amounts = container.resources.limits if kind == "limits" else container.resources.requests
    default = settings.allocatable.get(resource, ZERO) if kind == "limits" else ZERO
    divisor = reference.divisor if reference.divisor else Quantity.of(1)
    found = amounts.get(resource, default)
    if resource == "cpu":
        return str(-(-found.milli_value() // divisor.milli_value()))
    return str(-(-found.value() // divisor.value()))


def _field_value(variable: str, path: str, pod: Pod, settings: LaunchSettings) -> str:
    meta = pod.metadata
    values = {
        "metadata.name": meta.name,
        "metadata.namespace": meta.namespace,
        "metadata.uid": meta.uid,
        "spec.nodeName": settings.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name or "",
        "status.hostIP": settings.host_ip,
        "status.podIP": settings.host_ip,
    }
    if path in values:
        return values[path] or ""
    keyed = re.fullmatch(r"metadata\.(labels|annotations)\['([^']+)'\]", path)
    if keyed:
        group = meta.labels if keyed[1] == "labels" else meta.annotations
        return group.get(keyed[2], "")
    known = ", ".join((*values, "metadata.labels['KEY']", "metadata.annotations['KEY']"))
    raise LaunchError(
        f"environment variable {variable} takes its value from "
        f"{path or 'something other than a field of the pod'}: this node knows {known}"
    )
