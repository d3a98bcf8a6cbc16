"""The one table of the configuration: KubeletConfiguration (kubelet.config.k8s.io/v1beta1, 1.36) and our own.

Each field is a row: its name and type, its default, what it does here, its check and its documentation.
Decoding, defaults, validation, `nodeagent config --explain` and /configz all read these classes.
"""

from typing import Annotated, Final

from msgspec import field

from nodeagent.api.base import Int32, Int64
from nodeagent.api.quantity import Quantity
from nodeagent.config.inert import InertConfiguration
from nodeagent.config.setting import (
    Duration,
    DurationOrNanoseconds,
    Effect,
    Section,
    Setting,
    absolute_path,
    at_least,
    between,
    cpu_list,
    ignored,
    ip_address,
    not_negative,
    option,
    port_number,
    quantity,
)

DEFAULT_EVICTION_HARD: Final = {
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
}


class ShutdownByPriority(Section, frozen=True):
    priority: Annotated[Int32, Setting("Pods of this priority and more.", zero_counts=True)] = 0
    shutdown_grace_period_seconds: Annotated[Int64, Setting("Seconds they get.", zero_counts=True)] = 0


class MemorySwap(Section, frozen=True):
    swap_behavior: Annotated[
        str, Setting('"" or NoSwap: pods never swap; LimitedSwap: Burstable pods get a share of it.')
    ] = ""


class CrashLoopBackOff(Section, frozen=True):
    max_container_restart_period: Annotated[
        Duration,
        Setting("Longest wait between restarts of a failing container, 1s to 5m0s.", zero_counts=True),
    ] = "5m0s"


class MemoryReservation(Section, frozen=True):
    numa_node: Annotated[Int32, Setting("The NUMA node the reservation is on.")] = 0
    limits: Annotated[dict[str, Quantity], Setting("Reserved amounts: memory, hugepages-<size>.")] = field(
        default_factory=dict
    )


class VerbosityByFile(Section, frozen=True):
    file_pattern: Annotated[str, ignored("Source files.")] = ""
    verbosity: Annotated[Int32, ignored("Their verbosity.")] = 0


class LoggingStream(Section, frozen=True):
    split_stream: Annotated[bool, ignored("Errors to stderr, the rest to stdout.")] = False
    info_buffer_size: Annotated[Quantity, ignored("Buffer before stdout.", zero_counts=True)] = Quantity.of(0)


class LoggingOptions(Section, frozen=True):
    text: Annotated[LoggingStream, ignored("For format text.")] = LoggingStream()
    json: Annotated[LoggingStream, ignored("For format json.")] = LoggingStream()


class Logging(Section, frozen=True):
    format: Annotated[str, ignored("Log format; under systemd the journal gets structured fields.")] = "text"
    flush_frequency: Annotated[DurationOrNanoseconds, ignored("Longest time a line waits.")] = "5s"
    verbosity: Annotated[
        Int32, Setting("0: what an operator needs; 4 and more: every decision.", zero_counts=True)
    ] = 0
    vmodule: Annotated[tuple[VerbosityByFile, ...], ignored("Verbosity by source file.")] = ()
    options: Annotated[LoggingOptions, ignored("Per format.")] = LoggingOptions()


