"""The choice of CPUs against the rule, spelt out with sets, on machines of any irregularity."""

from collections.abc import Callable, Iterable, Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.hardware.cpuset import CpuSet
from nodeagent.hardware.topology import Cpu, Topology
from nodeagent.resources.cpu_assignment import CpuAssigner
from nodeagent.resources.cpu_options import CpuPolicyOptions
from tests.unit.machines import irregular_machines

Unit = Callable[[Cpu], int]


class Rule:
    """Whole nodes and sockets, then caches, then cores, then single CPUs; what is fullest comes first."""

    def __init__(self, topology: Topology, free: Iterable[int]) -> None:
        self.cpus = topology.cpus
        self.free = set(free)
        self.of = {cpu.cpu: cpu for cpu in topology.cpus}
        numas, sockets = self.all(numa), self.all(socket)
        self.outer, self.inner = (numa, socket) if len(sockets) >= len(numas) else (socket, numa)
        self.threads = len(self.cpus) // len(self.all(core))
        self.socket_size = len(self.cpus) // len(sockets)
        self.uncore_size = len(self.cpus) // len(self.all(uncore))

    def all(self, unit: Unit) -> set[int]:
        return {unit(cpu) for cpu in self.cpus}

    def members(self, unit: Unit, number: int) -> set[int]:
        return {cpu.cpu for cpu in self.cpus if unit(cpu) == number}

    def listed(self, unit: Unit, within: set[int]) -> list[int]:
        """Those with a free CPU in `within`: fewest free on the whole machine first, then by number."""
        found = {unit(self.of[cpu]) for cpu in self.free & within}
        return sorted(found, key=lambda number: (len(self.members(unit, number) & self.free), number))

    def in_order(self, *units: Unit) -> Iterator[int]:
        """Name the last of the units, through the ones it is nested in."""

        def walk(units: tuple[Unit, ...], within: set[int]) -> Iterator[int]:
            for number in self.listed(units[0], within):
                if len(units) == 1:
                    yield number
                else:
                    yield from walk(units[1:], self.members(units[0], number))

        return walk(units, set(self.of))

    def numas(self) -> list[int]:
        return list(self.in_order(numa) if self.outer is numa else self.in_order(socket, numa))

    def sockets(self) -> list[int]:
        return list(self.in_order(socket) if self.outer is socket else self.in_order(numa, socket))

    def cores(self) -> list[int]:
        return list(self.in_order(self.outer, self.inner, core))

    def uncores(self) -> list[int]:
        return [number for node in self.numas() for number in self.listed(uncore, self.members(numa, node))]

    def take(self, wanted: int, *, by_uncore: bool, spread: bool) -> set[int]:
        self.missing, self.taken = wanted, set[int]()
        whole_numas = (self.numas, numa, None)
        whole_sockets = (self.sockets, socket, self.socket_size)
        first = (whole_numas, whole_sockets) if self.outer is numa else (whole_sockets, whole_numas)
        for listing, unit, length in first:
            self.take_whole(listing(), unit, length)
        if by_uncore:
            self.take_by_uncore()
        if not spread:
            self.take_whole(self.cores(), core, self.threads)
        unit, numbers = (socket, self.sockets()) if spread else (core, self.cores())
        for number in numbers:
            self.claim(sorted(self.members(unit, number) & self.free)[: self.missing])
        return self.taken

    def take_whole(self, numbers: list[int], unit: Unit, length: int | None) -> None:
        for number in numbers:
            members = self.members(unit, number)
            if members <= self.free and len(members) <= self.missing and length in (None, len(members)):
                self.claim(members)

    def take_by_uncore(self) -> None:
        for number in self.uncores():
            if self.missing >= self.uncore_size:
                self.take_whole(self.uncores(), uncore, None)
            if not self.missing:
                return
            cores = [
                sorted(self.members(core, each) & self.members(uncore, number) & self.free)
                for each in sorted({core(self.of[cpu]) for cpu in self.members(uncore, number) & self.free})
            ]
            candidates = [cpu for each in cores[: -(-self.missing // self.threads)] for cpu in each]
            candidates.sort()
            if self.missing % 2 and self.threads > 1 and len(candidates) > self.missing:
                candidates.pop()
            if len(candidates) == self.missing:
                self.claim(candidates)

    def claim(self, cpus: Iterable[int]) -> None:
        self.taken |= set(cpus)
        self.free -= set(cpus)
        self.missing -= len(set(cpus))


def core(cpu: Cpu) -> int:
    return cpu.core


def socket(cpu: Cpu) -> int:
    return cpu.socket


def numa(cpu: Cpu) -> int:
    return cpu.numa


def uncore(cpu: Cpu) -> int:
    return cpu.uncore


@settings(max_examples=1500, deadline=None)
@given(irregular_machines(), st.booleans(), st.booleans(), st.data())
def test_cpus_are_chosen_by_the_rule(
    topology: Topology, by_uncore: bool, spread: bool, data: st.DataObject
) -> None:
    taken = data.draw(st.sets(st.sampled_from(list(topology.online))))
    free = topology.online - CpuSet.from_iterable(taken)
    number = data.draw(st.integers(0, len(free)))
    options = CpuPolicyOptions(
        prefer_align_cpus_by_uncorecache=by_uncore and not spread, distribute_cpus_across_cores=spread
    )
    chosen = CpuAssigner(topology).take(free, number, options).cpus
    by_the_rule = Rule(topology, free).take(number, by_uncore=by_uncore and not spread, spread=spread)
    assert set(chosen) == by_the_rule
    assert len(chosen) == number and chosen <= free
