"""Was it killed for memory? Counters of memory.events, on plain files."""

from pathlib import Path

import pytest

from nodeagent.runtime.oom import OomCounter, PodCounters


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "memory.events"
    write(path, 0)
    return path


def write(path: Path, oom_kills: int) -> None:
    path.write_text(f"low 0\nhigh 0\nmax 7\noom 3\noom_kill {oom_kills}\noom_group_kill 9\n")


def test_kills_are_counted_from_the_opening_on(events: Path) -> None:
    write(events, 4)
    counter = OomCounter(str(events))
    assert counter.growth() == 0
    write(events, 6)
    assert (counter.growth(), counter.growth()) == (2, 0)
    counter.close()


def test_a_cgroup_that_is_gone_says_so(events: Path) -> None:
    counter = OomCounter(str(events))
    # a removed cgroup's file can no longer be read, neither can a closed one
    counter.close()
    assert counter.growth() is None


def test_one_counter_serves_all_containers_of_a_pod(events: Path) -> None:
    counters = PodCounters()
    first, second = counters.acquire(str(events)), counters.acquire(str(events))
    assert first is second is not None
    counters.release(str(events))
    assert first.growth() == 0
    counters.release(str(events))
    assert first.growth() is None


def test_without_a_cgroup_there_is_no_counter(tmp_path: Path) -> None:
    assert PodCounters().acquire(str(tmp_path / "memory.events")) is None
