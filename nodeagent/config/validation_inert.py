"""What kubelet refuses about the fields that do nothing here, so that a file is as valid here as there."""

from collections.abc import Iterator

from nodeagent.api.duration import parse_nanoseconds
from nodeagent.config.gates import enabled
from nodeagent.config.inert import InertConfiguration, Taint
from nodeagent.config.schema import KubeletConfiguration
from nodeagent.config.setting import Fault, quoted

_PULL_POLICIES = ("NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify")
_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def inert_faults(kubelet: KubeletConfiguration) -> Iterator[Fault]:
    """The faults of fields together, each with the field it is about."""
    yield from _images(kubelet)
    yield from _pull_policy(kubelet)
    yield from _serving(kubelet)
    for taint in kubelet.register_with_taints:
        yield from _taint(taint)


def _images(kubelet: InertConfiguration) -> Iterator[Fault]:
    low, high = kubelet.image_gc_low_threshold_percent, kubelet.image_gc_high_threshold_percent
    if low >= high:
        yield (
            "imageGCLowThresholdPercent",
            f"imageGCLowThresholdPercent (--image-gc-low-threshold) {low} must be less than "
            f"imageGCHighThresholdPercent (--image-gc-high-threshold) {high}",
        )
    shortest, longest = kubelet.image_minimum_gc_age, kubelet.image_maximum_gc_age
    if parse_nanoseconds(shortest) < 0:
        yield "imageMinimumGCAge", f"imageMinimumGCAge {shortest} must not be negative"
    if parse_nanoseconds(longest) < 0:
        yield "imageMaximumGCAge", f"imageMaximumGCAge {longest} must not be negative"
    if 0 < parse_nanoseconds(longest) <= parse_nanoseconds(shortest):
        yield (
            "imageMaximumGCAge",
            f"imageMaximumGCAge {longest} must be greater than imageMinimumGCAge {shortest}",
        )
    pulls = kubelet.max_parallel_image_pulls
    if pulls is not None and pulls < 1:
        yield "maxParallelImagePulls", f"maxParallelImagePulls {pulls} must be a positive number"
    if pulls is not None and pulls > 1 and kubelet.serialize_image_pulls:
        yield (
            "maxParallelImagePulls",
            "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls "
            "(--serialize-image-pulls) is set to false",
        )


def _pull_policy(kubelet: KubeletConfiguration) -> Iterator[Fault]:
    name = "imagePullCredentialsVerificationPolicy"
    policy = kubelet.image_pull_credentials_verification_policy
    exempt = kubelet.preloaded_images_verification_allowlist
    if not enabled(kubelet.feature_gates, "KubeletEnsureSecretPulledImages"):
        chosen = policy != "NeverVerifyPreloadedImages"
        for field, given in ((name, chosen), ("preloadedImagesVerificationAllowlist", bool(exempt))):
            if given:
                words = "must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled"
                yield field, f"`{field}` {words}"
    elif policy not in _PULL_POLICIES:
        known = ", ".join(map(quoted, _PULL_POLICIES[:-1])) + f" or {quoted(_PULL_POLICIES[-1])}"
        yield name, f"option {quoted(policy)} specified for {name}. Valid options are {known}"
    elif exempt and policy != "NeverVerifyAllowlistedImages":
        yield (
            "preloadedImagesVerificationAllowlist",
            "can't set `preloadedImagesVerificationAllowlist` if "
            '`imagePullCredentialsVertificationPolicy` is not "NeverVerifyAllowlistedImages"',
        )


def _serving(kubelet: KubeletConfiguration) -> Iterator[Fault]:
    if kubelet.server_tls_bootstrap and not enabled(kubelet.feature_gates, "RotateKubeletServerCertificate"):
        yield (
            "serverTLSBootstrap",
            "serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate",
        )
    if kubelet.run_once:
        yield "runOnce", "runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set"
    if kubelet.enable_system_log_query and not kubelet.enable_system_log_handler:
        yield "enableSystemLogHandler", "enableSystemLogHandler is required for enableSystemLogQuery"
    if kubelet.logging.format not in ("text", "json"):
        yield (
            "logging.format",
            f"logging.format: Invalid value: {quoted(kubelet.logging.format)}: Unsupported log format",
        )
    rate = kubelet.tracing.sampling_rate_per_million if kubelet.tracing else None
    if rate is not None and rate < 0:
        yield (
            "tracing.samplingRatePerMillion",
            f"tracing.samplingRatePerMillion: Invalid value: {rate}: sampling rate must be positive",
        )


def _taint(taint: Taint) -> Iterator[Fault]:
    if not taint.key or taint.effect not in _TAINT_EFFECTS:
        yield (
            "registerWithTaints",
            f"invalid taint: {taint.key}={taint.value}:{taint.effect}; expected a key and one of the effects "
            f"{', '.join(_TAINT_EFFECTS)}",
        )
    if taint.time_added is not None:
        yield "registerWithTaints", "taint.TimeAdded is not nil"
