"""The effective configuration: one file, defaults applied, everything in it checked."""

import json
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from nodeagent.api.documents import LARGEST_TEXT_BYTES, Document, read_documents
from nodeagent.api.errors import ErrorKind, FieldError
from nodeagent.config.decode import Decoded, decode_section
from nodeagent.config.gates import enabled
from nodeagent.config.schema import DEFAULT_EVICTION_HARD, AgentConfiguration, KubeletConfiguration
from nodeagent.config.setting import Effect, Section, cpu_list, cpu_numbers, is_duration, rows, setting_of
from nodeagent.config.validation import INVALID_CONFIGURATION, check_rows, check_rules
from nodeagent.config.validation_agent import check_agent_rules

KUBELET_TYPE: Final = ("kubelet.config.k8s.io/v1beta1", "KubeletConfiguration")
AGENT_TYPE: Final = ("nodeagent.io/v1alpha1", "AgentConfiguration")
S = TypeVar("S", bound=Section)

INVALID_DOCUMENT: Final = "invalid document"


class ConfigError(ValueError):
    """A configuration that must not run: the file, and everything that is wrong with it."""

    def __init__(self, source: str, *errors: FieldError) -> None:
        self.source, self.errors = source, errors
        super().__init__("\n".join(f"{source}: {_sentence(error)}" for error in errors))


@dataclass(frozen=True, slots=True)
class Config:
    """Both documents with defaults applied, and what the operator should know about them."""

    kubelet: KubeletConfiguration = field(default_factory=KubeletConfiguration)
    agent: AgentConfiguration = field(default_factory=AgentConfiguration)
    warnings: tuple[str, ...] = ()
    source: str = "defaults"

    def gate(self, name: str) -> bool:
        """Whether a Kubernetes feature gate is on. Raises KeyError for a name that does not exist."""
        return enabled(self.kubelet.feature_gates, name)

    def to_configz(self) -> dict[str, Any]:
        """The body of /configz, as kubelet gives it."""
        return {"kubeletconfig": section_to_builtins(self.kubelet)}

    def to_documents(self) -> list[dict[str, Any]]:
        """Both documents, complete; a file made of them gives this configuration again."""
        pairs = ((KUBELET_TYPE, self.kubelet), (AGENT_TYPE, self.agent))
        return [
            {"apiVersion": version, "kind": kind, **dict(sorted(section_to_builtins(section).items()))}
            for (version, kind), section in pairs
        ]


def load_config(path: Path | None, *, host_name: str | None = None) -> Config:
    """The configuration in a file, or the defaults for None. Raises ConfigError."""
    if path is None:
        return parse_config(b"", "defaults", host_name=host_name)
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_TEXT_BYTES + 1)
    except OSError as error:
        raise ConfigError(str(path), _no_document("", f"cannot be read: {error.strerror}")) from error
    return parse_config(data, str(path), host_name=host_name)


def parse_config(data: bytes, source: str, *, host_name: str | None = None) -> Config:
    """The configuration in the text of a file. Raises ConfigError."""
    documents = _documents(data, source)
    kubelet, kubelet_found = _decoded(KubeletConfiguration, documents.get(KUBELET_TYPE, {}))
    agent, agent_found = _decoded(AgentConfiguration, documents.get(AGENT_TYPE, {}))
    warnings = tuple(_warnings(kubelet, kubelet_found.changed))
    kubelet = _effective(kubelet, kubelet_found.given)
    errors = [*kubelet_found.errors, *agent_found.errors]
    # A value of the wrong type was replaced by its default, which must not be blamed on the author.
    if all(error.kind == ErrorKind.UNKNOWN_FIELD for error in errors):
        errors += [*check_rows(kubelet), *check_rules(kubelet), *check_rows(agent), *check_agent_rules(agent)]
    if errors:
        raise ConfigError(source, *errors)
    if not agent.node_name:
        agent = msgspec.structs.replace(agent, node_name=(host_name or socket.gethostname()).strip().lower())
    return Config(kubelet, agent, warnings, source)


def section_to_builtins(section: Section) -> dict[str, Any]:
    """A section as Kubernetes writes it in JSON, without what is not set."""
    out: dict[str, Any] = {}
    for info in msgspec.structs.fields(type(section)):
        value = getattr(section, info.name)
        if value is None:
            continue
        if value or is_duration(info.type) or setting_of(info.type).zero_counts:
            out[info.encode_name] = _builtins(value)
    return out


