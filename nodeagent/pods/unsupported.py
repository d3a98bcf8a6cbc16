"""What a pod asks for that this node does not do yet: refused where ignoring it could do harm, else said."""

from collections.abc import Iterator
from dataclasses import dataclass

from nodeagent.api.pod import Container, Pod

REASON = "UnsupportedPod"
# Without these a container would run on other data, or with other rights, than its author relies on.
_REFUSED_OF_CONTAINER = ("volume_mounts", "volume_devices", "env_from")
_REFUSED_OF_SECURITY = ("capabilities", "se_linux_options", "app_armor_profile", "proc_mount")
_REFUSED_OF_POD_SECURITY = ("fs_group", "sysctls", "se_linux_options", "app_armor_profile")
_REFUSED_OF_POD = ("volumes", "host_aliases", "dns_config", "resource_claims", "share_process_namespace")
_IGNORED_OF_CONTAINER = ("liveness_probe", "readiness_probe", "startup_probe", "lifecycle", "resize_policy")


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Field paths, by what becomes of a pod that uses them."""

    refused: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def unsupported(pod: Pod) -> Unsupported:
    """Return the fields that the pod uses and this node does not honour."""
    return Unsupported(tuple(_refused(pod)), tuple(_ignored(pod)))


def _refused(pod: Pod) -> Iterator[str]:
    spec = pod.spec
    yield from _used(spec, _REFUSED_OF_POD, "spec")
    if spec.security_context is not None:
        yield from _used(spec.security_context, _REFUSED_OF_POD_SECURITY, "spec.securityContext")
    for path, container in _containers(pod):
        yield from _used(container, _REFUSED_OF_CONTAINER, path)
        security = container.security_context
        if security is not None:
            yield from _used(security, _REFUSED_OF_SECURITY, f"{path}.securityContext")
            if security.read_only_root_filesystem:
                yield f"{path}.securityContext.readOnlyRootFilesystem"
        yield from (
            f"{path}.ports[{number}].hostPort"
            for number, port in enumerate(container.ports)
            if port.host_port and not spec.host_network and port.host_port != port.container_port
        )


def _ignored(pod: Pod) -> Iterator[str]:
    for path, container in _containers(pod):
        yield from _used(container, _IGNORED_OF_CONTAINER, path)
    yield from _used(pod.spec, ("readiness_gates", "active_deadline_seconds"), "spec")


def _containers(pod: Pod) -> Iterator[tuple[str, Container]]:
    for number, container in enumerate(pod.spec.init_containers):
        yield f"spec.initContainers[{number}]", container
    for number, container in enumerate(pod.spec.containers):
        yield f"spec.containers[{number}]", container


def _used(part: object, attributes: tuple[str, ...], path: str) -> Iterator[str]:
    names: dict[str, str] = dict(
        zip(part.__struct_fields__, part.__struct_encode_fields__, strict=True)  # type: ignore[attr-defined]
    )
    return (f"{path}.{names[name]}" for name in attributes if getattr(part, name))
