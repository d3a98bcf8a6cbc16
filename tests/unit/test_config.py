"""The configuration file: what is read, what is filled in, what is said about it."""

import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nodeagent
from nodeagent.config import (
    AgentConfiguration,
    Config,
    ConfigError,
    KubeletConfiguration,
    load_config,
    parse_config,
)
from nodeagent.config.setting import Effect, kubernetes_name, rows

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def parse(text: str) -> Config:
    return parse_config((HEADER + text).encode(), "kubelet.yaml", host_name="Node-1")


def errors(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    return str(caught.value).splitlines()


def test_defaults_are_kubelets_with_the_exceptions_that_the_table_names() -> None:
    kubelet = load_config(None).kubelet
    assert (kubelet.max_pods, kubelet.pod_pids_limit, kubelet.sync_frequency) == (110, -1, "1m0s")
    assert kubelet.enforce_node_allocatable == ("pods",)
    assert kubelet.eviction_hard == {
        "memory.available": "100Mi",
        "nodefs.available": "10%",
        "nodefs.inodesFree": "5%",
        "imagefs.available": "15%",
        "imagefs.inodesFree": "5%",
    }
    ours = (kubelet.address, kubelet.read_only_port, kubelet.static_pod_path, kubelet.cgroup_driver)
    assert ours == ("127.0.0.1", 10255, "/etc/nodeagent/manifests", "systemd")
    documented = {row.name: row.setting.doc for row in rows(KubeletConfiguration)}
    for name in ("address", "readOnlyPort", "staticPodPath", "cgroupDriver", "containerRuntimeEndpoint"):
        assert "kubelet's default" in documented[name]


def test_what_the_table_calls_implemented_is_read_by_the_program() -> None:
    package = Path(nodeagent.__file__).parent
    tables = [package / "config" / name for name in ("schema.py", "inert.py", "validation.py")]
    program = "\n".join(path.read_text() for path in package.rglob("*.py") if path not in tables)
    read = set(re.findall(r"\.([a-z_]+)\b", program))
    idle = [
        row.name
        for section in (KubeletConfiguration, AgentConfiguration)
        for row in rows(section)
        if row.setting.effect is Effect.HERE and row.attributes[-1] not in read
    ]
    # Only one of its values is accepted.
    assert idle == ["cgroupsPerQOS"]


def test_configz_has_kubelets_shape() -> None:
    configz = parse("maxPods: 20\nsyncFrequency: 90s").to_configz()["kubeletconfig"]
    assert configz["maxPods"] == 20
    assert configz["syncFrequency"] == "1m30s"
    assert configz["shutdownGracePeriod"] == "0s"
    assert configz["authentication"]["webhook"] == {"enabled": True, "cacheTTL": "2m0s"}
    assert "podsPerCore" not in configz and "kind" not in configz
    json.dumps(configz)


def test_a_kubeadm_file_is_taken_as_it_is() -> None:
    config = parse(
        """
authentication: {anonymous: {enabled: false}, webhook: {cacheTTL: 0s, enabled: true}}
authorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 0s, cacheUnauthorizedTTL: 0s}}
cgroupDriver: systemd
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: ""
cpuManagerReconcilePeriod: 0s
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
imageMinimumGCAge: 0s
logging: {flushFrequency: 0, options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}}
memorySwap: {}
nodeStatusReportFrequency: 0s
rotateCertificates: true
shutdownGracePeriod: 0s
staticPodPath: /etc/kubernetes/manifests
"""
    )
    assert config.kubelet.file_check_frequency == "20s"
    assert config.kubelet.eviction_pressure_transition_period == "5m0s"
    assert config.kubelet.container_runtime_endpoint == "process"
    assert config.warnings == (
        "these fields change nothing here: clusterDomain, clusterDNS: accepted without effect; "
        "rotateCertificates: not yet implemented",
    )


def test_zero_means_not_set_only_where_kubernetes_says_so() -> None:
    kubelet = parse(
        "maxPods: 0\nhealthzPort: 0\nreadOnlyPort: 0\ncpuCFSQuota: false\nstaticPodPath: ''"
    ).kubelet
    assert kubelet.max_pods == 110
    assert (kubelet.healthz_port, kubelet.read_only_port, kubelet.static_pod_path) == (0, 0, "")
    assert kubelet.cpu_cfs_quota is False


def test_a_default_can_depend_on_another_field() -> None:
    kubelet = parse("nodeStatusUpdateFrequency: 4s\nmaxParallelImagePulls: 3\npodPidsLimit: -7").kubelet
    assert kubelet.node_status_report_frequency == "4s"
    assert kubelet.serialize_image_pulls is False
    assert kubelet.pod_pids_limit == -1


def test_dropped_eviction_defaults_are_named() -> None:
    config = parse("evictionHard: {memory.available: 200Mi}")
    assert config.kubelet.eviction_hard == {"memory.available": "200Mi"}
    assert "no threshold for imagefs.available, imagefs.inodesFree, nodefs.available" in config.warnings[0]
    merged = parse("evictionHard: {memory.available: 200Mi}\nmergeDefaultEvictionSettings: true")
    assert merged.kubelet.eviction_hard["memory.available"] == "200Mi"
    assert merged.kubelet.eviction_hard["nodefs.available"] == "10%"
    assert not merged.warnings


def test_reserved_cpus_take_the_place_of_both_cpu_reservations() -> None:
    config = parse(
        "reservedSystemCPUs: 0-1,4\nkubeReserved: {cpu: 200m, memory: 1Gi}\ncpuManagerPolicy: static"
    )
    assert config.kubelet.system_reserved == {"cpu": "3"}
    assert config.kubelet.kube_reserved == {"memory": "1Gi"}
    assert config.warnings == ("reservedSystemCPUs takes the place of the cpu in kubeReserved",)


def test_all_faults_are_found_at_once_each_with_its_path() -> None:
    found = errors(
        """
maxPod: 3
maxPods: many
podPidsLimit: 99999999999999999999999
syncFrequency: 1d
cacheTTL: 3s
authentication: {webhook: {cacheTTL: 3}}
featureGates: {MemoryQoS: 1}
kubeReserved: {cpu: 1}
enforceNodeAllocatable: pods
reservedMemory: [{numaNode: 0, limits: {memory: lots}}]
registerWithTaints: [{keys: a}]
"""
    )
    assert found == [
        'kubelet.yaml: maxPod: Unknown field: did you mean "maxPods"?',
        'kubelet.yaml: cacheTTL: Unknown field: did you mean "authentication.webhook.cacheTTL"?',
        "kubelet.yaml: authentication.webhook.cacheTTL: Invalid value: 3: "
        'expected a duration, such as "30s" or "1m30s"',
        'kubelet.yaml: registerWithTaints[0].keys: Unknown field: did you mean "key"?',
        'kubelet.yaml: syncFrequency: Invalid value: "1d": time: unknown unit "d" in duration "1d"',
        "kubelet.yaml: podPidsLimit: Invalid value: 99999999999999999999999: "
        "expected an integer from -9223372036854775808 to 9223372036854775807",
        'kubelet.yaml: maxPods: Invalid value: "many": expected an integer',
        'kubelet.yaml: kubeReserved[cpu]: Invalid value: 1: expected a string; write "1" in quotes',
        'kubelet.yaml: enforceNodeAllocatable: Invalid value: "pods": expected a list of strings',
        'kubelet.yaml: reservedMemory[0].limits[memory]: Invalid value: "lots": quantities must match the '
        "regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        "kubelet.yaml: featureGates[MemoryQoS]: Invalid value: 1: expected a boolean",
    ]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("[]", "document 1: expected an object with apiVersion and kind"),
        ("maxPods: 3", 'document 1: apiVersion "", kind "": expected KubeletConfiguration'),
        (
            "apiVersion: v1\nkind: Pod",
            'document 1: apiVersion "v1", kind "Pod": expected KubeletConfiguration',
        ),
        (f"{HEADER}---\n{HEADER}", "document 2: a second KubeletConfiguration; expected one in a file"),
        (f"{HEADER}maxPods: [", "line"),
        (f"{HEADER}maxPods: 3\nmaxPods: 4", "maxPods"),
        (f"{HEADER}1: 2", "line 3: the key 1 "),
        (
            f"{HEADER}staticPodURLHeader: {{a: [1]}}",
            "staticPodURLHeader[a][0]: Invalid value: 1: expected a string",
        ),
        (f"{HEADER}x: &a {{b: [*a]}}", "alias"),
        ("\x00", "not allowed"),
    ],
)
def test_a_file_that_is_no_configuration_gets_a_sentence(document: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(document.encode(), "kubelet.yaml")
    assert str(caught.value).startswith("kubelet.yaml: ")
    assert message in str(caught.value)


def test_alias_bombs_and_huge_files_are_refused() -> None:
    bomb = HEADER + "x0: &x0 [a, a, a, a, a, a, a, a, a, a]\n"
    bomb += "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]\n" for n in range(1, 12))
    with pytest.raises(ConfigError):
        parse_config(bomb.encode(), "bomb.yaml")
    with pytest.raises(ConfigError):
        parse_config(HEADER.encode() + b"#" * (4 << 20), "large.yaml")


