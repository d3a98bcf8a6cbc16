"""Where each cgroup sits: kubelet's names, made and read back.

Paths are relative to the cgroup mount ("kubepods.slice/kubepods-burstable.slice"); "" is the mount itself.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Literal

from nodeagent.api.qos import QOSClass
from nodeagent.cgroup.errors import InvalidName

DriverName = Literal["systemd", "cgroupfs"]
Name = tuple[str, ...]

SLICE = ".slice"
SCOPE = ".scope"
CONTAINER_PREFIX = "nodeagent-"
_POD_PREFIX = "pod"

# Bounds keep the longest unit name we build ("kubepods-besteffort-pod<uid>.slice") below systemd's 255.
_POD_UID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,126}[A-Za-z0-9])?")
_CONTAINER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_COMPONENT = re.compile(r"[^\s/\0\\]{1,255}")


@lru_cache(maxsize=4096)
def check_path(path: str) -> str:
    """Return a relative cgroup path unchanged; raise InvalidName for one that could leave the mount."""
    for part in path.split("/") if path else ():
        if part in (".", "..") or not _COMPONENT.fullmatch(part):
            raise InvalidName(f"cgroup path {path!r}: {part!r} is not the name of a cgroup")
    return path


def check_pod_uid(uid: str) -> str:
    """Return a pod UID that is safe as part of a path and of a unit name."""
    if not _POD_UID.fullmatch(uid) or ".." in uid:
        raise InvalidName(
            f"metadata.uid {uid!r}: expected 1 to 128 letters, digits, '-' or '.', "
            "with a letter or digit at both ends"
        )
    return uid


def check_container_id(container_id: str) -> str:
    """Return a container id that is safe as part of a path and of a unit name."""
    if not _CONTAINER_ID.fullmatch(container_id) or ".." in container_id:
        raise InvalidName(
            f"container id {container_id!r}: expected 1 to 128 letters, digits, '-', '_' or '.'"
        )
    return container_id


def expand_name(name: Name, driver: DriverName) -> str:
    """Return the absolute path of a cgroup name; under systemd every level carries its parents' names."""
    parts = [part for part in name if part]
    for part in parts:
        if "/" in part or "_" in part:
            raise InvalidName(f"cgroup name {list(name)}: {part!r} may contain neither '/' nor '_'")
    if driver == "cgroupfs":
        return "/" + "/".join(parts)
    escaped = [part.replace("-", "_") for part in parts]
    return "/" + "/".join("-".join(escaped[: level + 1]) + SLICE for level in range(len(escaped)))


def parse_name(path: str, driver: DriverName) -> Name:
    """Read a path back into the name it was made from; under systemd its last element tells all."""
    if driver == "cgroupfs":
        relative = path.removeprefix("/")
        return tuple(relative.split("/")) if relative else ()
    unit = path.rstrip("/").rsplit("/", 1)[-1] or "/"
    return tuple(part.replace("_", "-") for part in unit.removesuffix(SLICE).split("-"))


def is_systemd_style(path: str) -> bool:
    """Tell whether a path names a slice."""
    return path.endswith(SLICE)


def kubepods_name(cgroup_root: str, cgroups_per_qos: bool = True) -> Name:
    """Return the cgroup that bounds all pods; `cgroup_root` is cgroupRoot, a name with '/' between levels."""
    root = parse_name(cgroup_root, "cgroupfs")
    return (*root, "kubepods") if cgroups_per_qos else root


def pod_name(kubepods: Name, uid: str, qos: QOSClass) -> Name:
    """Return a pod's cgroup: Guaranteed pods sit directly in kubepods."""
    return (*_qos_name(kubepods, qos), _POD_PREFIX + uid)


def _qos_name(kubepods: Name, qos: QOSClass) -> Name:
    return kubepods if qos is QOSClass.GUARANTEED else (*kubepods, qos.value.lower())


def pod_uid_of_name(name: Name, kubepods: Name) -> str | None:
    """Return the UID of the pod whose cgroup `name` is, or None if it is no pod's."""
    parents = {_qos_name(kubepods, qos) for qos in QOSClass}
    if name[:-1] not in parents or not name[-1].startswith(_POD_PREFIX):
        return None
    return name[-1].removeprefix(_POD_PREFIX) or None


@dataclass(frozen=True, slots=True)
class CgroupLayout:
    """The tree's paths. Both drivers use systemd's names for pods, so that tools find one tree.

    `driver` only decides how the names of reserved cgroups are read, as it does for kubelet.
    """

    root: str = ""
    driver: DriverName = "systemd"

    @property
    def kubepods(self) -> str:
        """The slice that bounds all pods: node allocatable."""
        return _relative(kubepods_name(self.root))

    def qos(self, qos: QOSClass) -> str:
        """Return the slice in which pods of a class sit."""
        return _relative(_qos_name(kubepods_name(self.root), qos))

    def pod(self, pod_uid: str, qos: QOSClass) -> str:
        """Return a pod's slice."""
        return _relative(pod_name(kubepods_name(self.root), check_pod_uid(pod_uid), qos))

    def container(self, pod_uid: str, qos: QOSClass, container_id: str) -> str:
        """Return a container's leaf."""
        leaf = CONTAINER_PREFIX + check_container_id(container_id) + SCOPE
        return f"{self.pod(pod_uid, qos)}/{leaf}"

    def reserved(self, name: str) -> str:
        """Return the cgroup that systemReservedCgroup or kubeReservedCgroup names."""
        return check_path(expand_name(parse_name(name, self.driver), self.driver).removeprefix("/"))

    def pod_uid_of(self, path: str) -> str | None:
        """Return the UID of the pod that a path belongs to (its slice or anything below), or None."""
        parts = PurePosixPath(path).parts
        kubepods = kubepods_name(self.root)
        for part in parts[len(kubepods) :]:
            if is_systemd_style(part) and (uid := pod_uid_of_name(parse_name(part, "systemd"), kubepods)):
                return uid
        return None

    def container_id_of(self, path: str) -> str | None:
        """Return the id of the container whose leaf a path is, or None."""
        leaf = path.rsplit("/", 1)[-1]
        if not (leaf.startswith(CONTAINER_PREFIX) and leaf.endswith(SCOPE)):
            return None
        return leaf.removeprefix(CONTAINER_PREFIX).removesuffix(SCOPE) or None


def _relative(name: Name) -> str:
    return expand_name(name, "systemd").removeprefix("/")