class KubeletConfiguration(InertConfiguration, frozen=True):
    """A kubelet's configuration file; defaults are kubelet 1.36's unless a row says otherwise."""

    # ---- where pods come from, and where they are served
    enable_server: Annotated[bool, Setting("Serve the HTTP endpoints on `address`.", zero_counts=True)] = True
    static_pod_path: Annotated[
        str,
        Setting(
            "Directory (or one file) of pod manifests; empty is none. kubelet's default is none; "
            "ours is /etc/nodeagent/manifests, because manifests are the workload here.",
            check=absolute_path,
            zero_counts=True,
        ),
    ] = "/etc/nodeagent/manifests"
    pod_logs_dir: Annotated[str, Setting("Root of the containers' log files.")] = "/var/log/pods"
    sync_frequency: Annotated[
        Duration, Setting("Longest time between two comparisons of what should be with what is.")
    ] = "1m0s"
    file_check_frequency: Annotated[
        Duration, Setting("Time between two looks into staticPodPath, beside its notifications.")
    ] = "20s"
    address: Annotated[
        str,
        Setting(
            "Address of the servers. kubelet's default is 0.0.0.0; ours is 127.0.0.1, because the "
            "read-only port is on and asks nobody who they are.",
            check=ip_address,
        ),
    ] = "127.0.0.1"
    read_only_port: Annotated[
        Int32,
        Setting(
            "Port of the server that only reads; 0 turns it off. kubelet's default is 0, ours is 10255, "
            "because the command line and the metrics live there.",
            check=port_number("--read-only-port", lowest=0),
            zero_counts=True,
        ),
    ] = 10255
    healthz_port: Annotated[
        Int32,
        Setting(
            "Port of /healthz; 0 turns it off.",
            check=port_number("--healthz-port", or_zero=True),
            zero_counts=True,
        ),
    ] = 10248
    healthz_bind_address: Annotated[str, Setting("Its address.", check=ip_address)] = "127.0.0.1"

    # ---- the cgroup tree
    cgroup_root: Annotated[
        str, Setting("The cgroup that kubepods is made in; empty is the root.", check=absolute_path)
    ] = ""
    cgroup_driver: Annotated[
        str,
        Setting(
            "systemd: slices and scopes over D-Bus; cgroupfs: plain directories, for another PID 1. "
            "kubelet's default is cgroupfs, ours is systemd.",
            check=option("--cgroup-driver", "systemd", "cgroupfs"),
        ),
    ] = "systemd"
    cgroups_per_qos: Annotated[
        bool, Setting("A slice for each QoS class; must be true here.", zero_counts=True)
    ] = True
    pod_pids_limit: Annotated[Int64, Setting("pids.max of each pod; -1 is no limit.", zero_counts=True)] = -1
    cpu_cfs_quota: Annotated[bool, Setting("Write CPU limits to cpu.max.", zero_counts=True)] = True
    cpu_cfs_quota_period: Annotated[
        Duration, Setting("The period in cpu.max, 1ms to 1s.", zero_counts=True)
    ] = "100ms"
    memory_throttling_factor: Annotated[
        float, Setting("Where between request and limit memory.high lies (gate MemoryQoS).", zero_counts=True)
    ] = 0.9
    memory_reservation_policy: Annotated[
        str,
        Setting(
            "TieredReservation writes memory.min and memory.low (gate MemoryQoS).",
            check=option("", "None", "TieredReservation"),
        ),
    ] = "None"
    memory_swap: Annotated[MemorySwap, Setting("Swap for pods.")] = MemorySwap()
    fail_swap_on: Annotated[bool, Setting("Refuse to start on a host with swap.", zero_counts=True)] = True
    single_process_oom_kill: Annotated[
        bool,
        Setting("Let the kernel kill one process, not the container (memory.oom.group 0).", zero_counts=True),
    ] = False
    oom_score_adj: Annotated[
        Int32,
        Setting(
            "oom_score_adj of the agent.", check=between(-1000, 1000, "--oom-score-adj"), zero_counts=True
        ),
    ] = -999

    # ---- what the node keeps for itself
    max_pods: Annotated[Int32, Setting("Most pods on this node.", check=not_negative("--max-pods"))] = 110
    pods_per_core: Annotated[
        Int32, Setting("Most pods per CPU core; 0 is no limit.", check=not_negative("--pods-per-core"))
    ] = 0
    kube_reserved: Annotated[
        dict[str, str], Setting("Kept for the node's daemons: cpu, memory, ephemeral-storage, pid.")
    ] = field(default_factory=dict)
    system_reserved: Annotated[
        dict[str, str], Setting("Kept for everything else on the host: cpu, memory, ephemeral-storage, pid.")
    ] = field(default_factory=dict)
    reserved_system_cpus: Annotated[
        str,
        Setting("CPUs no pod gets exclusively; replaces the amount in both reservations.", check=cpu_list),
    ] = ""
    kube_reserved_cgroup: Annotated[
        str, Setting("The daemons' cgroup, for enforcement.", check=absolute_path)
    ] = ""
    system_reserved_cgroup: Annotated[
        str, Setting("The host's cgroup, for enforcement.", check=absolute_path)
    ] = ""
    enforce_node_allocatable: Annotated[
        tuple[str, ...],
        Setting("pods, [kube|system]-reserved[-compressible], or none alone.", zero_counts=True),
    ] = ("pods",)
    qos_reserved: Annotated[
        dict[str, str], Setting("Memory kept from lower classes, in percent (gate QOSReserved).")
    ] = field(default_factory=dict)

    # ---- who gets which CPUs and memory
    cpu_manager_policy: Annotated[str, Setting("none, or static: exclusive CPUs for whole requests.")] = (
        "none"
    )
    cpu_manager_policy_options: Annotated[dict[str, str], Setting("Options of the static policy.")] = field(
        default_factory=dict
    )
    cpu_manager_reconcile_period: Annotated[Duration, Setting("Time between repairs of cpuset.cpus.")] = "10s"
    memory_manager_policy: Annotated[str, Setting("None, or Static: cpuset.mems for Guaranteed pods.")] = (
        "None"
    )
    reserved_memory: Annotated[tuple[MemoryReservation, ...], Setting("Kept per NUMA node.")] = ()
    topology_manager_policy: Annotated[str, Setting("How CPUs, memory and devices are aligned.")] = "none"
    topology_manager_scope: Annotated[str, Setting("Aligned per container, or per pod.")] = "container"
    topology_manager_policy_options: Annotated[
        dict[str, str], Setting("Options of the topology manager.")
    ] = field(default_factory=dict)

    # ---- eviction and shutdown
    eviction_hard: Annotated[
        dict[str, str], Setting("Thresholds that evict at once; any entry replaces all defaults.")
    ] = field(default_factory=lambda: dict(DEFAULT_EVICTION_HARD))
    eviction_soft: Annotated[dict[str, str], Setting("Thresholds that evict after a grace period.")] = field(
        default_factory=dict
    )
    eviction_soft_grace_period: Annotated[
        dict[str, str], Setting("The grace period of each soft threshold.")
    ] = field(default_factory=dict)
    eviction_minimum_reclaim: Annotated[
        dict[str, str], Setting("How far beyond a threshold eviction goes.")
    ] = field(default_factory=dict)
    eviction_pressure_transition_period: Annotated[
        Duration, Setting("How long a pressure condition stays after the signal.")
    ] = "5m0s"
    eviction_max_pod_grace_period: Annotated[
        Int32, Setting("Most seconds a pod gets in a soft eviction.")
    ] = 0
    merge_default_eviction_settings: Annotated[
        bool, Setting("Keep the default hard thresholds beside those given.", zero_counts=True)
    ] = False

    shutdown_grace_period: Annotated[
        Duration, Setting("How long the machine's shutdown waits for pods; 0s is not at all.")
    ] = "0s"
    shutdown_grace_period_critical_pods: Annotated[
        Duration, Setting("The last part of it, for critical pods.")
    ] = "0s"
    shutdown_grace_period_by_pod_priority: Annotated[
        tuple[ShutdownByPriority, ...], Setting("In place of both: what the pods of each priority get.")
    ] = ()

    local_storage_capacity_isolation: Annotated[
        bool, Setting("Evict pods that use more local storage than they may.", zero_counts=True)
    ] = True

    # ---- containers
    container_runtime_endpoint: Annotated[
        str,
        Setting(
            "Socket of a CRI runtime, not used yet. kubelet's default is containerd's; ours is the embedded "
            'process runtime, written "process".',
            Effect.LATER,
        ),
    ] = "process"
    crash_loop_back_off: Annotated[CrashLoopBackOff, Setting("Restarts.")] = CrashLoopBackOff()
    container_log_max_size: Annotated[
        str, Setting("Size at which a log file is rotated.", check=quantity)
    ] = "10Mi"
    container_log_max_files: Annotated[
        Int32,
        Setting(
            "Log files kept of a container.", check=at_least(2, "must be greater than 1"), zero_counts=True
        ),
    ] = 5

    # ---- the agent itself
    feature_gates: Annotated[dict[str, bool], Setting("Kubernetes' feature gates by name.")] = field(
        default_factory=dict
    )
    logging: Annotated[Logging, Setting("The agent's own log.")] = Logging()


