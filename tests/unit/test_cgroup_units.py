"""cgroup values as systemd's properties: what it writes from them is what we write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.cgroup.conversions import milli_to_quota_usec
from nodeagent.cgroup.units import (
    INFINITY,
    Property,
    scope_properties,
    slice_properties,
    unit_of,
    value_properties,
)

LEAF = "kubepods.slice/kubepods-podu.slice/nodeagent-c.scope"
SLOWEST_PERIOD_KEPT_EXACTLY_USEC = 10_000


def quota_systemd_writes(cpu_max: str) -> int:
    """What systemd makes of its two properties, for a limit it need not stretch the period for."""
    properties = value_properties({"cpu.max": cpu_max})
    per_second, period = properties["CPUQuotaPerSecUSec"].value, properties["CPUQuotaPeriodUSec"].value
    assert isinstance(per_second, int) and isinstance(period, int)
    assert per_second % 100 == 0  # the hundredths of a percent that a unit file can hold
    return per_second * period // 1_000_000


def test_values() -> None:
    assert value_properties(
        {
            "cpuset.cpus": "0,9",
            "cpuset.mems": "1",
            "cpu.weight": "79",
            "cpu.max": "41700 100000",
            "memory.min": "0",
            "memory.high": "max",
            "memory.max": "1048576",
            "memory.swap.max": "0",
            "pids.max": "max",
        }
    ) == {
        "AllowedCPUs": Property("ay", b"\x01\x02"),
        "AllowedMemoryNodes": Property("ay", b"\x02"),
        "CPUWeight": Property("t", 79),
        "CPUQuotaPerSecUSec": Property("t", 417_000),
        "CPUQuotaPeriodUSec": Property("t", 100_000),
        "MemoryMin": Property("t", 0),
        "MemoryHigh": Property("t", INFINITY),
        "MemoryMax": Property("t", 1048576),
        "MemorySwapMax": Property("t", 0),
        "TasksMax": Property("t", INFINITY),
    }


def test_no_quota_is_a_property_too() -> None:
    quota = value_properties({"cpu.max": "max 5000"})
    assert quota["CPUQuotaPerSecUSec"] == Property("t", INFINITY)
    assert quota["CPUQuotaPeriodUSec"] == Property("t", 5000)


def test_what_systemd_does_not_know_is_left_to_the_file() -> None:
    assert value_properties({"hugetlb.2MB.max": "0", "memory.oom.group": "1"}) == {}


@given(st.integers(1, 1_000_000), st.integers(1, 1000))
def test_a_limit_in_millicores_is_kept_exactly(cpu_milli: int, period_ms: int) -> None:
    period_usec = 1000 * period_ms
    quota = milli_to_quota_usec(cpu_milli, period_usec)
    if quota > 1000 or period_usec <= SLOWEST_PERIOD_KEPT_EXACTLY_USEC:
        assert quota_systemd_writes(f"{quota} {period_usec}") == quota


@given(st.integers(1000, 10_000_000), st.integers(1000, 1_000_000))
def test_no_limit_is_ever_rounded_down(quota: int, period: int) -> None:
    assert quota <= quota_systemd_writes(f"{quota} {period}") <= quota + period // 10_000 + 1


def test_a_scope_takes_its_process_and_its_place() -> None:
    properties = scope_properties(LEAF, 4711, {"cpu.weight": "100", "memory.oom.group": "1"}, 257)
    assert properties["PIDs"] == Property("au", [4711])
    assert properties["Slice"] == Property("s", "kubepods-podu.slice")
    assert properties["Delegate"] == Property("b", True)
    assert properties["DefaultDependencies"] == Property("b", False)
    assert properties["CPUWeight"] == Property("t", 100)
    assert "Slice" not in slice_properties({})


@pytest.mark.parametrize(("group", "policy"), [("1", "kill"), ("0", "continue")])
def test_oom_policy_is_what_keeps_the_group_kill(group: str, policy: str) -> None:
    values = {"memory.oom.group": group}
    assert scope_properties(LEAF, 1, values, 253)["OOMPolicy"] == Property("s", policy)
    assert "OOMPolicy" not in scope_properties(LEAF, 1, values, 252)


def test_only_slices_and_scopes_are_units() -> None:
    assert unit_of(LEAF) == "nodeagent-c.scope"
    with pytest.raises(ValueError, match="neither a slice nor a scope"):
        unit_of("kubepods/burstable")
