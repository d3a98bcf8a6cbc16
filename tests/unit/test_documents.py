"""YAML and JSON are read as Kubernetes reads them, and never at an unbounded cost."""

import json
from datetime import timedelta

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.api import documents
from nodeagent.api.documents import Document, read_documents

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=20,
)


def only(text: str) -> object:
    [document] = read_documents(text.encode())
    assert document.error is None
    return document.value


def error(text: str | bytes) -> str:
    [document] = read_documents(text if isinstance(text, bytes) else text.encode())
    assert document.error is not None
    return document.error


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("y", True),
        ("Off", False),
        ("yEs", "yEs"),
        ("~", None),
        ("'yes'", "yes"),
        ("010", 8),
        ("0o10", 8),
        ("0x1F", 31),
        ("0b101", 5),
        ("1_000", 1000),
        ("-5", -5),
        ("08", 8.0),
        ("1e3", 1000.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1:30", "1:30"),
        ("2025-01-31", "2025-01-31"),
        ("2025-01-31T12:00:00Z", "2025-01-31T12:00:00Z"),
        ("1e999", "1e999"),
        ("500m", "500m"),
        ("!!str 5", "5"),
        ("!!float 5", 5.0),
        ("! 5", "5"),
    ],
)
def test_plain_scalars(text: str, value: object) -> None:
    read = only(f"[{text}]")
    assert read == [value]
    assert type(read[0]) is type(value)


def test_documents_are_independent() -> None:
    text = "a: 1\n---\nb: [\n---\n# nothing here\n---\n\tc: 1\n---\nd: 4\n"
    assert [document.value for document in read_documents(text.encode()) if document.error is None] == [
        {"a": 1},
        {"d": 4},
    ]
    errors = [document.error for document in read_documents(text.encode()) if document.error is not None]
    assert errors[0].startswith("line 4: ")
    assert errors[1] == "line 7: a tab cannot be used for indentation: use spaces"


def test_directives_comments_and_marks_are_no_documents() -> None:
    assert read_documents(b"%YAML 1.1\n---\na: 1\n...\n---\n---\n# end") == [Document({"a": 1})]
    assert [document.value for document in read_documents(b"a: 1\n...\nb: [\n")] == [{"a": 1}, None]
    assert read_documents(b"") == read_documents(b"\n# only a comment\n") == []
    assert read_documents(b"\xef\xbb\xbfa: 1\r\n---\r\nb: 2\r\n") == [Document({"a": 1}), Document({"b": 2})]


def test_merge_keys() -> None:
    text = "base: &base {a: 1, b: 2}\nother:\n  <<: *base\n  b: 3\nmany:\n  <<: [{c: 4}, *base]\n"
    read = only(text)
    assert isinstance(read, dict)
    assert read["other"] == {"a": 1, "b": 3}
    assert read["many"] == {"a": 1, "b": 2, "c": 4}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a:\n  b: 1\n  b: 2", "line 3: the key 'b' stands twice in one mapping"),
        ('{"a": {"b": 1, "b": 2}}', "line 1: the key 'b' stands twice in one object"),
        ("on: 1", "line 1: the key on is read as true: write it in quotes"),
        ("a:\n  5: x", "line 2: the key 5 is read as 5: write it in quotes"),
        ("? [a]\n: b", "line 1: a key must be a string"),
        ("a: !!binary aGk=", "line 1: the tag tag:yaml.org,2002:binary means nothing here"),
        ("a: !!python/object:os.system x", "line 1: the tag tag:yaml.org,2002:python/object:os.system"),
        ("a: !!int x", "line 1: 'x' is no int, as its tag says"),
        ("a: .inf", "line 1: .inf is no number that JSON knows"),
        ('{"a": NaN}', "line 1: NaN is no JSON number"),
        ("a: *b", "line 1: "),
        ("a: &a\n  b: *a", "line 2: the alias *a has no finished anchor &a before it"),
        ("a: <<\nb:\n  <<: 5", "line 3: the merge key << takes mappings only"),
        ('{"a": "\\ud800"}', "line 1: a \\u escape gives half of a surrogate pair"),
        ("a: 1\nb: \x07", "line 2: the character '\\x07' is not allowed"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(text: str, reason: str) -> None:
    assert error(text).startswith(reason)


def test_not_text() -> None:
    assert error(b"a: 1\n\xff") == "line 2: not UTF-8 text: invalid start byte"


def bomb() -> str:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]"
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (bomb(), "too large once its aliases are expanded"),
        ("a: &a " + "x" * 500_000 + "\nb: [" + "*a, " * 100 + "]", "too large once its aliases are expanded"),
        ("<<: &a {k: v}\nb: [" + "{<<: *a}, " * 200_000 + "]", "too large once its aliases are expanded"),
        ("\n".join(" " * depth + "a:" for depth in range(100)), "nested deeper than 64 levels"),
        ("[" * 100_000, "exceeded maximum nesting depth"),
        ('{"a":' * 10_000 + "1" + "}" * 10_000, "nested deeper than 64 levels"),
        ("a" * (3 << 20) + "!", "larger than 3145728 bytes"),
        ('{"a":' + "1" * 5000 + "}", "a number has more than 1024 digits"),
    ],
)
def test_what_would_cost_too_much_is_refused(text: str, reason: str) -> None:
    if text.startswith("[") and documents._Loader is yaml.SafeLoader:
        reason = "nested deeper than 64 levels"
    assert reason in error(text)


@settings(deadline=timedelta(seconds=2))
@given(json_values)
def test_json_is_read_as_it_is(value: object) -> None:
    for text in (json.dumps({"value": value}), "---\n" + json.dumps({"value": value}, indent="\t")):
        assert only(text) == {"value": value}


@settings(deadline=timedelta(seconds=2))
@given(st.binary(max_size=200) | st.text("-: \n[]{}&*!|>%@`'\"#,?ab01\t\\u", max_size=80).map(str.encode))
def test_nothing_raises(data: bytes) -> None:
    for document in read_documents(data):
        assert document.error is None or document.error.startswith("line ")


@pytest.mark.parametrize(
    "text", ["a: [1, yes, x]", "a: {b: &c d, e: *c}", "- a\n- b: 1\n  b: 2", "\ta: b", "a: b: c"]
)
def test_without_the_c_library_the_same_is_read(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_library = read_documents(text.encode())
    monkeypatch.setattr(documents, "_Loader", yaml.SafeLoader)
    without = read_documents(text.encode())
    assert [document.value for document in without] == [document.value for document in with_library]
    assert [document.error is None for document in without] == [
        document.error is None for document in with_library
    ]
