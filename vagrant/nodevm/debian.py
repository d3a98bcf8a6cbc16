"""A Debian root made in a chroot at native speed, the project's dependencies in a virtual environment."""

import os
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

from nodevm.paths import CHECKOUT, PROVISION, VmError, require, run

SUITE = "trixie"
GUEST_PYTHON = "3.13"
GUEST_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")

# Documentation and translations are half of a small Debian.
LEFT_OUT = ("doc", "man", "info", "locale", "i18n")
# Timers and consoles that only cost emulated CPU time, and waiting for a network that is always there.
MASKED = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "getty@tty1.service",
    "serial-getty@ttyS0.service",
    "systemd-networkd-wait-online.service",
    "systemd-pstore.service",
)
# A short list of modules instead of all: the emulated machine unpacks its initrd in a second.
INITRAMFS_HOOK = r"""
mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/usr/share/initramfs-tools/modules.d"
printf 'MODULES=list\nCOMPRESS=gzip\n' >"$1/etc/initramfs-tools/conf.d/nodeagent"
printf 'virtio_pci\nvirtio_blk\next4\n' >"$1/usr/share/initramfs-tools/modules.d/nodeagent"
"""
# QEMU's user network.
NETWORK = """\
[Match]
Name=eth0

[Network]
Address=10.0.2.15/24
Gateway=10.0.2.2
DNS=10.0.2.3
LinkLocalAddressing=no
IPv6AcceptRA=no
"""
SSHD = "PermitRootLogin prohibit-password\nUseDNS no\nMaxSessions 50\nMaxStartups 50\n"
# The chroot's programs must not meet the builder's pip, Python or locale settings.
CLEAN_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/root"}


def dependencies() -> list[str]:
    """What the checkout's pyproject.toml asks for, to build the project and to run it."""
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    return [*settings["build-system"]["requires"], *settings["project"]["dependencies"]]


def make_root(root: Path, scratch: Path) -> None:
    """Make `root` a bootable Debian with the project's dependencies. Needs root. `scratch` must exist."""
    if os.geteuid() != 0:
        raise VmError("building the image makes a Debian chroot and needs root: run this command with sudo")
    require("mmdebstrap")
    wheels = scratch / "wheels"
    _download_wheels(wheels, scratch)
    _bootstrap(root)
    _settle(root)
    source = root / "tmp" / "source"
    source.mkdir()
    shutil.copy(CHECKOUT / "pyproject.toml", source)
    shutil.copytree(wheels, source / "wheels")
    provision(root, "dependencies", "/tmp/source", "/tmp/source/wheels")
    shutil.rmtree(source)


def provision(root: Path, *arguments: str) -> None:
    """Run one step of the provisioning script in the chroot."""
    copy = root / "tmp" / "provision"
    shutil.copy2(PROVISION, copy)
    chroot(root, "/tmp/provision", *arguments)
    copy.unlink()


def chroot(root: Path, *command: str) -> None:
    """Run a command in the chroot; its /proc, which systemd's tools want, is gone when the command ends."""
    inside = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
    run(["unshare", "--mount", "sh", "-c", inside, root, *command], env=CLEAN_ENVIRONMENT)


def _bootstrap(root: Path) -> None:
    packages = subprocess.run([PROVISION, "packages"], capture_output=True, text=True, check=True).stdout
    include = ",".join([*packages.split(), "initramfs-tools", "linux-image-cloud-amd64"])
    command: list[str | Path] = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={include}"]
    command += [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in LEFT_OUT]
    command += [f"--aptopt={option}" for option in ['Acquire::Languages "none"', *_host_proxies()]]
    command += [f"--essential-hook={INITRAMFS_HOOK}", SUITE, root, *_host_mirror()]
    run(command)


def _host_proxies() -> list[str]:
    """The apt proxies of this machine, as options."""
    if shutil.which("apt-config") is None:
        return []
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    wanted = ("Acquire::http::Proxy", "Acquire::https::Proxy")
    return [line.rstrip(";") for line in dump.splitlines() if line.startswith(wanted) and '""' not in line]


def _host_mirror() -> list[str]:
    """This machine's own Debian mirror, if it has one; mmdebstrap knows the public one."""
    if shutil.which("apt-get") is None:
        return []
    command = ["apt-get", "indextargets", "--format", "$(ORIGIN) $(COMPONENT) $(CODENAME) $(REPO_URI)"]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    for line in lines:
        match line.split():
            case ["Debian", "main", codename, uri] if "-" not in codename:
                return [uri]
    return []


def _download_wheels(wheels: Path, scratch: Path) -> None:
    """The dependencies as wheels for the guest's Python, by this machine's pip with this machine's settings.

    systemd-python has none; the guest takes Debian's package.
    """
    abis = (f"cp{GUEST_PYTHON.replace('.', '')}", "abi3", "none")
    command: list[str | Path] = [*_host_pip(scratch), "download", "--quiet", "--dest", wheels]
    command += ["--only-binary=:all:", "--implementation", "cp", "--python-version", GUEST_PYTHON]
    command += [word for abi in abis for word in ("--abi", abi)]
    command += [word for platform in GUEST_PLATFORMS for word in ("--platform", platform)]
    run([*command, *(name for name in dependencies() if not name.startswith("systemd-python"))])


def _host_pip(scratch: Path) -> list[str | Path]:
    own = [sys.executable, "-m", "pip"]
    if subprocess.run([*own, "--version"], capture_output=True, check=False).returncode == 0:
        return list(own)
    try:
        venv.create(scratch / "pip", with_pip=True)
    except subprocess.CalledProcessError as error:
        raise VmError("this Python has neither pip nor ensurepip: apt-get install python3-venv") from error
    return [scratch / "pip" / "bin" / "python", "-m", "pip"]


def _settle(root: Path) -> None:
    """What makes a Debian root a machine that boots fast and lets us in."""
    etc = root / "etc"
    (etc / "hostname").write_text("node\n")
    (etc / "hosts").write_text("127.0.0.1 localhost\n127.0.1.1 node\n::1 localhost\n")
    (etc / "resolv.conf").unlink(missing_ok=True)
    (etc / "resolv.conf").write_text("nameserver 10.0.2.3\n")
    # Empty: each machine gets its own. Not "uninitialized": at a first boot systemd enables all units.
    (etc / "machine-id").write_text("")
    (etc / "apt" / "apt.conf.d" / "99mmdebstrap").unlink(missing_ok=True)
    (etc / "systemd" / "network").mkdir(exist_ok=True)
    (etc / "systemd" / "network" / "eth0.network").write_text(NETWORK)
    (etc / "ssh" / "sshd_config.d" / "nodeagent.conf").write_text(SSHD)
    chroot(root, "systemctl", "--quiet", "enable", "systemd-networkd.service", "ssh.service")
    chroot(root, "systemctl", "--quiet", "mask", *MASKED)
