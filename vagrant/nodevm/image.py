"""The disk image that machines boot from, cached by what goes into it.

Two layers, each cached under the hash of its ingredients. The base (Debian, kernel, the project's
dependencies) takes a minute or two and changes rarely; the image (base plus the checkout's project) takes
seconds. The disk is filled by mke2fs, so that no disk is mounted.
"""

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nodevm import debian
from nodevm.paths import CHECKOUT, PROVISION, VmError, cache_directory, require, require_space, run, say

# File name below the checkout -> mode and content.
Project = dict[str, tuple[int, bytes]]

UNITS = ("nodeagent.service", "nodeagent-keeper.service")
DISK_SIZE = "6G"
BASE_NEEDS_BYTES = 1500 << 20
IMAGE_NEEDS_BYTES = 1000 << 20
IMAGES_KEPT = 2


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
    cache = cache_directory()
    project = _read_project()
    base = cache / f"base-{_base_hash()}"
    image = Image(cache / f"image-{_image_hash(base.name, project)}")
    if not image.directory.exists():
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
        require("ssh-keygen")
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "nodeagent-vm", "-f", key])
    return key


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8) + part)
    return digest.hexdigest()[:16]


def _base_hash() -> str:
    recipe = (Path(debian.__file__), PROVISION)
    return _digest(
        [*(file.read_bytes() for file in recipe), *(name.encode() for name in debian.dependencies())]
    )


def _image_hash(base_name: str, project: Project) -> str:
    parts = [base_name.encode(), Path(__file__).read_bytes(), ensure_key().with_suffix(".pub").read_bytes()]
    for name, (mode, content) in project.items():
        parts += [name.encode(), b"%o" % mode, content]
    return _digest(parts)


def _read_project() -> Project:
    """What the image takes from the checkout, read once: an edit meanwhile cannot blur what is hashed."""
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
    say(f"building the base system, Debian {debian.SUITE}: a minute or two, once")
    with _fresh(target) as building, tempfile.TemporaryDirectory() as scratch:
        debian.make_root(building / "root", Path(scratch))


def _build_image(base: Path, project: Project, image: Image) -> None:
    require("mke2fs")
    require_space(base.parent, IMAGE_NEEDS_BYTES)
    say("building the image with the checkout's project in it")
    with _fresh(image.directory) as building:
        root = building / "root"
        run(["cp", "-a", "--reflink=auto", base / "root", root])
        _install_project(root, project)
        _prepare_boot(root)
        disk = building / "disk.raw"
        run(["mke2fs", "-q", "-t", "ext4", "-L", "root", "-J", "size=16", "-d", root, disk, DISK_SIZE])
        for name in ("vmlinuz", "initrd.img"):
            shutil.copy(_boot_file(root, name), building / name)
        shutil.rmtree(root)


def _install_project(root: Path, project: Project) -> None:
    source = root / "tmp" / "source"
    for name, (mode, content) in project.items():
        copy = source / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
        copy.chmod(mode)
    debian.provision(root, "project", "/tmp/source")
    # Who boots the machine starts the service, with the configuration wanted there.
    debian.chroot(root, "systemctl", "--quiet", "disable", *UNITS)
    shutil.rmtree(source)


def _prepare_boot(root: Path) -> None:
    ssh = root / "root" / ".ssh"
    ssh.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(ensure_key().with_suffix(".pub"), ssh / "authorized_keys")
    # Nothing to update at boot: systemd compares these with /usr.
    for directory in ("etc", "var"):
        (root / directory / ".updated").touch()


def _boot_file(root: Path, name: str) -> Path:
    found = sorted((root / "boot").glob(f"{name}-*"))
    if not found:
        raise VmError(f"the base system has no /boot/{name}-*: the kernel package did not install")
    return found[-1]


def _prune(cache: Path, keep: set[Path]) -> None:
    """Remove what a killed build left, bases but the current one, images but the newest and those kept."""
    images = sorted(cache.glob("image-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    stale = [*images[IMAGES_KEPT:], *cache.glob("base-*"), *cache.glob("building-*")]
    for directory in set(stale) - keep:
        shutil.rmtree(directory, ignore_errors=True)