def _builtins(value: object) -> Any:
    if isinstance(value, Section):
        return section_to_builtins(value)
    if isinstance(value, tuple):
        return [_builtins(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _builtins(value[key]) for key in sorted(value)}
    return value if isinstance(value, bool | int | float) else str(value)


def _documents(data: bytes, source: str) -> dict[tuple[str, str], Mapping[Any, Any]]:
    """The documents of a file by apiVersion and kind; a List is taken apart."""
    found: dict[tuple[str, str], Mapping[Any, Any]] = {}
    for number, read in enumerate(_unpacked(read_documents(data)), start=1):
        place, document = f"document {number}", read.value
        if read.error is not None:
            raise ConfigError(source, _no_document(place, read.error))
        if not isinstance(document, Mapping):
            raise ConfigError(source, _no_document(place, "expected an object with apiVersion and kind"))
        what = (str(document.get("apiVersion", "")), str(document.get("kind", "")))
        if what not in (KUBELET_TYPE, AGENT_TYPE):
            known = " or ".join(f"{kind} ({version})" for version, kind in (KUBELET_TYPE, AGENT_TYPE))
            given = f"apiVersion {json.dumps(what[0])}, kind {json.dumps(what[1])}"
            raise ConfigError(source, _no_document(place, f"{given}: expected {known}"))
        if what in found:
            raise ConfigError(source, _no_document(place, f"a second {what[1]}; expected one in a file"))
        found[what] = document
    return found


def _unpacked(documents: Iterable[Document]) -> Iterator[Document]:
    """The documents that say something, with the items of a List in the place of it."""
    for document in documents:
        value = document.value
        if isinstance(value, dict) and value.get("kind") == "List" and isinstance(value.get("items"), list):
            yield from (Document(item) for item in value["items"])
        elif value is not None or document.error is not None:
            yield document


def _decoded(section: type[S], document: Mapping[Any, Any]) -> tuple[S, Decoded]:
    found = Decoded()
    return decode_section(section, document, found), found


def _effective(kubelet: KubeletConfiguration, given: set[str]) -> KubeletConfiguration:
    """The defaults that depend on other fields, as kubelet applies them when it starts."""
    changes: dict[str, Any] = {}
    if kubelet.pod_pids_limit < 0:
        changes["pod_pids_limit"] = -1
    if "nodeStatusReportFrequency" not in given and "nodeStatusUpdateFrequency" in given:
        changes["node_status_report_frequency"] = kubelet.node_status_update_frequency
    if "serializeImagePulls" not in given and (kubelet.max_parallel_image_pulls or 1) > 1:
        changes["serialize_image_pulls"] = False
    if kubelet.merge_default_eviction_settings:
        changes["eviction_hard"] = DEFAULT_EVICTION_HARD | kubelet.eviction_hard
    if kubelet.reserved_system_cpus and cpu_list("", kubelet.reserved_system_cpus) is None:
        count = str(len(cpu_numbers(kubelet.reserved_system_cpus)))
        changes["system_reserved"] = {**kubelet.system_reserved, "cpu": count}
        changes["kube_reserved"] = {k: v for k, v in kubelet.kube_reserved.items() if k != "cpu"}
    return msgspec.structs.replace(kubelet, **changes)


def _warnings(kubelet: KubeletConfiguration, changed: set[str]) -> Iterator[str]:
    inert = {
        effect: [
            r.name for r in rows(KubeletConfiguration) if r.name in changed and r.setting.effect is effect
        ]
        for effect in (Effect.NONE, Effect.LATER)
    }
    sentences = [f"{', '.join(names)}: {effect}" for effect, names in inert.items() if names]
    if sentences:
        yield f"these fields change nothing here: {'; '.join(sentences)}"
    dropped = sorted(set(DEFAULT_EVICTION_HARD) - set(kubelet.eviction_hard))
    if dropped and not kubelet.merge_default_eviction_settings:
        yield (
            f"evictionHard replaces all defaults, so there is no threshold for {', '.join(dropped)}; "
            "list them, or set mergeDefaultEvictionSettings: true"
        )
    reserved = [
        n for n, r in (("kube", kubelet.kube_reserved), ("system", kubelet.system_reserved)) if "cpu" in r
    ]
    if kubelet.reserved_system_cpus and reserved:
        names = " and ".join(f"{name}Reserved" for name in reserved)
        yield f"reservedSystemCPUs takes the place of the cpu in {names}"


def _no_document(place: str, detail: str) -> FieldError:
    return FieldError(place, INVALID_DOCUMENT, None, detail)


def _sentence(error: FieldError) -> str:
    """kubelet's own sentences name their field and value; the others get both from the error."""
    if error.kind == INVALID_CONFIGURATION:
        return f"{INVALID_CONFIGURATION}: {error.detail}"
    if error.kind == INVALID_DOCUMENT:
        return f"{error.path}: {error.detail}" if error.path else error.detail
    return str(error)
