"""A set of CPUs (or of NUMA nodes) as an immutable value."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

HIGHEST_CPU = 65_535
"""Far above any kernel's NR_CPUS; keeps a wrong number in a file from becoming a huge integer."""


class CpuSetError(ValueError):
    """A text is not a CPU list."""


@dataclass(frozen=True, slots=True)
class CpuSet:
    """Bit N of `mask` is CPU N. Printed and parsed as the kernel's list format (`0-3,8`)."""

    mask: int = 0

    @classmethod
    def of(cls, *cpus: int) -> "CpuSet":
        return cls.from_iterable(cpus)

    @classmethod
    def from_iterable(cls, cpus: Iterable[int]) -> "CpuSet":
        mask = 0
        for cpu in cpus:
            mask |= 1 << cpu
        return cls(mask)

    @classmethod
    def parse(cls, text: str) -> "CpuSet":
        """Read a list such as `0-3,8`; the empty text is the empty set. Raises CpuSetError."""
        mask = 0
        for part in text.split(",") if text else ():
            first, dash, last = part.partition("-")
            low = _number(first)
            high = _number(last) if dash else low
            if low > high:
                raise CpuSetError(f'invalid range "{part}" ({low} > {high})')
            mask |= (1 << high + 1) - (1 << low)
        return cls(mask)

    def __or__(self, other: "CpuSet") -> "CpuSet":
        return CpuSet(self.mask | other.mask)

    def __and__(self, other: "CpuSet") -> "CpuSet":
        return CpuSet(self.mask & other.mask)

    def __sub__(self, other: "CpuSet") -> "CpuSet":
        return CpuSet(self.mask & ~other.mask)

    def __le__(self, other: "CpuSet") -> bool:
        """Whether every CPU of this set is in the other."""
        return self.mask & ~other.mask == 0

    def __len__(self) -> int:
        return self.mask.bit_count()

    def __bool__(self) -> bool:
        return self.mask != 0

    def __contains__(self, cpu: int) -> bool:
        return cpu >= 0 and self.mask >> cpu & 1 == 1

    def __iter__(self) -> Iterator[int]:
        return bits(self.mask)

    def __str__(self) -> str:
        ranges = []
        rest, base = self.mask, 0
        while rest:
            start = (rest & -rest).bit_length() - 1
            rest >>= start
            length = (~rest & rest + 1).bit_length() - 1
            first = base + start
            ranges.append(str(first) if length == 1 else f"{first}-{first + length - 1}")
            rest >>= length
            base = first + length
        return ",".join(ranges)


NO_CPUS = CpuSet()


def bits(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def lowest_bits(mask: int, count: int) -> int:
    """Return the `count` lowest bits that are set in `mask` (all of them, where it has fewer)."""
    rest = mask
    for _ in range(count):
        rest &= rest - 1
        if not rest:
            break
    return mask ^ rest


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise CpuSetError(f'strconv.Atoi: parsing "{text}": invalid syntax')
    # The length is looked at first: turning a very long text into a number is slow.
    if len(text) > len(str(HIGHEST_CPU)) + 20 or int(text) > HIGHEST_CPU:
        raise CpuSetError(f'CPU number "{text[:30]}" is above {HIGHEST_CPU}, the highest that is possible')
    return int(text)
