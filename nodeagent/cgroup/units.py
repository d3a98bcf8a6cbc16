"""cgroup values as systemd's unit properties, so that systemd itself writes what we write."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from nodeagent.cgroup.layout import SCOPE, SLICE
from nodeagent.cgroup.values import Values
from nodeagent.hardware.cpuset import CpuSet

INFINITY = (1 << 64) - 1
USEC_PER_SEC = 1_000_000
# CPUQuota= is kept in hundredths of a percent of a second.
_QUOTA_STEP_USEC = 100
_MAX = "max"
_AMOUNTS = {
    "memory.min": "MemoryMin",
    "memory.low": "MemoryLow",
    "memory.high": "MemoryHigh",
    "memory.max": "MemoryMax",
    "memory.swap.max": "MemorySwapMax",
    "pids.max": "TasksMax",
    "cpu.weight": "CPUWeight",
}
_SETS = {"cpuset.cpus": "AllowedCPUs", "cpuset.mems": "AllowedMemoryNodes"}
OOM_POLICY_SINCE = 253
"""The first systemd whose scopes have OOMPolicy=; an older one leaves memory.oom.group alone."""


class Property(NamedTuple):
    """A D-Bus signature and value."""

    signature: str
    value: object


Properties = Mapping[str, Property]

_UNIT: Properties = {
    # Without it systemd would stop the unit before the agent, at shutdown, and order it after sysinit.target.
    "DefaultDependencies": Property("b", False),
    # Accounting keeps the controllers enabled above, whatever else systemd finds to do there.
    "CPUAccounting": Property("b", True),
    "MemoryAccounting": Property("b", True),
    "TasksAccounting": Property("b", True),
    "IOAccounting": Property("b", True),
    # A unit that failed (its process was OOM-killed) would otherwise hold its name for ever.
    "CollectMode": Property("s", "inactive-or-failed"),
}


def unit_of(path: str) -> str:
    """Return the unit that a path is the cgroup of."""
    unit = PurePosixPath(path).name
    if not unit.endswith((SLICE, SCOPE)):
        raise ValueError(f"{path}: neither a slice nor a scope; the systemd driver makes nothing else")
    return unit


def slice_properties(values: Values) -> Properties:
    """Return what a transient slice is started with."""
    return {"Description": Property("s", "pods"), **_UNIT, **value_properties(values)}


def scope_properties(path: str, pid: int, values: Values, systemd_version: int) -> Properties:
    """Return what a container's transient scope is started with; the parent in `path` is its slice.

    Delegate=yes makes systemd keep every controller enabled in the slices above, and leave alone what
    the container makes of its own cgroup. OOMPolicy=kill is the only property behind memory.oom.group: with
    any other, systemd puts it back to 0 when it next looks at the slice.
    """
    properties = {
        "Description": Property("s", "container"),
        **_UNIT,
        "PIDs": Property("au", [pid]),
        "Slice": Property("s", unit_of(str(PurePosixPath(path).parent))),
        "Delegate": Property("b", True),
        **value_properties(values),
    }
    if systemd_version >= OOM_POLICY_SINCE:
        policy = "kill" if values.get("memory.oom.group") == "1" else "continue"
        properties["OOMPolicy"] = Property("s", policy)
    return properties


def value_properties(values: Values) -> Properties:
    """Return the properties for those values that have some; the others (hugetlb) systemd does not know."""
    properties: dict[str, Property] = {}
    for file, text in values.items():
        if file == "cpu.max":
            properties |= _quota(text)
        elif file in _SETS:
            properties[_SETS[file]] = Property("ay", _mask(CpuSet.parse(text)))
        elif file in _AMOUNTS:
            properties[_AMOUNTS[file]] = Property("t", INFINITY if text == _MAX else int(text))
    return properties


def _quota(cpu_max: str) -> Properties:
    quota, period = cpu_max.split()
    per_second = INFINITY
    if quota != _MAX:
        # Rounded up to what systemd can keep; turned back into a quota it is rounded down again.
        steps = -(-int(quota) * USEC_PER_SEC // (int(period) * _QUOTA_STEP_USEC))
        per_second = steps * _QUOTA_STEP_USEC
    return {
        "CPUQuotaPerSecUSec": Property("t", per_second),
        "CPUQuotaPeriodUSec": Property("t", int(period)),
    }


def _mask(cpus: CpuSet) -> bytes:
    """Return a bit for each CPU, lowest byte first."""
    bits = sum(1 << cpu for cpu in cpus)
    return bits.to_bytes(bits.bit_length() // 8 + 1, "little")