def test_our_own_settings_live_in_a_second_document() -> None:
    own = "---\napiVersion: nodeagent.io/v1alpha1\nkind: AgentConfiguration\nevictStaticPods: false\n"
    config = parse("maxPods: 5\n" + own)
    assert config.agent.evict_static_pods is False
    assert config.agent.node_name == "node-1"
    assert parse(own + "nodeName: other").agent.node_name == "other"
    with pytest.raises(ConfigError, match="did you mean"):
        parse(own + "stateDirectry: /tmp")
    with pytest.raises(ConfigError, match="absolute path"):
        parse(own + "stateDirectory: var/lib")


def test_what_is_printed_is_a_file_that_gives_the_same_configuration() -> None:
    config = parse(
        "maxPods: 7\nreservedSystemCPUs: '0'\nevictionSoft: {memory.available: 1Gi}\n"
        "enforceNodeAllocatable: []"
    )
    text = yaml.safe_dump_all(config.to_documents())
    again = parse_config(text.encode(), "again.yaml")
    assert (again.kubelet, again.agent) == (config.kubelet, config.agent)


def test_a_file_that_cannot_be_read_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "missing.yaml")
    assert str(caught.value) == f"{tmp_path}/missing.yaml: cannot be read: No such file or directory"


def test_every_row_is_documented_and_decodes_its_own_default() -> None:
    table = list(rows(KubeletConfiguration))
    assert len({row.name for row in table}) == len(table)
    for row in table:
        assert row.setting.doc.endswith("."), row.name
        assert row.setting.effect in Effect
    assert (
        parse_config(yaml.safe_dump_all(Config().to_documents()).encode(), "x", host_name="n").kubelet
        == Config().kubelet
    )


