"""Text to plain values: YAML and JSON as Kubernetes reads them, strictly and at a bounded cost."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import yaml

from nodeagent.api.scalars import LONGEST_NUMBER, TagError, resolve

# libyaml's parser is about ten times faster; PyYAML may have been built without it.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

LARGEST_TEXT_BYTES = 3 << 20
DEEPEST_NESTING = 64
# Counted after aliases are expanded: a few lines of YAML can stand for terabytes.
LARGEST_EXPANSION_BYTES = 32 << 20
_BYTES_PER_VALUE = 64

_SEPARATOR = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")
_DIRECTIVES = re.compile(r"(?:[ \t]*(?:#.*)?\r?\n|%.*\r?\n)*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAP_TAG = "tag:yaml.org,2002:map"
_SEQUENCE_TAG = "tag:yaml.org,2002:seq"
_MERGE_KEY = "<<"
_HALF_CHARACTER = r"a \u escape gives half of a surrogate pair, which is no character"


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a text: its value, or the sentence that says why there is none."""

    value: object = None
    error: str | None = None


class DocumentError(ValueError):
    """A document that cannot be read; the message says in which line and why."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")


def read_documents(data: bytes) -> list[Document]:
    """Split `data` into documents and read each by itself, so that a broken one hides no other.

    Empty documents are left out.
    """
    if len(data) > LARGEST_TEXT_BYTES:
        return [Document(error=f"larger than {LARGEST_TEXT_BYTES} bytes: split it into several files")]
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return [Document(error=f"line {line}: not UTF-8 text: {error.reason}")]
    forbidden = _FORBIDDEN.search(text)
    if forbidden is not None:
        line = text.count("\n", 0, forbidden.start()) + 1
        return [Document(error=f"line {line}: the character {forbidden[0]!r} is not allowed")]
    return [document for first_line, part in _parts(text) for document in _read_part(part, first_line)]


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Yield each part between `---` lines with the number of its first line."""
    starts = [0, *(found.start() for found in _SEPARATOR.finditer(text)), len(text)]
    line = 1
    for start, end in pairwise(starts):
        part = text[start:end]
        if not _DIRECTIVES.fullmatch(part):
            yield line, part
        line += part.count("\n")


def _read_part(part: str, first_line: int) -> list[Document]:
    documents: list[Document] = []
    try:
        content = part.removeprefix("---").lstrip()
        if content.startswith("{"):
            try:
                return [Document(_read_json(content, first_line))]
            except json.JSONDecodeError:
                pass  # YAML's flow style begins the same way.
        # "..." ends a document without a `---` line.
        documents.extend(Document(value) for value in _read_yaml(part, first_line) if value is not None)
    except DocumentError as error:
        documents.append(Document(error=str(error)))
    return documents


def _read_json(text: str, line: int) -> object:
    def members(pairs: list[tuple[str, object]]) -> dict[str, object]:
        mapping = dict(pairs)
        if len(mapping) != len(pairs):
            twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
            raise DocumentError(line, f"the key {twice!r} stands twice in one object")
        return mapping

    def integer(digits: str) -> int:
        if len(digits) > LONGEST_NUMBER:
            raise DocumentError(line, f"a number has more than {LONGEST_NUMBER} digits")
        return int(digits)

    def constant(name: str) -> object:
        raise DocumentError(line, f"{name} is no JSON number")

    try:
        value = json.loads(text, object_pairs_hook=members, parse_int=integer, parse_constant=constant)
    except RecursionError:
        raise DocumentError(line, _too_deep()) from None
    if _depth_exceeds(value, DEEPEST_NESTING):
        raise DocumentError(line, _too_deep())
    if "\\u" in text and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise DocumentError(line, _HALF_CHARACTER)
    return value


