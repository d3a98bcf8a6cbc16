"""CPU amounts as cgroups spell them, with Kubernetes' own rounding."""

import math

MIN_SHARES = 2
MAX_SHARES = 262144
MIN_QUOTA_USEC = 1000
DEFAULT_PERIOD_USEC = 100_000
MAX_WEIGHT = 10_000


def milli_to_shares(cpu_milli: int) -> int:
    """Return cgroup v1 shares, the unit in which requests are still compared."""
    return min(max(cpu_milli * 1024 // 1000, MIN_SHARES), MAX_SHARES)


def milli_to_quota_usec(cpu_milli: int, period_usec: int) -> int:
    """Return the quota of one period; 0 means no limit, and the kernel takes nothing below 1 ms."""
    return max(cpu_milli * period_usec // 1000, MIN_QUOTA_USEC) if cpu_milli else 0


def linear_weight(shares: int) -> int:
    """Return cpu.weight as kubelet writes it at pod and QoS level: 1 CPU is 39."""
    return min(1 + (shares - MIN_SHARES) * (MAX_WEIGHT - 1) // (MAX_SHARES - MIN_SHARES), MAX_WEIGHT)


def container_weight(shares: int) -> int:
    """Return cpu.weight as current runtimes write it for a container: 1 CPU is 100, systemd's default."""
    if shares == 0:
        return 0
    if shares <= MIN_SHARES:
        return 1
    if shares >= MAX_SHARES:
        return MAX_WEIGHT
    exponent = math.log2(shares)
    return math.ceil(10 ** ((exponent * exponent + 125 * exponent) / 612 - 7 / 34))


def weight_to_shares(weight: int) -> int:
    """Undo `linear_weight`, as far as its rounding allows."""
    return (weight - 1) * (MAX_SHARES - MIN_SHARES) // (MAX_WEIGHT - 1) + MIN_SHARES


def shares_to_milli(shares: int) -> int:
    """Return the CPU request that `shares` stand for."""
    return -(-shares * 1000 // 1024)


def quota_to_milli(quota_usec: int, period_usec: int) -> int:
    """Return the CPU limit that a quota stands for; 0 for none."""
    return max(quota_usec, 0) * 1000 // period_usec
