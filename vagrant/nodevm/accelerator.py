"""KVM where it works, QEMU's own emulation where it does not."""

import fcntl
import os
from pathlib import Path

from nodevm.paths import cache_directory

KVM_GET_API_VERSION = 0xAE00
KVM_CREATE_VM = 0xAE01
KVM_API_VERSION = 12


def candidates() -> tuple[str, ...]:
    """What to try, best first. KVM only if it makes a machine here: the device's presence proves nothing."""
    return ("kvm", "tcg") if not _failed_before() and _kvm_makes_a_machine() else ("tcg",)


def patience_seconds(name: str) -> tuple[float, float]:
    """How long the kernel's first line and the whole boot may take. Under KVM: one second and ten."""
    return (12, 90) if name == "kvm" else (60, 420)


def remember_failure(name: str) -> None:
    """No guest came up under `name`: do not lose the time again until this machine is rebooted."""
    if name == "kvm":
        _verdict().write_text(_boot_id())


def _failed_before() -> bool:
    return _verdict().exists() and _verdict().read_text() == _boot_id()


def _verdict() -> Path:
    return cache_directory() / "kvm-failed"


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text()


def arguments(name: str) -> list[str]:
    """QEMU's options. Under emulation, Nehalem is a model that boots Debian and allows SMT shapes."""
    if name == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi,tb-size=1024", "-cpu", "Nehalem"]


def _kvm_makes_a_machine() -> bool:
    try:
        device = os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if fcntl.ioctl(device, KVM_GET_API_VERSION) != KVM_API_VERSION:
            return False
        os.close(fcntl.ioctl(device, KVM_CREATE_VM, 0))
    except OSError:
        return False
    finally:
        os.close(device)
    return True