class DeviceMount(Section, frozen=True):
    host_path: Annotated[str, Setting("A file or directory of the host.", check=absolute_path)] = ""
    container_path: Annotated[str, Setting("Where containers see it.", check=absolute_path)] = ""
    read_only: Annotated[bool, Setting("They may not write to it.")] = False


class DeviceItem(Section, frozen=True):
    id: Annotated[str, Setting("The device's own name, kept in the state file.")] = ""
    numa_nodes: Annotated[tuple[Int32, ...], Setting("NUMA nodes that it is close to; none: any.")] = ()
    device_nodes: Annotated[tuple[str, ...], Setting("Its files below /dev.")] = ()
    env: Annotated[dict[str, str], Setting("Variables for its container; the pod's own come first.")] = field(
        default_factory=dict
    )
    mounts: Annotated[tuple[DeviceMount, ...], Setting("What else its container needs to see.")] = ()


class DeviceKind(Section, frozen=True):
    name: Annotated[str, Setting("The extended resource, such as example.com/gpu.")] = ""
    devices: Annotated[tuple[DeviceItem, ...], Setting("The devices that are interchangeable.")] = ()


class ElasticQuotaArgs(Section, frozen=True):
    enable_runtime_quota: Annotated[
        bool, Setting("A group may use what its runtime quota is; false: its max.", zero_counts=True)
    ] = True
    enable_min_quota_scale: Annotated[
        bool, Setting("Minimums shrink in proportion where the node cannot hold them all.", zero_counts=True)
    ] = True
    enable_check_parent_quota: Annotated[bool, Setting("A pod must fit the groups above its own, too.")] = (
        False
    )
    monitor_all_quotas: Annotated[
        bool, Setting("Groups that use more than they may lose pods after a delay.")
    ] = False
    revoke_pod_interval: Annotated[Duration, Setting("How often that is looked at.", zero_counts=True)] = "1s"
    delay_evict_time: Annotated[
        Duration, Setting("How long a group may use more than its share.", zero_counts=True)
    ] = "2m0s"