@pytest.mark.parametrize(
    ("attribute", "name"),
    [
        ("cpu_cfs_quota_period", "cpuCFSQuotaPeriod"),
        ("image_gc_low_threshold_percent", "imageGCLowThresholdPercent"),
        ("make_iptables_util_chains", "makeIPTablesUtilChains"),
        ("reserved_system_cpus", "reservedSystemCPUs"),
        ("static_pod_url_header", "staticPodURLHeader"),
        ("fail_cgroup_v1", "failCgroupV1"),
        ("ids_per_pod", "idsPerPod"),
    ],
)
def test_names_are_spelled_as_kubernetes_spells_them(attribute: str, name: str) -> None:
    assert kubernetes_name(attribute) == name


_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_values = st.recursive(
    _scalars,
    lambda v: st.lists(v, max_size=2) | st.dictionaries(st.text(max_size=5), v, max_size=2),
    max_leaves=4,
)
_names = st.sampled_from(sorted({row.name.partition(".")[0] for row in rows(KubeletConfiguration)}))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(_names, _values, max_size=4))
def test_any_document_gives_a_configuration_or_a_config_error(body: dict[str, object]) -> None:
    text = HEADER + yaml.safe_dump(body)
    try:
        config = parse_config(text.encode(), "any.yaml")
    except ConfigError as error:
        assert error.errors
    else:
        assert parse_config(yaml.safe_dump_all(config.to_documents()).encode(), "x").kubelet == config.kubelet
