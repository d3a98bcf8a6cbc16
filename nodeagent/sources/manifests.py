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


def read_manifests(directory: Path | None, node_name: str) -> Manifests:
    """Read a directory's manifests, or one file's; a broken file costs only itself, and none is no error."""
    if directory is None:
        return Manifests("", {}, {}, (), Policies())
    pods: dict[str, Pod] = {}
    files: dict[str, str] = {}
    names: dict[tuple[str, str], str] = {}
    errors: list[ManifestError] = []
    policies = Policies()
    for path in _files(directory, errors):
        for item in _documents(path, errors):
            if isinstance(item, ObjectError):
                errors.append(ManifestError(str(path), str(item)))
                continue
            if isinstance(item, Policy):
                policies, refusal = policies.with_policy(item)
                if refusal is not None:
                    errors.append(ManifestError(str(path), f"{path}: {refusal}"))
                continue
            if not isinstance(item, Pod):
                text = (
                    f"{path}: a {type(item).__name__} is not taken from a manifest directory: "
                    "expected a Pod, LimitRange, ResourceQuota, PriorityClass or AdmissionConfiguration"
                )
                errors.append(ManifestError(str(path), text))
                continue
            pod = static_pod(item, node_name, path)
            problems = validate_pod(pod)
            if problems:
                errors.append(ManifestError(str(path), str(_refusal(path, pod, problems))))
                continue
            full_name = (pod.metadata.namespace, pod.metadata.name)
            other = names.get(full_name) or files.get(pod.metadata.uid)
            if other is not None:
                text = f"{path}: pod {'/'.join(full_name)} stands in {other} already, which is kept"
                errors.append(ManifestError(str(path), text))
                continue
            names[full_name] = files[pod.metadata.uid] = str(path)
            pods[pod.metadata.uid] = pod
    return Manifests(str(directory), pods, files, tuple(errors), policies)


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
