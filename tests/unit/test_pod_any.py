"""Whatever a pod holds, reading, defaulting, validating and summing it never fails."""

from typing import Any

import msgspec
import msgspec.inspect as types
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeagent.api.decode import decode_documents, from_builtins, to_json
from nodeagent.api.defaults import default_pod
from nodeagent.api.pod import Container, ObjectMeta, Pod, PodSpec, PodStatus, ResourceRequirements, Volume
from nodeagent.api.qos import compute_qos_class, is_critical, oom_score_adj
from nodeagent.api.resources import pod_limits, pod_requests
from nodeagent.api.validation import validate_pod

texts = st.sampled_from(
    ("", "a", "A_b", "cpu", "metadata.labels['a']", "../x", "x" * 300, "é\0", "Always", "In")
)
amounts = st.sampled_from(("0", "1", "1500m", "-1", "1Gi", "1e-9", 2, 0.5))
resources = st.sampled_from(("cpu", "memory", "hugepages-2Mi", "hugepages-x", "example.com/gpu", "-"))


def values(type: types.Type, depth: int = 0) -> st.SearchStrategy[Any]:
    """Return what a document may hold where the object has `type`, growing sparser with depth."""
    match type:
        case types.UnionType():
            return st.one_of([values(part, depth) for part in type.types])
        case types.StructType():
            return structs(type, depth + 1)
        case types.VarTupleType():
            return st.lists(values(type.item_type, depth), max_size=2)
        case types.DictType():
            keys = texts if isinstance(type.value_type, types.StrType) else resources
            return st.dictionaries(keys, values(type.value_type, depth), max_size=2)
        case types.StrType():
            return st.just("2025-01-31T12:00:00Z") if type.pattern else texts
        case types.IntType():
            return st.sampled_from((0, 1, -1, 80, 2**31 - 1))
        case types.BoolType():
            return st.booleans()
        case types.NoneType():
            return st.none()
        case types.CustomType():
            return amounts
    return st.just({})


@st.composite
def structs(draw: st.DrawFn, type: types.StructType, depth: int) -> dict[str, Any]:
    required = [field for field in type.fields if field.required]
    # Nearly all fields that matter sit near the top; further down a few at a time are enough.
    count = draw(st.integers(0, 6 if depth <= 4 else 2))
    chosen = draw(st.lists(st.sampled_from(type.fields), max_size=count)) if type.fields else []
    return {field.encode_name: draw(values(field.type, depth)) for field in (*required, *chosen)}


def described(type: type[msgspec.Struct]) -> types.StructType:
    description = types.type_info(type)
    assert isinstance(description, types.StructType)
    return description


containers = st.lists(structs(described(Container), 1), max_size=3)
pods = st.fixed_dictionaries(
    {
        "metadata": structs(described(ObjectMeta), 1),
        "spec": st.builds(
            lambda spec, parts: spec | parts,
            structs(described(PodSpec), 1),
            st.fixed_dictionaries(
                {"containers": containers, "initContainers": containers},
                optional={
                    "volumes": st.lists(structs(described(Volume), 1), max_size=2),
                    "resources": structs(described(ResourceRequirements), 1),
                },
            ),
        ),
        "status": structs(described(PodStatus), 1),
    }
)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(pods)
def test_any_pod(value: dict[str, Any]) -> None:
    pod = default_pod(from_builtins(value, Pod))
    assert default_pod(pod) == pod
    assert decode_documents(to_json(pod), "x") == [pod]
    assert all(str(error) for error in validate_pod(pod))
    assert compute_qos_class(pod)
    assert is_critical(pod) in (True, False)
    pod_requests(pod)
    pod_limits(pod)
    for container in pod.spec.containers:
        oom_score_adj(pod, container, 2**30)
