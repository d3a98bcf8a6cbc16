"""The keeper's own check of what it is asked: it runs as root and believes no message."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.runtime.checks import DEFAULTS, BadRequest, CheckedSpec
from nodeagent.runtime.spec import ContainerSpec

REQUIRED: dict[str, Any] = {
    "container_id": "0123abcd",
    "pod_uid": "1",
    "pod_namespace": "default",
    "pod_name": "web",
    "container_name": "main",
    "argv": ["true"],
    "log_path": "/var/log/pods/default_web_1/main/0.log",
    "cgroup": "kubepods.slice/x.scope",
    "pod_cgroup": "kubepods.slice",
}


def test_both_sides_know_the_same_fields_and_defaults() -> None:
    theirs = {field.name: field for field in msgspec.structs.fields(ContainerSpec)}
    assert set(theirs) == set(CheckedSpec.__slots__)
    built = msgspec.json.decode(msgspec.json.encode(msgspec.convert(REQUIRED, ContainerSpec)))
    assert {name: value for name, value in built.items() if name not in REQUIRED} == DEFAULTS


def test_a_good_spec_passes() -> None:
    spec = CheckedSpec({**REQUIRED, "user_id": 1000, "env": {"A": "b=c"}, "working_dir": "/srv"})
    assert (spec.user_id, spec.env, spec.working_dir, spec.hostname) == (1000, {"A": "b=c"}, "/srv", "web")


def test_a_hostname_fits_the_kernel() -> None:
    assert CheckedSpec({**REQUIRED, "pod_name": "a" * 253}).hostname == "a" * 63
    assert CheckedSpec({**REQUIRED, "hostname": "db-0"}).hostname == "db-0"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("container_id", "../../etc", "spec.container_id: '../../etc'"),
        ("container_id", "a" * 129, "at most 128"),
        ("container_id", "", "spec.container_id"),
        ("container_id", "a\nFDSTOREREMOVE=1", "spec.container_id"),
        ("argv", [], "spec.argv: expected at least the name of a program"),
        ("argv", [""], "spec.argv"),
        ("argv", "sh", "spec.argv: expected a list"),
        ("argv", ["sh", 1], "spec.argv[1]"),
        ("argv", ["a\0b"], "spec.argv[0]"),
        ("argv", ["\ud800"], "spec.argv[0]"),
        ("env", {"A=B": "c"}, "spec.env: 'A=B'"),
        ("env", {"": "c"}, "spec.env: ''"),
        ("env", {"A": "\0"}, "spec.env['A']"),
        ("env", {"A": 1}, "spec.env['A']"),
        ("env", ["A=b"], "spec.env: expected an object"),
        ("working_dir", "srv", "spec.working_dir: 'srv': expected an absolute path"),
        ("root_directory", "/images/../../etc", "spec.root_directory"),
        ("log_path", "/var/log/pods/../../../etc/passwd", "spec.log_path"),
        ("cgroup", "/kubepods.slice", "spec.cgroup"),
        ("pod_cgroup", "../system.slice", "spec.pod_cgroup"),
        ("user_id", -1, "spec.user_id: -1: expected a number from 0"),
        ("user_id", 2**32 - 1, "spec.user_id"),
        ("user_id", "root", "spec.user_id"),
        ("group_id", True, "spec.group_id"),
        ("supplementary_group_ids", [5, -1], "spec.supplementary_group_ids[1]"),
        ("supplementary_group_ids", 5, "spec.supplementary_group_ids: expected a list"),
        ("oom_score_adj", 1001, "spec.oom_score_adj: 1001: expected a number from -1000 to 1000"),
        ("log_max_files", 1, "spec.log_max_files"),
        ("host_pid", 1, "spec.host_pid: 1: expected true or false"),
        ("mounts", {}, "spec.mounts: expected a list"),
        ("mounts", [5], "spec.mounts[0]: expected an object"),
        ("mounts", [{"source": "/a", "target": "b"}], "spec.mounts[0].target: 'b'"),
        ("mounts", [{"source": "/a/../b", "target": "/b"}], "spec.mounts[0].source"),
        ("mounts", [{"source": "/a"}], "spec.mounts[0].target: None"),
    ],
)
def test_a_bad_field_is_named_with_what_was_expected(field: str, value: object, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        CheckedSpec({**REQUIRED, field: value})
    assert message in str(caught.value)


def test_a_field_it_does_not_know_is_not_ignored() -> None:
    with pytest.raises(BadRequest, match="unknown fields"):
        CheckedSpec({**REQUIRED, "seccomp": "strict"})


@pytest.mark.parametrize("field", sorted(REQUIRED))
def test_a_missing_field_is_named(field: str) -> None:
    with pytest.raises(BadRequest, match=field):
        CheckedSpec({name: value for name, value in REQUIRED.items() if name != field})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(field=st.sampled_from(CheckedSpec.__slots__), value=JSON)
def test_no_value_gets_through_as_another_type(field: str, value: object) -> None:
    try:
        spec = CheckedSpec({**REQUIRED, field: value})
    except BadRequest as error:
        assert field in str(error)
    else:
        msgspec.convert({**REQUIRED, field: value}, ContainerSpec)
        assert ".." not in spec.log_path.split("/") and ".." not in spec.cgroup.split("/")
