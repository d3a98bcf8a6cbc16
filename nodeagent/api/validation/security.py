"""Are security contexts as the API server would take them? (core/v1 validation)"""

import re

from nodeagent.api import names
from nodeagent.api.errors import duplicate, forbidden, invalid, required
from nodeagent.api.pod import AppArmorProfile, PodSecurityContext, PodSpec, SeccompProfile, SecurityContext
from nodeagent.api.validation.checks import Errors, descending_path_errors, each, one_of

PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
PROC_MOUNTS = ("Default", "Unmasked")
GROUP_CHANGE_POLICIES = ("Always", "OnRootMismatch")
SUPPLEMENTAL_GROUPS_POLICIES = ("Merge", "Strict")
LONGEST_SYSCTL = 253
_SYSCTL_PART = r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"({_SYSCTL_PART}[\./])*{_SYSCTL_PART}"


def container_security_errors(context: SecurityContext | None, spec: PodSpec, path: str) -> Errors:
    """Check a container's security context."""
    if context is None:
        return
    yield from _id_errors({"runAsUser": context.run_as_user, "runAsGroup": context.run_as_group}, path)
    yield from one_of(context.proc_mount, PROC_MOUNTS, f"{path}.procMount")
    if context.proc_mount == "Unmasked" and spec.host_users is not False:
        detail = "`hostUsers` must be false to use `Unmasked`"
        yield invalid(f"{path}.procMount", context.proc_mount, detail)
    yield from _profile_errors(context.seccomp_profile, "seccomp", f"{path}.seccompProfile")
    yield from _profile_errors(context.app_armor_profile, "AppArmor", f"{path}.appArmorProfile")
    if context.allow_privilege_escalation is False:
        if context.privileged:
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield invalid(path, "", detail)
        if context.capabilities is not None and "CAP_SYS_ADMIN" in context.capabilities.add:
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            yield invalid(path, "", detail)


def pod_security_errors(spec: PodSpec) -> Errors:
    """Check the pod's security context, and what it shares with the host."""
    if spec.host_users is False:
        shared = {"hostNetwork": spec.host_network, "hostPID": spec.host_pid, "hostIPC": spec.host_ipc}
        for name, is_shared in shared.items():
            if is_shared:
                yield forbidden(f"spec.{name}", "when `pod.Spec.HostUsers` is false")
    if spec.share_process_namespace and spec.host_pid:
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid("spec.shareProcessNamespace", True, detail)
    context = spec.security_context
    if context is None:
        return
    path = "spec.securityContext"
    ids = {
        "runAsUser": context.run_as_user,
        "runAsGroup": context.run_as_group,
        "fsGroup": context.fs_group,
        **{f"supplementalGroups[{i}]": group for i, group in enumerate(context.supplemental_groups)},
    }
    yield from _id_errors(ids, path)
    yield from one_of(context.fs_group_change_policy, GROUP_CHANGE_POLICIES, f"{path}.fsGroupChangePolicy")
    policy = context.supplemental_groups_policy
    yield from one_of(policy, SUPPLEMENTAL_GROUPS_POLICIES, f"{path}.supplementalGroupsPolicy")
    yield from _sysctl_errors(context, f"{path}.sysctls")
    yield from _profile_errors(context.seccomp_profile, "seccomp", f"{path}.seccompProfile")
    yield from _profile_errors(context.app_armor_profile, "AppArmor", f"{path}.appArmorProfile")


def _id_errors(ids: dict[str, int | None], path: str) -> Errors:
    for name, number in ids.items():
        if number is not None:
            yield from each(names.user_or_group_id(number), f"{path}.{name}", number)


def _profile_errors(profile: SeccompProfile | AppArmorProfile | None, kind: str, path: str) -> Errors:
    if profile is None:
        return
    if not profile.type:
        yield required(f"{path}.type", f"type is required when {path.rpartition('.')[2]} is set")
    yield from one_of(profile.type, PROFILE_TYPES, f"{path}.type")
    local = profile.localhost_profile
    if profile.type != "Localhost":
        if local is not None:
            detail = f"can only be set when {kind} type is Localhost"
            yield invalid(f"{path}.localhostProfile", local, detail)
    elif not local:
        yield required(f"{path}.localhostProfile", f"must be set when {kind} type is Localhost")
    elif kind == "seccomp":
        yield from descending_path_errors(local, f"{path}.localhostProfile")


def _sysctl_errors(context: PodSecurityContext, path: str) -> Errors:
    taken: set[str] = set()
    for index, sysctl in enumerate(context.sysctls):
        place = f"{path}[{index}].name"
        if not sysctl.name:
            yield required(place)
        elif len(sysctl.name) > LONGEST_SYSCTL or re.fullmatch(_SYSCTL, sysctl.name) is None:
            detail = f"must have at most {LONGEST_SYSCTL} characters and match regex ^{_SYSCTL}$"
            yield invalid(place, sysctl.name, detail)
        elif sysctl.name in taken:
            yield duplicate(place, sysctl.name)
        taken.add(sysctl.name)
