"""What a pod asks for that this node does not do yet: refused where ignoring it could do harm, else said.

The tables hold every field of a pod's spec, so that none is dropped without anybody having thought of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from nodeagent.api.base import ApiObject
from nodeagent.api.container import AppArmorProfile, SeccompProfile
from nodeagent.api.pod import Container, Pod, PodSecurityContext, PodSpec, SecurityContext

REASON = "UnsupportedPod"


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one type, by what becomes of a pod that uses them."""

    honoured: str
    refused: str
    """Without these a container would run on other data, or with other rights, than its author relies on."""
    ignored: str
    """Left out, and said in an event."""
    meaningless: str
    """Nothing here that they could change: no registry, no scheduler, no cluster DNS, no token, one node."""


TREATMENT: dict[type[ApiObject], Fields] = {
    PodSpec: Fields(
        honoured="affinity containers host_ipc host_network host_pid hostname "
        "hostname_override init_containers node_name node_selector os overhead preemption_policy priority "
        "priority_class_name resources restart_policy scheduling_gates security_context "
        "service_account_name termination_grace_period_seconds tolerations",
        refused="dns_config ephemeral_containers host_aliases host_users resource_claims runtime_class_name "
        "share_process_namespace volumes",
        ignored="active_deadline_seconds readiness_gates set_hostname_as_fqdn subdomain",
        meaningless="automount_service_account_token dns_policy enable_service_links image_pull_secrets "
        "scheduler_name scheduling_group service_account topology_spread_constraints",
    ),
    Container: Fields(
        honoured="args command env image name ports resources restart_policy security_context working_dir",
        refused="env_from restart_policy_rules volume_devices volume_mounts",
        ignored="lifecycle liveness_probe readiness_probe resize_policy startup_probe stdin stdin_once "
        "termination_message_path termination_message_policy tty",
        meaningless="image_pull_policy",
    ),
    PodSecurityContext: Fields(
        honoured="run_as_group run_as_non_root run_as_user supplemental_groups",
        refused="app_armor_profile fs_group se_linux_options seccomp_profile sysctls",
        ignored="",
        meaningless="fs_group_change_policy se_linux_change_policy supplemental_groups_policy "
        "windows_options",
    ),
    SecurityContext: Fields(
        honoured="allow_privilege_escalation privileged run_as_group run_as_non_root run_as_user",
        refused="app_armor_profile capabilities proc_mount read_only_root_filesystem se_linux_options "
        "seccomp_profile",
        ignored="",
        meaningless="windows_options",
    ),
}
# What these say when they say nothing: the API's own defaults.
_DEFAULTS = {
    "termination_message_path": "/dev/termination-log",
    "termination_message_policy": "File",
    "proc_mount": "Default",
}


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Field paths, by what becomes of a pod that uses them."""

    refused: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def unsupported(pod: Pod) -> Unsupported:
    """Return the fields that the pod uses and this node does not honour."""
    refused, ignored = list[str](), list[str]()
    for path, part in _parts(pod):
        fields = TREATMENT[type(part)]
        refused += _used(part, fields.refused, path)
        ignored += _used(part, fields.ignored, path)
    refused += (*_mapped_ports(pod), *_privileged_in_a_root(pod))
    return Unsupported(tuple(refused), tuple(ignored))


def _parts(pod: Pod) -> Iterator[tuple[str, ApiObject]]:
    yield "spec", pod.spec
    if pod.spec.security_context is not None:
        yield "spec.securityContext", pod.spec.security_context
    for path, container in _containers(pod):
        yield path, container
        if container.security_context is not None:
            yield f"{path}.securityContext", container.security_context


def _mapped_ports(pod: Pod) -> Iterator[str]:
    """A pod that shares the host's ports has none to map."""
    for path, container in _containers(pod):
        yield from (
            f"{path}.ports[{number}].hostPort"
            for number, port in enumerate(container.ports)
            if port.host_port and not pod.spec.host_network and port.host_port != port.container_port
        )


def _privileged_in_a_root(pod: Pod) -> Iterator[str]:
    """Root on the host's own files is privileged; in a directory of its own it sees few devices."""
    for path, container in _containers(pod):
        security = container.security_context
        if security is not None and security.privileged and (container.image or "").startswith("/"):
            yield f"{path}.securityContext.privileged"


def _containers(pod: Pod) -> Iterator[tuple[str, Container]]:
    for number, container in enumerate(pod.spec.init_containers):
        yield f"spec.initContainers[{number}]", container
    for number, container in enumerate(pod.spec.containers):
        yield f"spec.containers[{number}]", container


def _used(part: ApiObject, attributes: str, path: str) -> Iterator[str]:
    spelling = dict(zip(part.__struct_fields__, part.__struct_encode_fields__, strict=True))
    for name in attributes.split():
        if _asks(name, getattr(part, name)):
            yield f"{path}.{spelling[name]}"


def _asks(name: str, value: object) -> bool:
    """Say whether a field asks for anything that would not be so without it."""
    if name == "host_users":
        return value is False
    if isinstance(value, AppArmorProfile | SeccompProfile):
        return value.type != "Unconfined"
    return bool(value) and value != _DEFAULTS.get(name)
