"""Is a pod as the API server would take it? (ValidatePod, Kubernetes 1.36)"""

from nodeagent.api import names
from nodeagent.api.errors import FieldError, forbidden, invalid, required
from nodeagent.api.meta import ObjectMeta
from nodeagent.api.pod import Pod, PodSpec
from nodeagent.api.validation.checks import LONGEST_SECONDS, Errors, each, one_of
from nodeagent.api.validation.container import containers_errors
from nodeagent.api.validation.metadata import metadata_errors
from nodeagent.api.validation.placement import placement_errors
from nodeagent.api.validation.resources import overhead_errors, pod_resources_errors
from nodeagent.api.validation.security import pod_security_errors
from nodeagent.api.validation.volume import volumes_errors

__all__ = ["metadata_errors", "validate_pod"]

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
OPERATING_SYSTEMS = ("linux", "windows")
LONGEST_FILE_NAME = 255
MOST_ERRORS = 100


def validate_pod(pod: Pod) -> tuple[FieldError, ...]:
    """Return everything that is wrong with a defaulted pod; nothing if it may run here."""
    errors: list[FieldError] = []
    for error in _pod_errors(pod):
        if len(errors) == MOST_ERRORS:
            break
        errors.append(error)
    return tuple(errors)


def _pod_errors(pod: Pod) -> Errors:
    yield from metadata_errors(pod.metadata)
    yield from _uid_errors(pod.metadata)
    yield from volumes_errors(pod.spec.volumes, "spec.volumes")
    yield from containers_errors(pod.spec)
    yield from pod_resources_errors(pod)
    yield from overhead_errors(pod.spec.overhead, "spec.overhead")
    yield from _policy_errors(pod.spec)
    yield from _time_errors(pod.spec)
    yield from _host_network_errors(pod.spec)
    yield from placement_errors(pod.spec)
    yield from pod_security_errors(pod.spec)
    yield from _name_errors(pod.spec)
    if pod.spec.ephemeral_containers:
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")


def _uid_errors(meta: ObjectMeta) -> Errors:
    if meta.uid:
        yield from each(names.pod_uid(meta.uid), "metadata.uid", meta.uid)
    directory = f"{meta.namespace}_{meta.name}_{meta.uid}"
    if len(directory.encode()) > LONGEST_FILE_NAME:
        detail = f"must be no more than {LONGEST_FILE_NAME} bytes as NAMESPACE_NAME_UID: the logs' directory"
        yield invalid("metadata.name", meta.name, detail)


def _policy_errors(spec: PodSpec) -> Errors:
    yield from one_of(spec.restart_policy, RESTART_POLICIES, "spec.restartPolicy")
    yield from one_of(spec.dns_policy, DNS_POLICIES, "spec.dnsPolicy")
    yield from one_of(spec.preemption_policy, PREEMPTION_POLICIES, "spec.preemptionPolicy")
    if spec.os is not None:
        if not spec.os.name:
            yield required("spec.os.name")
        yield from one_of(spec.os.name, OPERATING_SYSTEMS, "spec.os.name")
    if spec.dns_policy == "None" and (spec.dns_config is None or not spec.dns_config.nameservers):
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required("spec.dnsConfig.nameservers", detail)


def _time_errors(spec: PodSpec) -> Errors:
    grace_seconds = spec.termination_grace_period_seconds
    if grace_seconds is not None:
        faults = names.within(grace_seconds, 0, LONGEST_SECONDS)
        if grace_seconds < 0:
            faults = ["must be greater than or equal to 0"]
        yield from each(faults, "spec.terminationGracePeriodSeconds", grace_seconds)
    deadline_seconds = spec.active_deadline_seconds
    if deadline_seconds is not None:
        faults = names.within(deadline_seconds, 1, LONGEST_SECONDS)
        yield from each(faults, "spec.activeDeadlineSeconds", deadline_seconds)


def _host_network_errors(spec: PodSpec) -> Errors:
    if not spec.host_network:
        return
    for container_index, container in enumerate(spec.containers):
        for index, port in enumerate(container.ports):
            if port.host_port and port.host_port != port.container_port:
                path = f"spec.containers[{container_index}].ports[{index}].hostPort"
                yield invalid(path, port.host_port, "must match `containerPort` when `hostNetwork` is true")


def _name_errors(spec: PodSpec) -> Errors:
    labels = {"hostname": spec.hostname, "subdomain": spec.subdomain}
    for field, name in labels.items():
        if name:
            yield from each(names.label(name), f"spec.{field}", name)
    subdomains = {
        "nodeName": spec.node_name,
        "serviceAccountName": spec.service_account_name,
        "priorityClassName": spec.priority_class_name,
        "runtimeClassName": spec.runtime_class_name,
    }
    for field, name in subdomains.items():
        if name:
            yield from each(names.subdomain(name), f"spec.{field}", name)
    for index, alias in enumerate(spec.host_aliases):
        yield from each(names.address(alias.ip), f"spec.hostAliases[{index}].ip", alias.ip)
        for position, hostname in enumerate(alias.hostnames):
            path = f"spec.hostAliases[{index}].hostnames[{position}]"
            yield from each(names.subdomain(hostname), path, hostname)
    for index, gate in enumerate(spec.readiness_gates):
        path = f"spec.readinessGates[{index}].conditionType"
        yield from each(names.qualified_name(gate.condition_type), path, gate.condition_type)
    if spec.scheduling_gates and spec.node_name:
        yield forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
