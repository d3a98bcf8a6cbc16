"""Choose CPUs out of the free ones: whole units first, so that what is left stays usable."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from nodeagent.hardware.cpuset import NO_CPUS, CpuSet, lowest_bits
from nodeagent.hardware.topology import Topology
from nodeagent.resources.cpu_distribution import distribute
from nodeagent.resources.cpu_options import CpuPolicyOptions
from nodeagent.resources.errors import NotEnoughCpus

Unit = tuple[int, int]
"""A core, socket, NUMA node or cache: its id, and the bitmask of its CPUs."""

Counted = tuple[int, int, int]
"""A unit with free CPUs: how many, its id, its bitmask. Sorts as units are tried: fewest free first."""


@dataclass(frozen=True, slots=True)
class Step:
    """CPUs that were taken for one reason: `units` says out of what, `ids` which of them."""

    units: str
    ids: tuple[int, ...]
    cpus: CpuSet


@dataclass(frozen=True, slots=True)
class Choice:
    """The CPUs chosen, and how they came together."""

    cpus: CpuSet = NO_CPUS
    steps: tuple[Step, ...] = ()

    def __or__(self, other: "Choice") -> "Choice":
        return Choice(self.cpus | other.cpus, self.steps + other.steps)


NO_CHOICE = Choice()


class CpuAssigner:
    """Chooses CPUs on one machine. What can be known beforehand is worked out once."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        cores, sockets, numas = (
            tuple(units.items()) for units in (topology.cores, topology.sockets, topology.numas)
        )
        self._numas = numas
        # Where sockets hold several NUMA nodes the sockets are gone through first, else the NUMA nodes.
        self._numa_first = len(sockets) >= len(numas)
        self._outer, inner = (numas, sockets) if self._numa_first else (sockets, numas)
        self._inner_of = _inside(self._outer, inner)
        self._cores_of_inner = _inside(inner, cores)
        uncores = tuple(topology.uncores.items())
        self._uncores_of_numa = _inside(numas, uncores)
        self._cores_of_uncore = _inside(uncores, cores)

    def take(self, free: CpuSet, number: int, options: CpuPolicyOptions) -> Choice:
        """Return `number` of the `free` CPUs. Raises NotEnoughCpus."""
        if number > len(free):
            raise NotEnoughCpus(number, len(free))
        if number == 0:
            return NO_CHOICE
        if options.distribute_cpus_across_numa:
            group = self._topology.cpus_per_core if options.full_pcpus_only else 1
            return self._distributed(free.mask, number, group)
        return self._packed(
            free.mask,
            number,
            align_by_uncore=options.prefer_align_cpus_by_uncorecache,
            spread=options.distribute_cpus_across_cores,
        )

    def _packed(
        self, free: int, number: int, *, align_by_uncore: bool = False, spread: bool = False
    ) -> Choice:
        packing = _Packing(free, number)
        if self._numa_first:
            packing.take_whole("NUMA node", self._numas_in_order(packing.free))
            self._take_sockets(packing)
        else:
            self._take_sockets(packing)
            packing.take_whole("NUMA node", self._numas_in_order(packing.free))
        if align_by_uncore:
            self._take_by_uncore(packing)
        if not spread:
            packing.take_whole("core", self._cores_in_order(packing.free), self._topology.cpus_per_core)
        if packing.missing:
            self._take_single(packing, spread)
        return packing.choice()

    def _take_sockets(self, packing: "_Packing") -> None:
        packing.take_whole("socket", self._sockets_in_order(packing.free), self._topology.cpus_per_socket)

    def _take_by_uncore(self, packing: "_Packing") -> None:
        """Take whole caches while an average one is not too many, then the exact rest out of one cache."""
        uncores = list(self._uncores_in_order(packing.free))
        if packing.missing >= self._topology.cpus_per_uncore:
            packing.take_whole("uncore cache", uncores)
        for _, uncore, _ in uncores:
            if not packing.missing:
                return
            part = self._part_of_uncore(uncore, packing.free, packing.missing)
            if part.bit_count() == packing.missing:
                packing.take("part of uncore cache", uncore, part)

    def _part_of_uncore(self, uncore: int, free: int, missing: int) -> int:
        """Return the free CPUs of as many cores as are needed, without the last where one is too many."""
        cpus_per_core = self._topology.cpus_per_core
        cores = [mask & free for _, mask in self._cores_of_uncore[uncore] if mask & free]
        part = sum(cores[: -(-missing // cpus_per_core)])
        if missing % 2 and cpus_per_core > 1 and part.bit_count() > missing:
            part ^= 1 << part.bit_length() - 1
        return part

    def _take_single(self, packing: "_Packing", spread: bool) -> None:
        """Take single CPUs core by core, or with `spread` by number in each socket."""
        in_order = self._sockets_in_order if spread else self._cores_in_order
        for _, unit, mask in in_order(packing.free):
            part = lowest_bits(mask & packing.free, packing.missing)
            packing.take("CPUs of socket" if spread else "CPUs of core", unit, part)
            if not packing.missing:
                return

    def _distributed(self, free: int, number: int, group: int) -> Choice:
        counted = list(self._numas_in_order(free))
        if number % group:
            return self._packed(free, number)
        groups_on_machine = -(-len(self._topology.cpus) // group)
        groups_per_numa = -(-groups_on_machine // len(self._numas))
        least_nodes = -(-(number // group) // groups_per_numa)
        shared = distribute([count for count, _, _ in counted], number, group, least_nodes)
        if shared is None:
            return self._packed(free, number)
        choice = NO_CHOICE
        for member, extra_groups in zip(shared.members, shared.extra_groups, strict=True):
            _, _, numa = counted[member]
            for part in (shared.share, *[group] * extra_groups):
                choice |= self._packed(free & numa & ~choice.cpus.mask, part)
        return choice

    def _outer_in_order(self, free: int) -> Iterator[Counted]:
        return iter(_in_order(self._outer, free))

    def _inner_in_order(self, free: int) -> Iterator[Counted]:
        for _, outer, mask in _in_order(self._outer, free):
            yield from _in_order(self._inner_of[outer], free, mask)

    def _numas_in_order(self, free: int) -> Iterator[Counted]:
        return self._outer_in_order(free) if self._numa_first else self._inner_in_order(free)

    def _sockets_in_order(self, free: int) -> Iterator[Counted]:
        return self._inner_in_order(free) if self._numa_first else self._outer_in_order(free)

    def _cores_in_order(self, free: int) -> Iterator[Counted]:
        for _, inner, mask in self._inner_in_order(free):
            yield from _in_order(self._cores_of_inner[inner], free, mask)

    def _uncores_in_order(self, free: int) -> Iterator[Counted]:
        for _, numa, mask in self._numas_in_order(free):
            yield from _in_order(self._uncores_of_numa[numa], free, mask)


class _Packing:
    """What is still free and still missing while one request is packed."""

    def __init__(self, free: int, missing: int) -> None:
        self.free = free
        self.missing = missing
        self._taken: list[tuple[str, list[int], int]] = []

    def take_whole(self, name: str, units: Iterable[Counted], size: int | None = None) -> None:
        """Take the wholly free units that are not too large. With `size`, only those of this size.

        The sizes of cores and sockets are averages, and on uneven machines other units do not count. The
        units' order is that of the moment it was made; they may list a unit twice.
        """
        if not self.missing:
            return
        for count, unit, mask in units:
            whole = count == mask.bit_count() and size in (None, count)
            if whole and count <= self.missing and mask & ~self.free == 0:
                self.take(name, unit, mask)
                if not self.missing:
                    return

    def take(self, name: str, unit: int, mask: int) -> None:
        self.free &= ~mask
        self.missing -= mask.bit_count()
        if self._taken and self._taken[-1][0] == name:
            _, ids, taken = self._taken.pop()
            self._taken.append((name, [*ids, unit], taken | mask))
        else:
            self._taken.append((name, [unit], mask))

    def choice(self) -> Choice:
        steps = tuple(Step(name, tuple(ids), CpuSet(mask)) for name, ids, mask in self._taken)
        cpus = 0
        for _, _, mask in self._taken:
            cpus |= mask
        return Choice(CpuSet(cpus), steps)


def _inside(outer: Sequence[Unit], inner: Sequence[Unit]) -> dict[int, tuple[Unit, ...]]:
    """Return for each outer unit the inner ones that have CPUs in it."""
    return {unit: tuple(entry for entry in inner if entry[1] & mask) for unit, mask in outer}


def _in_order(units: Iterable[Unit], free: int, within: int = -1) -> list[Counted]:
    """List the units that have free CPUs within a mask: those with the fewest free CPUs first, then by id."""
    return sorted(((free & mask).bit_count(), unit, mask) for unit, mask in units if free & mask & within)