class AgentConfiguration(Section, frozen=True):
    """What kubelet has no word for (nodeagent.io/v1alpha1)."""

    state_directory: Annotated[
        str, Setting("Where the agent remembers: objects, checkpoints.", check=absolute_path)
    ] = "/var/lib/nodeagent"
    node_name: Annotated[str, Setting("The node's name; empty is the host's name in lower case.")] = ""
    node_labels: Annotated[
        dict[str, str], Setting("Labels of the node, for node selectors and affinity.")
    ] = field(default_factory=dict)
    evict_static_pods: Annotated[
        bool,
        Setting(
            "Static pods can be evicted unless their priority is critical, because they are the workload "
            "here. false: never, as kubelet.",
            zero_counts=True,
        ),
    ] = True
    eviction_allocatable_pids: Annotated[
        str,
        Setting(
            "Evicts at once when fewer process numbers than this (or this percentage) are left to all pods "
            "together; empty: not watched."
        ),
    ] = ""
    eviction_memory_pressure: Annotated[
        str,
        Setting(
            "Evicts when all tasks of the node wait for memory for more than this percentage of the time "
            "(PSI, full) throughout evictionPressurePeriod; empty: not watched."
        ),
    ] = ""
    eviction_io_pressure: Annotated[str, Setting("The same of disks; the pod that waits most goes.")] = ""
    eviction_pressure_period: Annotated[Duration, Setting("How long either pressure must last.")] = "30s"
    api_address: Annotated[str, Setting("Where the Kubernetes API is served with TLS.", check=ip_address)] = (
        "127.0.0.1"
    )
    api_port: Annotated[
        Int32,
        Setting(
            "Its port; 0: only on its unix socket. Clients need a certificate: nodeagent kubeconfig.",
            check=port_number("", or_zero=True),
            zero_counts=True,
        ),
    ] = 6443
    devices: Annotated[
        tuple[DeviceKind, ...], Setting("Devices that pods ask for as extended resources.")
    ] = ()
    exclusive_cpu_partition: Annotated[
        str,
        Setting(
            "Whether host processes leave exclusive CPUs, too: member (no, as kubelet), root (yes), isolated "
            "(and no load balancing). Linux 6.7, and CapabilityBoundingSet=CAP_SYS_ADMIN for the service.",
            check=option("", "member", "root", "isolated"),
        ),
    ] = "member"
    elastic_quota: Annotated[
        ElasticQuotaArgs, Setting("Koordinator's ElasticQuotaArgs, for the ElasticQuotas of this node.")
    ] = ElasticQuotaArgs()
