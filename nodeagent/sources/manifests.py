"""The manifest directory: every file's pods and policies, read again whenever something changes."""

import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from nodeagent.admission.chain import Policies, Policy
from nodeagent.api.decode import decode_documents, to_json
from nodeagent.api.defaults import default_pod
from nodeagent.api.errors import FieldError, ObjectError
from nodeagent.api.pod import Pod, PodStatus
from nodeagent.api.qos import SYSTEM_PRIORITIES
from nodeagent.api.validation import validate_pod
from nodeagent.pods.record import CONTENT_HASH

CONFIG_SOURCE = "kubernetes.io/config.source"
LARGEST_FILE_BYTES = 1 << 20
MOST_FILES = 1000
SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class ManifestError:
    """Something wrong with one file, or with the directory itself."""

    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Manifests:
    """What a manifest directory holds: pods by UID with the file they stand in, policies, and what is wrong.

    A pod that runs already is kept while its file is broken: an editing slip stops nothing.
    """

    directory: str
    pods: dict[str, Pod]
    files: dict[str, str]
    errors: tuple[ManifestError, ...]
    policies: Policies

    def keeps(self, file: str) -> bool:
        """Say whether pods that came from `file` stay although they are not in it now."""
        return any(error.file in (file, self.directory) for error in self.errors)


class ManifestReader:
    """Reads a directory's manifests, or one file's; what has not changed is not decoded again."""

    def __init__(self, directory: Path | None, node_name: str) -> None:
        self._directory = directory
        self._node_name = node_name
        self._decoded: dict[Path, tuple[_Identity, _File]] = {}
        self.last = Manifests("", {}, {}, (), Policies())
        """What the last reading found."""

    def read(self) -> Manifests:
        """Read everything; a broken file costs only itself, and no directory is no error."""
        if self._directory is None:
            return Manifests("", {}, {}, (), Policies())
        errors: list[ManifestError] = []
        found = _Collection(errors)
        decoded: dict[Path, tuple[_Identity, _File]] = {}
        for path in _files(self._directory, errors):
            identity = _identity(path)
            known = self._decoded.get(path)
            if identity is None or known is None or known[0] != identity:
                file = _read_file(path, self._node_name)
            else:
                file = known[1]
            if identity is not None:
                decoded[path] = identity, file
            found.add(path, file)
        found.add_policies()
        self._decoded = decoded
        self.last = Manifests(str(self._directory), found.pods, found.files, tuple(errors), found.policies)
        return self.last


_Identity = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class _File:
    """What one file holds by itself."""

    pods: tuple[Pod, ...]
    policies: tuple[Policy, ...]
    errors: tuple[ManifestError, ...]


class _Collection:
    """Puts files together: the first to use a name keeps it."""

    def __init__(self, errors: list[ManifestError]) -> None:
        self.pods: dict[str, Pod] = {}
        self.files: dict[str, str] = {}
        self.policies = Policies()
        self._errors = errors
        self._names: dict[tuple[str, str], str] = {}
        self._policies: list[tuple[Path, Policy]] = []

    def add_policies(self) -> None:
        """Take in the policies, now that all files are read."""
        self.policies, refusals = Policies().with_policies(self._policies)
        self._errors.extend(ManifestError(str(path), f"{path}: {refusal}") for path, refusal in refusals)

    def add(self, path: Path, file: _File) -> None:
        self._errors.extend(file.errors)
        self._policies += ((path, policy) for policy in file.policies)
        for pod in file.pods:
            full_name = (pod.metadata.namespace, pod.metadata.name)
            other = self._names.get(full_name) or self.files.get(pod.metadata.uid)
            if other is not None:
                text = f"{path}: pod {'/'.join(full_name)} stands in {other} already, which is kept"
                self._errors.append(ManifestError(str(path), text))
                continue
            self._names[full_name] = self.files[pod.metadata.uid] = str(path)
            self.pods[pod.metadata.uid] = pod


