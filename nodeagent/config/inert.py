"""The fields of KubeletConfiguration that do nothing here, for now or for good.

They are decoded and checked as kubelet does it, so that a kubelet's file is accepted as it is; one warning
names the ones that are set.
"""

from typing import Annotated

from msgspec import field

from nodeagent.api.base import Int32, Int64
from nodeagent.config.setting import (
    Duration,
    Section,
    Setting,
    at_least,
    between,
    duration_between,
    ignored,
    later,
    not_negative,
    option,
    port_number,
)


class X509Authentication(Section, frozen=True):
    client_ca_file: Annotated[str, later("CA bundle for client certificates on the secured port.")] = ""


class WebhookAuthentication(Section, frozen=True):
    enabled: Annotated[bool, later("Ask the API server about bearer tokens.", zero_counts=True)] = True
    cache_ttl: Annotated[Duration, later("How long an answer about a token is kept.")] = "2m0s"


class AnonymousAuthentication(Section, frozen=True):
    enabled: Annotated[bool, later("Let in requests that name no user.", zero_counts=True)] = False


class Authentication(Section, frozen=True):
    x509: Annotated[X509Authentication, Setting("Client certificates.")] = X509Authentication()
    webhook: Annotated[WebhookAuthentication, Setting("Bearer tokens.")] = WebhookAuthentication()
    anonymous: Annotated[AnonymousAuthentication, Setting("No credentials.")] = AnonymousAuthentication()


class WebhookAuthorization(Section, frozen=True):
    cache_authorized_ttl: Annotated[Duration, later("How long a yes is kept.")] = "5m0s"
    cache_unauthorized_ttl: Annotated[Duration, later("How long a no is kept.")] = "30s"


class Authorization(Section, frozen=True):
    mode: Annotated[str, later("Who may use the secured port.", option("", "AlwaysAllow", "Webhook"))] = (
        "Webhook"
    )
    webhook: Annotated[WebhookAuthorization, Setting("SubjectAccessReview.")] = WebhookAuthorization()


class UserNamespaces(Section, frozen=True):
    ids_per_pod: Annotated[Int64 | None, ignored("User IDs in a pod's user namespace.", zero_counts=True)] = (
        None
    )


class Taint(Section, frozen=True):
    key: Annotated[str, Setting("Name of the taint.")] = ""
    value: Annotated[str, Setting("Value of the taint.")] = ""
    effect: Annotated[str, Setting("NoSchedule, PreferNoSchedule or NoExecute.")] = ""
    time_added: Annotated[str | None, Setting("Must not be set here.")] = None


class Tracing(Section, frozen=True):
    endpoint: Annotated[str | None, ignored("OpenTelemetry collector.")] = None
    sampling_rate_per_million: Annotated[
        Int32 | None, ignored("Traces kept per million.", zero_counts=True)
    ] = None


