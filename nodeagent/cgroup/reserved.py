"""Enforcing what is kept for the system and for the node's daemons on cgroups that exist already."""

from nodeagent.api.quantity import ResourceList
from nodeagent.cgroup.errors import CgroupError
from nodeagent.cgroup.files import CgroupTree
from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.cgroup.settings import CgroupSettings
from nodeagent.cgroup.values import Values, reserved_values
from nodeagent.config import Config

_COMPRESSIBLE = "-compressible"


class NoReservedCgroup(CgroupError):
    """A reservation is to be enforced on a cgroup that is not there; we make none outside kubepods."""

    def __init__(self, field: str, name: str, path: str) -> None:
        super().__init__(
            f"{field}: {name!r} stands for the cgroup {path!r}, which does not exist: "
            "name a slice that does (such as /system.slice), or take it out of enforceNodeAllocatable"
        )


def reserved_cgroups(
    tree: CgroupTree,
    layout: CgroupLayout,
    config: Config,
    settings: CgroupSettings,
    *,
    system_reserved: ResourceList,
    kube_reserved: ResourceList,
) -> dict[str, Values]:
    """Return the cgroups that enforceNodeAllocatable names beside pods, with their values, by path.

    Raises NoReservedCgroup.
    """
    kubelet = config.kubelet
    kinds = {
        "system-reserved": ("systemReservedCgroup", kubelet.system_reserved_cgroup, system_reserved),
        "kube-reserved": ("kubeReservedCgroup", kubelet.kube_reserved_cgroup, kube_reserved),
    }
    found: dict[str, Values] = {}
    for enforced in kubelet.enforce_node_allocatable:
        kind = enforced.removesuffix(_COMPRESSIBLE)
        if kind in kinds:
            field, name, reserved = kinds[kind]
            path = layout.reserved(name)
            if not tree.exists(path):
                raise NoReservedCgroup(field, name, path)
            found[path] = reserved_values(
                reserved, settings, compressible_only=enforced.endswith(_COMPRESSIBLE)
            )
    return found
