"""What makes a configuration refused: kubelet's rules, in kubelet's words.

The sentences stand whole, so that they can be searched for.
"""
# ruff: noqa: E501

import pytest

from nodeagent.config import ConfigError, parse_config
from nodeagent.config.gates import KNOWN_GATES, enabled

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nodeLeaseDurationSeconds: -1", "nodeLeaseDurationSeconds must be greater than 0"),
        (
            "cgroupsPerQOS: false",
            "cgroupsPerQOS (--cgroups-per-qos) must be true: the tree of cgroups is what this agent is",
        ),
        (
            "systemCgroups: /system",
            "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified",
        ),
        ("eventBurst: -1", "eventBurst (--event-burst) -1 must not be a negative number"),
        ("healthzPort: 65536", "healthzPort (--healthz-port) 65536 must be between 1 and 65535, inclusive"),
        ("port: -1", "port (--port) -1 must be between 1 and 65535, inclusive"),
        ("readOnlyPort: -1", "readOnlyPort (--read-only-port) -1 must be between 0 and 65535, inclusive"),
        (
            "cpuCFSQuotaPeriod: 2s",
            "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {2s} must be between 1ms and 1sec, inclusive",
        ),
        (
            "cpuCFSQuotaPeriod: 200ms\nfeatureGates: {CustomCPUCFSQuotaPeriod: false}",
            "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {200ms} requires feature gate CustomCPUCFSQuotaPeriod",
        ),
        (
            "imageGCHighThresholdPercent: 101",
            "imageGCHighThresholdPercent (--image-gc-high-threshold) 101 must be between 0 and 100, inclusive",
        ),
        (
            "imageGCHighThresholdPercent: 0\nimageGCLowThresholdPercent: 0",
            "imageGCLowThresholdPercent (--image-gc-low-threshold) 0 must be less than "
            "imageGCHighThresholdPercent (--image-gc-high-threshold) 0",
        ),
        ("imageMaximumGCAge: -1ns", "imageMaximumGCAge -1ns must not be negative"),
        ("imageMaximumGCAge: 1m", "imageMaximumGCAge 1m0s must be greater than imageMinimumGCAge 2m0s"),
        ("maxPods: -1", "maxPods (--max-pods) -1 must not be a negative number"),
        ("podsPerCore: -1", "podsPerCore (--pods-per-core) -1 must not be a negative number"),
        (
            "nodeStatusMaxImages: -2",
            "nodeStatusMaxImages (--node-status-max-images) -2 must be -1 or greater",
        ),
        ("oomScoreAdj: 1001", "oomScoreAdj (--oom-score-adj) 1001 must be between -1000 and 1000, inclusive"),
        ("maxParallelImagePulls: 0", "maxParallelImagePulls 0 must be a positive number"),
        (
            "maxParallelImagePulls: 3\nserializeImagePulls: true",
            "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) "
            "is set to false",
        ),
        ("runOnce: true", "runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set"),
        (
            "registerWithTaints: [{key: a, effect: Never}]",
            "invalid taint: a=:Never; expected a key and one of the effects NoSchedule, PreferNoSchedule, NoExecute",
        ),
        (
            "topologyManagerPolicy: strict",
            'topologyManagerPolicy (--topology-manager-policy) "strict" must be one of: '
            '["none" "best-effort" "restricted" "single-numa-node"]',
        ),
        (
            "topologyManagerScope: node",
            'topologyManagerScope (--topology-manager-scope) "node" must be one of: "container", or "pod"',
        ),
        (
            "shutdownGracePeriod: 1s\nshutdownGracePeriodCriticalPods: 2s",
            "shutdownGracePeriodCriticalPods {2s} must be <= shutdownGracePeriod {1s}",
        ),
        (
            "shutdownGracePeriod: 10ms",
            "shutdownGracePeriod {10ms} must be either zero or otherwise >= 1 sec",
        ),
        (
            "shutdownGracePeriod: 9s\nshutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 3}]",
            "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time",
        ),
        (
            "memorySwap: {swapBehavior: Unlimited}",
            'memorySwap.swapBehavior "Unlimited" must be one of: "", "LimitedSwap" or "NoSwap"',
        ),
        (
            "crashLoopBackOff: {maxContainerRestartPeriod: 300.9s}",
            "CrashLoopBackOff.MaxContainerRestartPeriod (got: 300.9 seconds) must be set between 1s and 300s",
        ),
        (
            "enforceNodeAllocatable: [system-reserved-compressible]",
            'systemReservedCgroup (--system-reserved-cgroup) must be specified when "system-reserved" or '
            '"system-reserved-compressible" included in enforceNodeAllocatable (--enforce-node-allocatable)',
        ),
        (
            "enforceNodeAllocatable: [kube-reserved, kube-reserved-compressible]\nkubeReservedCgroup: /kube",
            'both "kube-reserved" and "kube-reserved-compressible" cannot be specified together in '
            "enforceNodeAllocatable (--enforce-node-allocatable)",
        ),
        (
            "enforceNodeAllocatable: [none, pods]",
            "enforceNodeAllocatable (--enforce-node-allocatable) may not contain additional enforcements when "
            '"none" is specified',
        ),
        (
            "enforceNodeAllocatable: [pods, pods]",
            'duplicated enforcements "pods" in enforceNodeAllocatable (--enforce-node-allocatable)',
        ),
        (
            "enforceNodeAllocatable: [nodes]",
            'option "nodes" specified for enforceNodeAllocatable (--enforce-node-allocatable). Valid options are '
            '"pods", "system-reserved", "system-reserved-compressible", "kube-reserved", '
            '"kube-reserved-compressible" or "none"',
        ),
        (
            "hairpinMode: loop",
            'option "loop" specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or '
            '"promiscuous-bridge"',
        ),
        (
            "reservedSystemCPUs: 0-3\nsystemReservedCgroup: /system.slice",
            "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) "
            "or kubeReservedCgroup (--kube-reserved-cgroup)",
        ),
        (
            "reservedSystemCPUs: 0-x",
            'unable to parse reservedSystemCPUs (--reserved-cpus) 0-x, error: "0-x" is neither a CPU nor a range',
        ),
        (
            "kubeReserved: {gpu: '1'}",
            '--kube-reserved value failed to parse: cannot reserve "gpu" resource',
        ),
        (
            "systemReserved: {memory: -1Gi}",
            '--system-reserved value failed to parse: resource quantity for "memory" cannot be negative: -1Gi',
        ),
        (
            "systemReserved: {memory: 1Zi}",
            '--system-reserved value failed to parse: memory "1Zi": quantities must match the regular expression',
        ),
        (
            "qosReserved: {memory: 50}",
            'qosReserved[memory]: Invalid value: 50: expected a string; write "50"',
        ),
        (
            "qosReserved: {memory: '50'}",
            '--qos-reserved value failed to parse: percentage expected, got "50"',
        ),
        ("cpuManagerPolicy: dynamic", 'unknown policy: "dynamic"; expected "none" or "static"'),
        (
            "cpuManagerPolicy: static",
            "[cpumanager] unable to determine reserved CPU resources for static policy: the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero",
        ),
        ("memoryManagerPolicy: static", 'unknown policy: "static"; expected "None" or "Static"'),
        ("memoryManagerPolicy: Static", "[memorymanager] you should specify the system reserved memory"),
        (
            "reservedMemory: [{numaNode: 0, limits: {cpu: 1}}]",
            'the limit type "cpu" for NUMA node 0 is not supported, only [memory hugepages-<HugePageSize>] is accepted',
        ),
        (
            "reservedMemory: [{numaNode: 1, limits: {memory: 0}}]",
            'reserved memory may not be zero for NUMA node 1 and resource "memory"',
        ),
        (
            "reservedMemory: [{numaNode: 1, limits: {memory: 1}}, {numaNode: 1, limits: {memory: 2}}]",
            'the reserved memory has a duplicate value for NUMA node 1 and resource "memory"',
        ),
        (
            "memoryThrottlingFactor: 1.1",
            "memoryThrottlingFactor 1.1 must be greater than 0 and less than or equal to 1.0",
        ),
        (
            "memoryReservationPolicy: TieredReservation",
            'memoryReservationPolicy "TieredReservation" requires MemoryQoS feature gate to be enabled',
        ),
        (
            "memoryReservationPolicy: Tiered",
            'option "Tiered" specified for memoryReservationPolicy. Valid options are "None" or "TieredReservation"',
        ),
        ("containerLogMaxFiles: 1", "containerLogMaxFiles must be greater than 1"),
        ("containerLogMaxSize: '0'", 'containerLogMaxSize "0" must be greater than 0'),
        ("containerLogMaxWorkers: 0", "containerLogMaxWorkers must be greater than or equal to 1"),
        (
            "containerLogMonitorInterval: 2s",
            "containerLogMonitorInterval must be a positive time duration greater than or equal to 3s",
        ),
        ("podLogsDir: logs", 'pod logs path "logs" must be absolute path'),
        ("podLogsDir: /a/../b", 'pod logs path "/a/../b" must be normalized'),
        (
            "cgroupDriver: cgroup",
            'option "cgroup" specified for cgroupDriver (--cgroup-driver). Valid options are',
        ),
        (
            "cgroupRoot: /a/../b",
            "cgroupRoot \"/a/../b\" must be an absolute path without '.' or '..' elements",
        ),
        ("address: localhost", 'address "localhost" must be an IP address, such as 127.0.0.1 or ::'),
        (
            "containerRuntimeEndpoint: docker",
            'containerRuntimeEndpoint "docker" must be "process" or a socket',
        ),
        ("logging: {format: xml}", 'logging.format: Invalid value: "xml": Unsupported log format'),
        (
            "tracing: {samplingRatePerMillion: -1}",
            "tracing.samplingRatePerMillion: Invalid value: -1: sampling rate must be positive",
        ),
        ("featureGates: {MemoryQos: true}", "unrecognized feature gate: MemoryQos (did you mean MemoryQoS?)"),
        (
            "featureGates: {NodeSwap: false}",
            "cannot set feature gate NodeSwap to false, feature is locked to true",
        ),
        (
            "enableSystemLogHandler: false\nenableSystemLogQuery: true",
            "enableSystemLogHandler is required for enableSystemLogQuery",
        ),
        (
            "imagePullCredentialsVerificationPolicy: Sometimes",
            'option "Sometimes" specified for imagePullCredentialsVerificationPolicy. Valid options are '
            '"NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages" or "AlwaysVerify"',
        ),
        (
            "preloadedImagesVerificationAllowlist: [a/b]",
            "can't set `preloadedImagesVerificationAllowlist` if",
        ),
    ],
)
def test_a_faulty_configuration_is_refused_in_kubelets_words(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config((HEADER + text).encode(), "kubelet.yaml")
    assert len(caught.value.errors) == 1
    assert sentence in str(caught.value)
    assert str(caught.value).startswith(
        ("kubelet.yaml: invalid configuration: ", "kubelet.yaml: qosReserved")
    )


@pytest.mark.parametrize(
    "text",
    [
        "cpuManagerPolicy: static\nreservedSystemCPUs: '0'",
        "cpuManagerPolicy: static\nkubeReserved: {cpu: 500m}",
        "memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}]",
        "memoryReservationPolicy: TieredReservation\nfeatureGates: {MemoryQoS: true}",
        "memoryReservationPolicy: TieredReservation\nfeatureGates: {AllAlpha: true}",
        "enforceNodeAllocatable: [pods, system-reserved]\nsystemReservedCgroup: /system.slice",
        "enforceNodeAllocatable: [none]",
        "enforceNodeAllocatable: []",
        "maxParallelImagePulls: 3",
        "evictionMaxPodGracePeriod: -1",
        "cgroupRoot: /",
        "podLogsDir: /var/log/pods",
        "featureGates: {NodeSwap: true}",
    ],
)
def test_a_sound_configuration_is_taken(text: str) -> None:
    parse_config((HEADER + text).encode(), "kubelet.yaml")


def test_gates_follow_their_defaults_until_they_are_set() -> None:
    assert not enabled({}, "MemoryQoS")
    assert enabled({"MemoryQoS": True}, "MemoryQoS")
    assert enabled({"AllAlpha": True}, "MemoryQoS")
    assert not enabled({"AllAlpha": True, "MemoryQoS": False}, "MemoryQoS")
    assert enabled({}, "PodLevelResources") and not enabled({"AllBeta": False}, "PodLevelResources")
    assert enabled({}, "CustomCPUCFSQuotaPeriod") and enabled({}, "NodeSwap")
    assert {"CPUManagerPolicyAlphaOptions", "QOSReserved", "SidecarContainers"} <= KNOWN_GATES
    with pytest.raises(KeyError):
        enabled({}, "NoSuchGate")