class InertConfiguration(Section, frozen=True):
    """The part of KubeletConfiguration that changes nothing here."""

    # ---- where pods come from, and where they are served
    http_check_frequency: Annotated[Duration, ignored("Time between looks at staticPodURL.")] = "20s"
    static_pod_url: Annotated[str, ignored("Manifests from an HTTP server.")] = ""
    static_pod_url_header: Annotated[
        dict[str, tuple[str, ...]], ignored("HTTP headers for staticPodURL.")
    ] = field(default_factory=dict)
    port: Annotated[Int32, later("Port of the secured server.", port_number("--port"))] = 10250
    tls_cert_file: Annotated[str, later("Certificate of the secured server.")] = ""
    tls_private_key_file: Annotated[str, later("Its private key.")] = ""
    tls_cipher_suites: Annotated[tuple[str, ...], later("Its cipher suites.")] = ()
    tls_curve_preferences: Annotated[tuple[Int32, ...], ignored("Its key exchanges.")] = ()
    tls_min_version: Annotated[str, later("Its lowest TLS version.")] = ""
    rotate_certificates: Annotated[bool, later("Renew the client certificate.")] = False
    server_tls_bootstrap: Annotated[bool, later("Ask the cluster for a certificate.")] = False
    authentication: Annotated[Authentication, Setting("Who is asking.")] = Authentication()
    authorization: Annotated[Authorization, Setting("Who may ask.")] = Authorization()
    enable_debugging_handlers: Annotated[
        bool, later("Serve logs, exec, attach and the like.", zero_counts=True)
    ] = True
    enable_contention_profiling: Annotated[bool, ignored("Go's profiler.")] = False
    enable_profiling_handler: Annotated[bool, ignored("Go's profiler.", zero_counts=True)] = True
    enable_debug_flags_handler: Annotated[bool, ignored("Go's log flags.", zero_counts=True)] = True
    enable_system_log_handler: Annotated[bool, ignored("Serve /logs/.", zero_counts=True)] = True
    enable_system_log_query: Annotated[bool, ignored("Query /logs/.", zero_counts=True)] = False
    show_hidden_metrics_for_version: Annotated[str, ignored("Kubernetes' old metrics.")] = ""
    streaming_connection_idle_timeout: Annotated[Duration, ignored("No effect in kubelet.")] = "4h0m0s"

    # ---- the node in a cluster
    register_node: Annotated[bool, later("Register with the API server.", zero_counts=True)] = True
    register_with_taints: Annotated[tuple[Taint, ...], later("Taints of the node.")] = ()
    provider_id: Annotated[str, later("The cloud's name of the machine.")] = ""
    node_status_update_frequency: Annotated[
        Duration, later("Time between two computations of the node's status.")
    ] = "10s"
    node_status_report_frequency: Annotated[
        Duration, later("Longest time without a report of it (nodeStatusUpdateFrequency if that is set).")
    ] = "5m0s"
    node_status_max_images: Annotated[
        Int32,
        ignored(
            "Images listed in the node's status.",
            at_least(-1, "(--node-status-max-images) {value} must be -1 or greater"),
            zero_counts=True,
        ),
    ] = 50
    node_lease_duration_seconds: Annotated[
        Int32, later("Lifetime of the node's lease.", at_least(1, "must be greater than 0"))
    ] = 40
    event_record_qps: Annotated[
        Int32, later("Events per second; 0 is no limit.", not_negative("--event-qps"), zero_counts=True)
    ] = 50
    event_burst: Annotated[Int32, later("Events at once.", not_negative("--event-burst"))] = 100
    kube_api_qps: Annotated[
        Int32, later("Requests per second.", not_negative("--kube-api-qps"), zero_counts=True)
    ] = 50
    kube_api_burst: Annotated[Int32, later("Requests at once.", not_negative("--kube-api-burst"))] = 100
    content_type: Annotated[str, ignored("Encoding of requests.")] = "application/vnd.kubernetes.protobuf"
    config_map_and_secret_change_detection_strategy: Annotated[
        str, ignored("How changes are noticed.", option("", "Get", "Cache", "Watch"))
    ] = "Watch"

    # ---- the cgroup tree
    kubelet_cgroups: Annotated[str, ignored("The cgroup of the agent; systemd decides that.")] = ""
    system_cgroups: Annotated[str, ignored("A cgroup for all other processes; systemd's.")] = ""
    fail_cgroup_v1: Annotated[
        bool, ignored("A cgroup v1 host is refused whatever this says.", zero_counts=True)
    ] = True

    # ---- eviction
    kernel_memcg_notification: Annotated[bool, ignored("Kernel events always wake the loop here.")] = False

    # ---- containers
    image_service_endpoint: Annotated[str, later("Socket of the image service.")] = ""
    runtime_request_timeout: Annotated[Duration, later("Longest wait for the runtime.")] = "2m0s"
    container_log_max_workers: Annotated[
        Int32,
        ignored(
            "Log rotations at once; ours rotate as they are written.",
            at_least(1, "must be greater than or equal to 1"),
            zero_counts=True,
        ),
    ] = 1
    container_log_monitor_interval: Annotated[
        Duration,
        ignored(
            "Time between looks at log sizes; ours are known as they are written.",
            duration_between(
                "3s", "2000000h", "must be a positive time duration greater than or equal to 3s"
            ),
            zero_counts=True,
        ),
    ] = "10s"
    seccomp_default: Annotated[bool, later("RuntimeDefault for all.", zero_counts=True)] = False
    user_namespaces: Annotated[UserNamespaces | None, Setting("User namespaces.")] = None
    allowed_unsafe_sysctls: Annotated[tuple[str, ...], ignored("Sysctls pods may set.")] = ()
    resolv_conf: Annotated[str, ignored("The containers' resolver file.", zero_counts=True)] = (
        "/etc/resolv.conf"
    )
    cluster_domain: Annotated[str, ignored("DNS domain of the cluster.")] = ""
    cluster_dns: Annotated[tuple[str, ...], ignored("DNS servers of the cluster.")] = ()
    pod_cidr: Annotated[str, later("Addresses of pods on a stand-alone node.")] = ""
    hairpin_mode: Annotated[
        str,
        ignored(
            "How a pod reaches itself through a service.",
            option("--hairpin-mode", "none", "hairpin-veth", "promiscuous-bridge"),
        ),
    ] = "promiscuous-bridge"
    volume_plugin_dir: Annotated[str, ignored("Volume plugins.")] = (
        "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"
    )
    volume_stats_agg_period: Annotated[Duration, ignored("Time between volume measurements.")] = "1m0s"
    enable_controller_attach_detach: Annotated[bool, ignored("Who attaches volumes.", zero_counts=True)] = (
        True
    )
    protect_kernel_defaults: Annotated[bool, ignored("Refuse other kernel flags.")] = False
    make_iptables_util_chains: Annotated[bool, ignored("iptables hints.", zero_counts=True)] = True
    iptables_masquerade_bit: Annotated[
        Int32, ignored("No effect in kubelet.", between(0, 31, "--iptables-masquerade-bit"), zero_counts=True)
    ] = 14
    iptables_drop_bit: Annotated[
        Int32, ignored("No effect in kubelet.", between(0, 31, "--iptables-drop-bit"), zero_counts=True)
    ] = 15
    run_once: Annotated[bool, ignored("Must not be set.")] = False
    max_open_files: Annotated[
        Int64, ignored("Files the agent may open; its unit says that.", not_negative("--max-open-files"))
    ] = 1000000

    # ---- images
    registry_pull_qps: Annotated[
        Int32, later("Pulls per second.", not_negative("--registry-qps"), zero_counts=True)
    ] = 5
    registry_burst: Annotated[Int32, later("Pulls at once.", not_negative("--registry-burst"))] = 10
    serialize_image_pulls: Annotated[bool, later("One pull at a time.", zero_counts=True)] = True
    max_parallel_image_pulls: Annotated[Int32 | None, later("Most pulls at once.", zero_counts=True)] = None
    image_minimum_gc_age: Annotated[Duration, later("Unused images younger than this stay.")] = "2m0s"
    image_maximum_gc_age: Annotated[Duration, later("Unused images older than this go; 0s is off.")] = "0s"
    image_gc_high_threshold_percent: Annotated[
        Int32,
        later(
            "Disk use that starts collection.", between(0, 100, "--image-gc-high-threshold"), zero_counts=True
        ),
    ] = 85
    image_gc_low_threshold_percent: Annotated[
        Int32, later("Disk use that ends it.", between(0, 100, "--image-gc-low-threshold"), zero_counts=True)
    ] = 80
    image_pull_credentials_verification_policy: Annotated[
        str, later("Who may use an image that is here.")
    ] = "NeverVerifyPreloadedImages"
    preloaded_images_verification_allowlist: Annotated[
        tuple[str, ...], later("Images everybody may use.")
    ] = ()

    # ---- the agent itself
    tracing: Annotated[Tracing | None, ignored("OpenTelemetry.")] = None
