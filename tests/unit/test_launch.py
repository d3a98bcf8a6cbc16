"""What a container is started with: command and environment expansion, identity, ids that never repeat."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from nodeagent.api.container import ResourceRequirements, SecurityContext
from nodeagent.api.meta import ObjectMeta
from nodeagent.api.pod import Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod, PodSpec
from nodeagent.api.quantity import Quantity
from nodeagent.api.volumes import ResourceFieldSelector
from nodeagent.pods.launch import LaunchError, LaunchSettings, container_id, container_spec, expand
from nodeagent.resources.device_manager import Device, DeviceMount
from nodeagent.runtime.spec import ContainerSpec, Mount

SETTINGS = LaunchSettings(
    node_name="n1",
    host_ip="10.0.0.9",
    log_directory=Path("/var/log/pods"),
    log_max_bytes=10,
    log_max_files=2,
    allocatable={"ephemeral-storage": Quantity.parse("2.5Gi")},
)


def order(container: Container, devices: Sequence[Device] = (), pod: Pod | None = None) -> ContainerSpec:
    meta = ObjectMeta(name="web", namespace="prod", uid="u1", labels={"app": "shop"})
    pod = pod or Pod(metadata=meta, spec=PodSpec(containers=(container,)))
    return container_spec(
        container,
        pod,
        SETTINGS,
        container_id="id",
        attempt=3,
        oom_score_adj=5,
        cgroup="a/b",
        pod_cgroup="a",
        devices=devices,
    )


def field(name: str, path: str) -> EnvVar:
    return EnvVar(name=name, value_from=EnvVarSource(field_ref=ObjectFieldSelector(field_path=path)))


def test_references_follow_kubernetes_rules() -> None:
    known = {"A": "1"}
    assert expand("$(A)-$$(A)-$(B)-$A", known) == "1-$(A)-$(B)-$A"


def test_environment_feeds_command_and_later_variables() -> None:
    made = order(
        Container(
            name="c",
            command=("run",),
            args=("--port=$(PORT)",),
            env=(EnvVar(name="BASE", value="80"), EnvVar(name="PORT", value="$(BASE)80")),
        )
    )
    assert made.argv == ("run", "--port=8080")
    assert made.env == {"BASE": "80", "PORT": "8080"}
    assert made.log_path == "/var/log/pods/prod_web_u1/c/3.log"


def test_fields_of_the_pod() -> None:
    variables = (
        field("NAME", "metadata.name"),
        field("NODE", "spec.nodeName"),
        field("IP", "status.hostIP"),
        field("APP", "metadata.labels['app']"),
    )
    made = order(Container(name="c", command=("x",), env=variables))
    assert made.env == {"NAME": "web", "NODE": "n1", "IP": "10.0.0.9", "APP": "shop"}


def resource(name: str, of: str, divisor: str = "0", container: str | None = None) -> EnvVar:
    reference = ResourceFieldSelector(resource=of, divisor=Quantity.parse(divisor), container_name=container)
    return EnvVar(name=name, value_from=EnvVarSource(resource_field_ref=reference))


def test_resources_of_the_container_are_rounded_up_and_missing_limits_are_the_nodes() -> None:
    limits = {"cpu": Quantity.parse("1500m"), "memory": Quantity.parse("100Mi")}
    requests = {"cpu": Quantity.parse("250m")}
    variables = (
        resource("CPUS", "limits.cpu"),
        resource("MILLI", "requests.cpu", "1m"),
        resource("MIB", "limits.memory", "1Mi"),
        resource("BYTES", "limits.memory"),
        resource("DISK", "limits.ephemeral-storage", "1Gi"),
        resource("NONE", "requests.memory", container="c"),
    )
    amounts = ResourceRequirements(limits=limits, requests=requests)
    made = order(Container(name="c", command=("x",), env=variables, resources=amounts))
    expected = {"CPUS": "2", "MILLI": "250", "MIB": "100", "BYTES": "104857600", "DISK": "3", "NONE": "0"}
    assert made.env == expected


@pytest.mark.parametrize(
    "variable", [resource("X", "limits.gpu"), resource("X", "limits.cpu", "1", "nobody")]
)
def test_a_resource_that_cannot_be_told_is_named(variable: EnvVar) -> None:
    with pytest.raises(LaunchError, match=r"limits\.gpu: expected limits\.cpu|of nobody: no such container"):
        order(Container(name="c", command=("x",), env=(variable,)))


def test_the_pods_own_host_name() -> None:
    plain = Pod(metadata=ObjectMeta(name="web"), spec=PodSpec(hostname="shop"))
    assert order(Container(name="c", command=("x",))).hostname == ""
    assert order(Container(name="c", command=("x",)), pod=plain).hostname == "shop"


def test_what_the_node_cannot_do_is_said() -> None:
    with pytest.raises(LaunchError, match="container c has no command"):
        order(Container(name="c", image="nginx"))
    with pytest.raises(LaunchError, match=r"V takes its value from status\.nonsense: this node knows"):
        order(Container(name="c", command=("x",), env=(field("V", "status.nonsense"),)))


def test_root_is_refused_where_it_must_not_be() -> None:
    with pytest.raises(LaunchError, match="runAsNonRoot"):
        order(Container(name="c", command=("x",), security_context=SecurityContext(run_as_non_root=True)))
    as_user = SecurityContext(run_as_non_root=True, run_as_user=1000, run_as_group=50)
    made = order(Container(name="c", command=("x",), security_context=as_user))
    assert (made.user_id, made.group_id) == (1000, 50)


def test_each_attempt_has_its_own_id() -> None:
    ids = {container_id("u1", generation, "c", attempt) for generation in range(3) for attempt in range(3)}
    assert len(ids) == 9
    assert container_id("u1", 0, "c", 0) in ids


def test_a_device_brings_its_variables_and_what_must_be_seen() -> None:
    gpu = Device(
        "gpu0",
        device_nodes=("/dev/gpu0",),
        environment={"GPU": "0", "MODE": "slow"},
        mounts=(DeviceMount("/opt/gpu/lib", "/usr/lib/gpu", read_only=True),),
    )
    own = EnvVar(name="MODE", value="fast")
    library = Mount(source="/opt/gpu/lib", target="/usr/lib/gpu", read_only=True)
    on_host = order(Container(name="c", command=("x",), env=(own,)), [gpu])
    assert on_host.env == {"GPU": "0", "MODE": "fast"}
    # the host's /dev is there anyway
    assert on_host.mounts == (library,)
    apart = order(Container(name="c", command=("x",), image="/images/app"), [gpu])
    assert apart.mounts == (library, Mount(source="/dev/gpu0", target="/dev/gpu0"))
