"""`top` on a busy container and an idle one: order, shares of the binding limit, throttling."""

from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.cli.top import ORDERS, container_rows, top_table
from nodeagent.stats.live_tree import Bound, LiveCgroup, Usage, with_rates

MIB = 1 << 20
POD = "kubepods.slice/kubepods-pod11111111_2222_3333_4444_555555555555.slice"
NAMES = {"11111111-2222-3333-4444-555555555555": "default/web", "abc": "busy", "def": "idle"}


def leaf(name: str, cpu_usec: int, periods: int, throttled: int, used: int, limit: int) -> LiveCgroup:
    path = f"{POD}/nodeagent-{name}.scope"
    memory = Bound(path, limit * MIB, (limit - used) * MIB, "memory.max")
    usage = Usage(
        cpu_usec=cpu_usec, memory_bytes=used * MIB, pids=2, periods=periods, throttled_periods=throttled
    )
    bounds = {"cpu": Bound(path, 500, 500, "cpu.max"), "memory": memory}
    return LiveCgroup(path, "container", {}, usage, bounds=bounds)


def levels(busy_usec: int, periods: int, throttled: int) -> list[LiveCgroup]:
    return [
        LiveCgroup(POD, "pod", {}, Usage()),
        leaf("def", 1000, 0, 0, 150, 200),
        leaf("abc", busy_usec, periods, throttled, 20, 200),
    ]


def test_shares_of_limits_and_of_periods_over_two_seconds() -> None:
    measured = with_rates(levels(1_000_000, 100, 10), levels(1_800_000, 120, 25), 2.0)
    rows = container_rows(measured, NAMES, CgroupLayout(""))
    rows.sort(key=ORDERS["cpu"], reverse=True)
    busy, idle = rows
    assert (busy.pod, busy.container, idle.container) == ("default/web", "busy", "idle")
    # 800 ms of CPU in 2 s, of half a CPU; 15 of 20 periods
    assert (busy.cpu_milli, busy.cpu_share, busy.throttled_share) == (400, 0.8, 0.75)
    assert (idle.cpu_milli, idle.memory_share, idle.memory_left_bytes) == (0, 0.75, 50 * MIB)
    assert max(rows, key=ORDERS["memory"]) is idle
    assert max(rows, key=ORDERS["throttled"]) is busy
    lines = [line.split() for line in top_table(rows).splitlines()]
    assert lines[1] == ["default/web", "busy", "400m", "80%", "75%", "20Mi", "10%", "180Mi", "2"]


def test_no_containers_are_said() -> None:
    assert top_table([]) == "No container is running."
