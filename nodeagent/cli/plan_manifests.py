"""Manifests for a plan: the pods and policies that are good, and a sentence for everything that is not."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nodeagent.admission.policies import Policies, Policy
from nodeagent.api.decode import decode_documents
from nodeagent.api.errors import ObjectError
from nodeagent.api.pod import Pod
from nodeagent.api.validation import validate_pod
from nodeagent.sources.manifests import LARGEST_FILE_BYTES, SUFFIXES, static_pod

STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class SourcedPod:
    """A pod and the file it stands in."""

    pod: Pod
    source: str


@dataclass(frozen=True, slots=True)
class SourcedPolicy:
    """A policy and the file it stands in."""

    policy: Policy
    source: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Something in the input that this node could not take."""

    source: str
    sentence: str


def read_manifests(names: Iterable[str], node_name: str) -> Iterator[SourcedPod | SourcedPolicy | Refused]:
    """Everything in the files, in order; a directory stands for the manifests in it."""
    taken: dict[tuple[str, str], str] = {}
    for name in names:
        for source, data in _texts(name):
            if isinstance(data, Refused):
                yield data
                continue
            for item in decode_documents(data, source):
                yield _judged(item, source, node_name, taken)


def gathered(found: Iterable[SourcedPod | SourcedPolicy | Refused]) -> tuple[Policies, list[Refused]]:
    """The policies in force, and everything that was refused."""
    found = list(found)
    sourced = [(each.source, each.policy) for each in found if isinstance(each, SourcedPolicy)]
    policies, refusals = Policies().with_policies(sourced)
    refused = [each for each in found if isinstance(each, Refused)]
    return policies, refused + [Refused(source, f"{source}: {why}") for source, why in refusals]


def _judged(
    item: object, source: str, node_name: str, taken: dict[tuple[str, str], str]
) -> SourcedPod | SourcedPolicy | Refused:
    if isinstance(item, ObjectError):
        return Refused(source, str(item))
    if isinstance(item, Policy):
        return SourcedPolicy(item, source)
    if not isinstance(item, Pod):
        expected = "Pods, and the policies that decide about them"
        return Refused(source, f"{source}: a {type(item).__name__} cannot be planned: only {expected}")
    pod = static_pod(item, node_name, Path(source))
    problems = validate_pod(pod)
    if problems:
        return Refused(source, str(ObjectError(source, 0, "Pod", item.metadata.name, tuple(problems))))
    key = (pod.metadata.namespace, pod.metadata.name)
    if key in taken:
        return Refused(source, f"{source}: pod {'/'.join(key)} stands in {taken[key]} already, which is kept")
    taken[key] = source
    return SourcedPod(pod, source)


def _texts(name: str) -> Iterator[tuple[str, bytes | Refused]]:
    """The files behind one argument, each with its text or the reason why there is none."""
    if name == STANDARD_INPUT:
        yield "standard input", sys.stdin.buffer.read(LARGEST_FILE_BYTES + 1)
        return
    path = Path(name)
    try:
        files = sorted(p for p in path.iterdir() if p.suffix in SUFFIXES) if path.is_dir() else [path]
    except OSError as error:
        yield name, Refused(name, f"{name}: {error.strerror}")
        return
    if not files:
        yield (
            name,
            Refused(name, f"{name}: no manifest in it; expected files ending in {', '.join(SUFFIXES)}"),
        )
    for file in files:
        try:
            with file.open("rb") as stream:
                data = stream.read(LARGEST_FILE_BYTES + 1)
        except OSError as error:
            yield str(file), Refused(str(file), f"{file}: cannot be read: {error.strerror}")
            continue
        if len(data) > LARGEST_FILE_BYTES:
            yield str(file), Refused(str(file), f"{file}: larger than {LARGEST_FILE_BYTES} bytes; split it")
        else:
            yield str(file), data
