"""The image recipe: Debian by mmdebstrap, the project in its virtual environment, one sparse disk image.

Two layers, each cached under the hash of what goes in. The base (Debian, kernel, the project's dependencies) takes
a minute or two and changes rarely; the image (base plus the checkout's project) takes seconds. Nothing is mounted,
and everything is installed in a chroot at native speed, never inside an emulated machine.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nodevm.paths import CHECKOUT, PROVISION, VmError, cache_directory, require, require_space, run, say

# File name below the checkout -> mode and content.
Project = dict[str, tuple[int, bytes]]

UNITS = ("nodeagent.service", "nodeagent-keeper.service")
SUITE = "trixie"
GUEST_PYTHON = "3.13"
GUEST_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
DISK_SIZE = "6G"
BASE_NEEDS_BYTES = 2500 << 20
IMAGE_NEEDS_BYTES = 1200 << 20
IMAGES_KEPT = 2

# Documentation and translations are half of a small Debian.
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/i18n/*")
# Timers and consoles that only cost emulated CPU time.
MASKED = ("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer")
MASKED += ("e2scrub_reap.service", "systemd-pstore.service", "getty@tty1.service", "serial-getty@ttyS0.service")

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


@dataclass(frozen=True, slots=True)
class Image:
    """A built image: the disk (raw, sparse, never written again) and what QEMU boots it with."""

    directory: Path

    @property
    def disk(self) -> Path:
        return self.directory / "disk.raw"

    @property
    def kernel(self) -> Path:
        return self.directory / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.directory / "initrd.img"


def ensure_image(in_use: Iterable[Path] = ()) -> Image:
    """The image of the checkout as it is now, built if the cache lacks it. Call with the cache lock held.

    Older entries are pruned, except the directories `in_use`.
    """
    require("ssh-keygen")
    ensure_key()
    cache = cache_directory()
    project = _read_project()
    base = cache / f"base-{_base_hash()}"
    image = Image(cache / f"image-{_image_hash(base.name, project)}")
    if not image.disk.exists():
        _require_root()
        require("mmdebstrap", "mke2fs")
        if not base.exists():
            _build_base(base)
        _build_image(base, project, image)
    os.utime(image.directory)
    _prune(cache, keep={base, image.directory, *in_use})
    return image


def ensure_key() -> Path:
    """The private ssh key of this cache's machines, made on first use."""
    key = cache_directory() / "ssh_key"
    if not key.exists():
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "nodeagent-vm", "-f", key])
    return key


def _require_root() -> None:
    if os.geteuid() != 0:
        raise VmError("building the image makes a Debian chroot and needs root: run this command with sudo")


def _dependencies() -> dict[str, list[str]]:
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    build: list[str] = settings["build-system"]["requires"]
    dependencies: list[str] = settings["project"]["dependencies"]
    return {"build": build, "dependencies": dependencies}


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8) + part)
    return digest.hexdigest()[:16]


def _base_hash() -> str:
    recipe = (Path(__file__), PROVISION)
    return _digest([*(file.read_bytes() for file in recipe), repr(_dependencies()).encode()])


def _image_hash(base_name: str, project: Project) -> str:
    parts = [base_name.encode(), ensure_key().with_suffix(".pub").read_bytes()]
    for name, (mode, content) in project.items():
        parts += [name.encode(), b"%o" % mode, content]
    return _digest(parts)


def _read_project() -> Project:
    """What the image takes from the checkout, read once: an edit during the build cannot blur what the hash names."""
    files = [CHECKOUT / name for name in ("pyproject.toml", "LICENSE", "README.md")]
    files += [path for name in ("nodeagent", "systemd") for path in sorted((CHECKOUT / name).rglob("*"))]
    return {
        str(file.relative_to(CHECKOUT)): (file.stat().st_mode & 0o777, file.read_bytes())
        for file in files
        if file.is_file() and "__pycache__" not in file.parts
    }


@contextlib.contextmanager
def _fresh(target: Path) -> Iterator[Path]:
    """A directory to build in that becomes `target` only when everything in it is done."""
    building = Path(tempfile.mkdtemp(prefix="building-", dir=target.parent))
    try:
        yield building
        building.chmod(0o755)
        building.rename(target)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _build_base(target: Path) -> None:
    require_space(target.parent, BASE_NEEDS_BYTES)
    say(f"building the base system (Debian {SUITE} and the project's dependencies); this takes a minute or two")
    with _fresh(target) as building:
        root = building / "root"
        wheels = building / "wheels"
        _download_wheels(wheels)
        _debootstrap(root)
        _settle(root)
        source = root / "tmp" / "source"
        source.mkdir()
        shutil.copy(CHECKOUT / "pyproject.toml", source)
        wheels.rename(source / "wheels")
        _provision(root, "dependencies", "/tmp/source", "/tmp/source/wheels")
        shutil.rmtree(source)


