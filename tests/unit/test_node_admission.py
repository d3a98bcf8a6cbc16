"""What a pod meets on its way onto the node: policy first, then pressure, room and the resource managers."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import structs

from nodeagent.admission.chain import Policies
from nodeagent.api.base import ApiObject
from nodeagent.api.container import ResourceRequirements, SeccompProfile, SecurityContext
from nodeagent.api.defaults import default_pod
from nodeagent.api.meta import ObjectMeta
from nodeagent.api.pod import Container, Pod, PodSpec, Probe, TCPSocketAction
from nodeagent.api.policy import LimitRange, LimitRangeItem, LimitRangeSpec, ResourceQuota, ResourceQuotaSpec
from nodeagent.api.quantity import Quantity
from nodeagent.clock import SystemClock
from nodeagent.eviction.manager import Policy
from nodeagent.eviction.signals import Condition
from nodeagent.hardware.topology import parse_short
from nodeagent.pods.admission import NodeAdmission
from nodeagent.pods.decisions import AdmissionRecord
from nodeagent.pods.preemptor import Room
from nodeagent.pods.services import Refusal
from nodeagent.pods.unsupported import TREATMENT, Unsupported, unsupported
from nodeagent.resources.managers import ManagerSettings, ResourceManagers
from nodeagent.scheduling.fit import NodeView

ALLOCATABLE = {"cpu": Quantity.parse("4"), "memory": Quantity.parse("8Gi"), "pods": Quantity.of(10)}


def pod(name: str, cpu: str | None = None) -> Pod:
    requests = {"cpu": Quantity.parse(cpu)} if cpu else {}
    container = Container(
        name="c", image="x", command=("x",), resources=ResourceRequirements(requests=requests)
    )
    meta = ObjectMeta(name=name, namespace="default", uid=name)
    return Pod(metadata=meta, spec=PodSpec(containers=(container,), restart_policy="Always"))


class Node:
    """A node of 4 CPUs without anything on it."""

    def __init__(self) -> None:
        self.pods: list[Pod] = []
        self.conditions: set[Condition] = set()
        self.records: list[AdmissionRecord] = []
        self.admission = NodeAdmission(
            lambda: NodeView("n1", ALLOCATABLE),
            ResourceManagers(parse_short("1x4x1"), ManagerSettings(), None),
            Policy(),
            lambda: self.conditions,
            lambda newcomer: [each for each in self.pods if each.metadata.uid != newcomer.metadata.uid],
            lambda: self.pods,
            SystemClock(),
            self.records.append,
            lambda newcomer: None,
            lambda newcomer, is_over_quota: Room(False, ()),
        )

    def admit(self, newcomer: Pod) -> Pod | Refusal:
        answer = self.admission.admit(newcomer)
        if isinstance(answer, Pod):
            self.pods.append(answer)
        return answer


@pytest.fixture
def node() -> Node:
    return Node()


def test_pods_come_while_there_is_room(node: Node) -> None:
    assert isinstance(node.admit(pod("a", "3")), Pod)
    refusal = node.admit(pod("b", "2"))
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "OutOfcpu"
    assert "requested: 2000, used: 3000, capacity: 4000" in refusal.message


def test_limit_range_sets_what_the_manifest_left_open(node: Node) -> None:
    item = LimitRangeItem(type="Container", default={"cpu": Quantity.parse("500m")})
    limits = LimitRange(
        metadata=ObjectMeta(name="d", namespace="default"), spec=LimitRangeSpec(limits=(item,))
    )
    node.admission.policies, refusal = Policies().with_policy(limits)
    assert refusal is None
    admitted = node.admit(pod("a"))
    assert isinstance(admitted, Pod)
    assert admitted.spec.containers[0].resources.limits["cpu"] == Quantity.parse("500m")
    assert any("cpu" in sentence for sentence in node.records[-1].policy)


def test_quota_counts_the_pods_that_are_here(node: Node) -> None:
    quota = ResourceQuota(
        metadata=ObjectMeta(name="two", namespace="default"),
        spec=ResourceQuotaSpec(hard={"pods": Quantity.of(1)}),
    )
    node.admission.policies, _ = Policies().with_policy(quota)
    assert isinstance(node.admit(pod("a")), Pod)
    refusal = node.admit(pod("b"))
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "Forbidden"
    assert "exceeded quota: two, requested: pods=1, used: pods=1, limited: pods=1" in refusal.message


def test_pressure_turns_best_effort_pods_away(node: Node) -> None:
    node.conditions.add(Condition.MEMORY_PRESSURE)
    refusal = node.admit(pod("a"))
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.message) == ("Evicted", "The node had condition: [MemoryPressure]. ")
    assert isinstance(node.admit(pod("b", "1")), Pod)


def test_every_decision_is_kept(node: Node) -> None:
    before = datetime.now(UTC)
    node.admit(pod("a", "9"))
    (record,) = node.records
    assert not record.admitted
    assert record.reason == "OutOfcpu"
    assert record.decided_at >= before


def test_what_the_node_cannot_do_is_refused_by_field_or_said(node: Node) -> None:
    security = SecurityContext(read_only_root_filesystem=True)
    probe = Probe(tcp_socket=TCPSocketAction(port=80))
    asking = pod("a")
    container = structs.replace(asking.spec.containers[0], security_context=security, liveness_probe=probe)
    asking = structs.replace(asking, spec=structs.replace(asking.spec, containers=(container,)))
    refusal = node.admit(asking)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "UnsupportedPod"
    assert "spec.containers[0].securityContext.readOnlyRootFilesystem" in refusal.message
    assert unsupported(asking).ignored == ("spec.containers[0].livenessProbe",)
    assert unsupported(pod("b")) == Unsupported()


@pytest.mark.parametrize("kind", TREATMENT, ids=lambda kind: kind.__name__)
def test_no_field_of_a_pod_is_dropped_unsaid(kind: type[ApiObject]) -> None:
    fields = TREATMENT[kind]
    listed = " ".join((fields.honoured, fields.refused, fields.ignored, fields.meaningless)).split()
    assert sorted(listed) == sorted(kind.__struct_fields__)


def test_the_readme_names_what_is_refused_and_what_is_left_out() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    rows = {
        line.split("|")[1].strip(): line for line in readme.splitlines() if line.startswith("| pod fields")
    }
    for kind, fields in TREATMENT.items():
        spelling = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
        for row, names in (("pod fields, refused", fields.refused), ("pod fields, left out", fields.ignored)):
            for name in names.split():
                assert f"`{spelling[name]}`" in rows[row]


@pytest.mark.parametrize(
    ("security", "refused"),
    [
        (SecurityContext(seccomp_profile=SeccompProfile(type="RuntimeDefault")), ["seccompProfile"]),
        (SecurityContext(seccomp_profile=SeccompProfile(type="Unconfined")), []),
        (SecurityContext(proc_mount="Default", privileged=True, run_as_user=5), []),
        (SecurityContext(proc_mount="Unmasked"), ["procMount"]),
    ],
)
def test_only_what_differs_from_what_is_done_is_refused(
    security: SecurityContext, refused: list[str]
) -> None:
    plain = pod("a")
    container = structs.replace(plain.spec.containers[0], security_context=security)
    asking = structs.replace(plain, spec=structs.replace(plain.spec, containers=(container,)))
    assert [path.rpartition(".")[2] for path in unsupported(asking).refused] == refused


def test_a_privileged_container_with_a_root_of_its_own_would_lack_devices() -> None:
    plain = pod("a")
    security = SecurityContext(privileged=True)
    container = structs.replace(plain.spec.containers[0], security_context=security, image="/srv/root")
    asking = structs.replace(plain, spec=structs.replace(plain.spec, containers=(container,)))
    assert unsupported(asking).refused == ("spec.containers[0].securityContext.privileged",)


def test_user_namespaces_are_refused_and_defaults_ask_for_nothing() -> None:
    plain = pod("a")
    assert unsupported(default_pod(plain)) == Unsupported()
    own_users = structs.replace(plain, spec=structs.replace(plain.spec, host_users=False))
    assert unsupported(own_users).refused == ("spec.hostUsers",)