def _identity(path: Path) -> _Identity | None:
    """Return what changes whenever a file's content does."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns


def _read_file(path: Path, node_name: str) -> _File:
    pods: list[Pod] = []
    policies: list[Policy] = []
    errors: list[ManifestError] = []
    for item in _documents(path, errors):
        if isinstance(item, ObjectError):
            errors.append(ManifestError(str(path), str(item)))
        elif isinstance(item, Policy):
            policies.append(item)
        elif isinstance(item, Pod):
            pod = static_pod(item, node_name, path)
            problems = validate_pod(pod)
            if problems:
                errors.append(ManifestError(str(path), str(_refusal(path, pod, problems))))
            else:
                pods.append(pod)
        else:
            text = (
                f"{path}: a {type(item).__name__} is not taken from a manifest directory: "
                "expected a Pod, LimitRange, ResourceQuota, ElasticQuota, PriorityClass or "
                "AdmissionConfiguration"
            )
            errors.append(ManifestError(str(path), text))
    return _File(tuple(pods), tuple(policies), tuple(errors))


def static_pod(pod: Pod, node_name: str, path: Path) -> Pod:
    """Give a manifest's pod what kubelet gives it: namespace, node name in its name, UID, source, defaults.

    And the priority of a system class, which the API server would have filled in.

    The UID follows from the node, the file and the content, so that the same manifest is the same pod
    after a restart, and a changed one is a new pod.
    """
    meta = pod.metadata
    digest = hashlib.sha256()
    for part in (node_name.encode(), str(path).encode(), to_json(pod)):
        digest.update(len(part).to_bytes(8, "big") + part)
    content_hash = digest.hexdigest()[:32]
    meta = msgspec.structs.replace(
        meta,
        name=f"{meta.name}-{node_name}" if meta.name else "",
        namespace=meta.namespace or "default",
        uid=meta.uid or content_hash,
        annotations={**meta.annotations, CONFIG_SOURCE: "file", CONTENT_HASH: content_hash},
    )
    priority = pod.spec.priority
    if priority is None:
        priority = SYSTEM_PRIORITIES.get(pod.spec.priority_class_name or "")
    spec = msgspec.structs.replace(pod.spec, node_name=node_name, priority=priority)
    return default_pod(msgspec.structs.replace(pod, metadata=meta, spec=spec, status=PodStatus()))


def _files(directory: Path, errors: list[ManifestError]) -> Iterable[Path]:
    if directory.is_file():
        return [directory]
    try:
        names = sorted(os.listdir(directory))  # noqa: PTH208 - one call, no stat per entry
    except FileNotFoundError:
        return ()
    except OSError as error:
        text = f"{directory}: cannot list the manifest directory: {error.strerror}; its pods are kept"
        errors.append(ManifestError(str(directory), text))
        return ()
    wanted = [name for name in names if name.endswith(SUFFIXES) and not name.startswith(".")]
    if len(wanted) > MOST_FILES:
        text = f"{directory}: holds {len(wanted)} manifests; the first {MOST_FILES} by name are read"
        errors.append(ManifestError(str(directory), text))
    return [directory / name for name in wanted[:MOST_FILES]]


def _documents(path: Path, errors: list[ManifestError]) -> Iterable[object]:
    try:
        # O_NONBLOCK: a fifo dropped among the manifests must not hold the agent.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return ()
    except OSError as error:
        errors.append(ManifestError(str(path), f"{path}: cannot be read: {error.strerror}"))
        return ()
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            text = f"{path}: is not a regular file; put the manifest itself there"
            errors.append(ManifestError(str(path), text))
            return ()
        with os.fdopen(os.dup(descriptor), "rb") as file:
            data = file.read(LARGEST_FILE_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > LARGEST_FILE_BYTES:
        text = f"{path}: is larger than {LARGEST_FILE_BYTES} bytes; split it"
        errors.append(ManifestError(str(path), text))
        return ()
    return decode_documents(data, str(path))


def _refusal(path: Path, pod: Pod, problems: tuple[FieldError, ...]) -> ObjectError:
    return ObjectError(source=str(path), index=0, kind="Pod", name=pod.metadata.name, errors=problems)