def _depth_exceeds(value: object, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        level = [
            child
            for parent in level
            if isinstance(parent, (dict, list))
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return False
    return True


def _too_deep() -> str:
    return f"nested deeper than {DEEPEST_NESTING} levels"


def _read_yaml(text: str, first_line: int) -> Iterator[object]:
    """Yield the documents of one part. Raises DocumentError."""
    reader = _YamlReader(first_line)
    try:
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.DocumentEndEvent):
                yield reader.finish()
            else:
                reader.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = mark.line if mark is not None else 0
        reason = error.problem or error.context or "not YAML"
        # YAML knows more line breaks than "\n", so that the line may not be among these.
        faulty = "".join(text.split("\n")[at : at + 1])
        if mark is not None and faulty[mark.column : mark.column + 1] == "\t":
            reason = "a tab cannot be used for indentation: use spaces"
        raise DocumentError(first_line + at, reason) from error
    except yaml.YAMLError as error:
        raise DocumentError(first_line, str(error)) from error


class _Open:
    """A mapping or sequence whose end has not been read yet."""

    __slots__ = ("anchor", "key", "line", "merged", "size", "value")

    def __init__(self, value: dict[str, object] | list[object], anchor: str | None, line: int) -> None:
        self.value = value
        self.anchor = anchor
        self.line = line
        self.size = _BYTES_PER_VALUE
        self.key: str | None = None
        self.merged: list[object] = []


class _YamlReader:
    """Builds one value from YAML events, without recursion and counting what aliases stand for."""

    def __init__(self, first_line: int) -> None:
        self._first_line = first_line
        self._start()

    def _start(self) -> None:
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[object, int]] = {}
        self._total = 0
        self._root: object = None

    def finish(self) -> object:
        """Return the document's value and be ready for the next one."""
        root = self._root
        self._start()
        return root

    def take(self, event: yaml.Event) -> None:
        line = self._first_line + (event.start_mark.line if event.start_mark is not None else 0)
        match event:
            case yaml.ScalarEvent():
                self._scalar(event, line)
            case yaml.AliasEvent():
                self._alias(event.anchor, line)
            case yaml.MappingStartEvent():
                self._begin(_Open({}, event.anchor, line), event.tag in (None, "!", _MAP_TAG), event.tag)
            case yaml.SequenceStartEvent():
                self._begin(_Open([], event.anchor, line), event.tag in (None, "!", _SEQUENCE_TAG), event.tag)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._end(line)

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        parent = self._open[-1] if self._open else None
        size = _BYTES_PER_VALUE + len(event.value)
        if parent is not None and isinstance(parent.value, dict) and parent.key is None:
            self._count(size, line)
            parent.size += size
            parent.key = self._key(event, parent.value, line)
            if event.anchor is not None:
                self._anchors[event.anchor] = (parent.key, size)
            return
        value = self._resolved(event, line)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, size)
        self._add(value, size, line)

    def _resolved(self, event: yaml.ScalarEvent, line: int) -> object:
        if _SURROGATE.search(event.value):
            raise DocumentError(line, _HALF_CHARACTER)
        try:
            return resolve(event.value, event.tag, plain=event.implicit[0])
        except TagError as error:
            raise DocumentError(line, str(error)) from None

    def _key(self, event: yaml.ScalarEvent, mapping: dict[str, object], line: int) -> str:
        key = self._resolved(event, line)
        if not isinstance(key, str):
            read_as = json.dumps(key)
            raise DocumentError(line, f"the key {event.value} is read as {read_as}: write it in quotes")
        if key == _MERGE_KEY and event.implicit[0]:
            return key
        if key in mapping:
            raise DocumentError(line, f"the key {key!r} stands twice in one mapping")
        return key

    def _alias(self, anchor: str | None, line: int) -> None:
        if anchor is None or anchor not in self._anchors:
            raise DocumentError(line, f"the alias *{anchor} has no finished anchor &{anchor} before it")
        value, size = self._anchors[anchor]
        self._add(value, size, line)

    def _begin(self, started: _Open, tag_is_known: bool, tag: str | None) -> None:
        if not tag_is_known:
            raise DocumentError(started.line, f"the tag {tag} means nothing here")
        if len(self._open) >= DEEPEST_NESTING:
            raise DocumentError(started.line, _too_deep())
        self._open.append(started)

    def _end(self, line: int) -> None:
        ended = self._open.pop()
        if ended.merged and isinstance(ended.value, dict):
            for source in ended.merged:
                for mapping in source if isinstance(source, list) else [source]:
                    if not isinstance(mapping, dict):
                        raise DocumentError(ended.line, "the merge key << takes mappings only")
                    for key, value in mapping.items():
                        ended.value.setdefault(key, value)
        if ended.anchor is not None:
            self._anchors[ended.anchor] = (ended.value, ended.size)
        # Its parts were counted as they came.
        self._add(ended.value, ended.size, line, counted=ended.size - _BYTES_PER_VALUE)

    def _add(self, value: object, size: int, line: int, counted: int = 0) -> None:
        self._count(size - counted, line)
        if not self._open:
            self._root = value
            return
        parent = self._open[-1]
        parent.size += size
        if isinstance(parent.value, list):
            parent.value.append(value)
        elif parent.key is None:
            raise DocumentError(line, "a key must be a string")
        else:
            if parent.key == _MERGE_KEY:
                parent.merged.append(value)
            else:
                parent.value[parent.key] = value
            parent.key = None

    def _count(self, size: int, line: int) -> None:
        self._total += size
        if self._total > LARGEST_EXPANSION_BYTES:
            raise DocumentError(line, "too large once its aliases are expanded: write less, or split it")