def _build_image(base: Path, project: Project, image: Image) -> None:
    require_space(base.parent, IMAGE_NEEDS_BYTES)
    say("building the image with the checkout's project in it")
    with _fresh(image.directory) as building:
        root = building / "root"
        run(["cp", "-a", "--reflink=auto", base / "root", root])
        source = root / "tmp" / "source"
        for name, (mode, content) in project.items():
            copy = source / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
            copy.chmod(mode)
        _provision(root, "project", "/tmp/source")
        # Who boots the machine starts the service, with the configuration wanted there.
        for unit in UNITS:
            _chroot(root, "systemctl", "--quiet", "disable", unit)
        shutil.rmtree(source)
        ssh = root / "root" / ".ssh"
        ssh.mkdir(mode=0o700, exist_ok=True)
        shutil.copy(ensure_key().with_suffix(".pub"), ssh / "authorized_keys")
        disk = building / "disk.raw"
        run(["mke2fs", "-q", "-t", "ext4", "-L", "root", "-J", "size=16", "-d", root, disk, DISK_SIZE])
        for name in ("vmlinuz", "initrd.img"):
            shutil.copy(_boot_file(root, name), building / name)
        shutil.rmtree(root)


def _boot_file(root: Path, name: str) -> Path:
    found = sorted((root / "boot").glob(f"{name}-*"))
    if not found:
        raise VmError(f"the base system has no /boot/{name}-*: the kernel package did not install")
    return found[-1]


def _debootstrap(root: Path) -> None:
    packages = subprocess.run([PROVISION, "packages"], capture_output=True, text=True, check=True).stdout.split()
    include = ",".join([*packages, "initramfs-tools", "linux-image-cloud-amd64"])
    # A short list of modules instead of all: the emulated machine unpacks its initrd in a second.
    initramfs = (
        'mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/usr/share/initramfs-tools/modules.d"; '
        'printf "MODULES=list\\nCOMPRESS=gzip\\n" >"$1/etc/initramfs-tools/conf.d/nodeagent"; '
        'printf "virtio_pci\\nvirtio_blk\\next4\\n" >"$1/usr/share/initramfs-tools/modules.d/nodeagent"'
    )
    command: list[str | Path] = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={include}"]
    command += [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT]
    command += [f"--aptopt={option}" for option in ['Acquire::Languages "none"', *_host_proxies()]]
    command += [f"--essential-hook={initramfs}", SUITE, root, *_host_mirror()]
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


def _download_wheels(wheels: Path) -> None:
    """The dependencies as wheels for the guest's Python, fetched by this machine's pip with its own settings."""
    needed = _dependencies()
    wanted = [name for name in needed["build"] + needed["dependencies"] if not name.startswith("systemd-python")]
    command: list[str | Path] = [*_host_pip(wheels.parent), "download", "--quiet", "--dest", wheels]
    command += ["--only-binary=:all:", "--implementation", "cp", "--python-version", GUEST_PYTHON]
    command += [word for abi in (f"cp{GUEST_PYTHON.replace('.', '')}", "abi3", "none") for word in ("--abi", abi)]
    command += [word for platform in GUEST_PLATFORMS for word in ("--platform", platform)]
    run([*command, *wanted])


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
    """What makes a Debian root a machine that boots fast and lets us in. Host names and addresses are QEMU's."""
    etc = root / "etc"
    (etc / "hostname").write_text("node\n")
    (etc / "hosts").write_text("127.0.0.1 localhost\n127.0.1.1 node\n::1 localhost\n")
    (etc / "resolv.conf").unlink(missing_ok=True)
    (etc / "resolv.conf").write_text("nameserver 10.0.2.3\n")
    (etc / "machine-id").write_text("uninitialized\n")
    (etc / "apt" / "apt.conf.d" / "99mmdebstrap").unlink(missing_ok=True)
    (etc / "systemd" / "network").mkdir(exist_ok=True)
    (etc / "systemd" / "network" / "eth0.network").write_text(NETWORK)
    (etc / "ssh" / "sshd_config.d" / "nodeagent.conf").write_text(SSHD)
    _chroot(root, "systemctl", "--quiet", "enable", "systemd-networkd.service", "ssh.service")
    _chroot(root, "systemctl", "--quiet", "mask", "systemd-networkd-wait-online.service", *MASKED)


def _provision(root: Path, *arguments: str) -> None:
    copy = root / "tmp" / "provision"
    shutil.copy2(PROVISION, copy)
    _chroot(root, "/tmp/provision", *arguments)
    copy.unlink()


def _chroot(root: Path, *command: str) -> None:
    """Run a command in the chroot. systemd's tools want /proc, mounted in a namespace that ends with the command."""
    inside = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
    run(["unshare", "--mount", "sh", "-c", inside, root, *command], env=CLEAN_ENVIRONMENT)


def _prune(cache: Path, keep: set[Path]) -> None:
    """Remove bases but the current one, images but the newest few and those kept, and what a killed build left."""
    images = sorted(cache.glob("image-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    stale = [*images[IMAGES_KEPT:], *cache.glob("base-*"), *cache.glob("building-*")]
    for directory in set(stale) - keep:
        say(f"removing the older {directory.name}")
        shutil.rmtree(directory, ignore_errors=True)
