"""What the configuration says about eviction."""

from nodeagent.api.duration import parse_duration
from nodeagent.config import Config, KubeletConfiguration
from nodeagent.eviction.manager import Policy
from nodeagent.eviction.opt_in import opt_in_thresholds
from nodeagent.eviction.thresholds import Threshold, parse_thresholds


def configured_thresholds(kubelet: KubeletConfiguration) -> tuple[Threshold, ...]:
    """Return kubelet's thresholds; raises ThresholdError."""
    return parse_thresholds(
        enforce_node_allocatable=kubelet.enforce_node_allocatable,
        eviction_hard=kubelet.eviction_hard,
        eviction_soft=kubelet.eviction_soft,
        eviction_soft_grace_period=kubelet.eviction_soft_grace_period,
        eviction_minimum_reclaim=kubelet.eviction_minimum_reclaim,
    )


def eviction_policy(config: Config) -> Policy:
    """Return what the loop goes by; raises ThresholdError."""
    kubelet = config.kubelet
    return Policy(
        thresholds=(*configured_thresholds(kubelet), *opt_in_thresholds(config.agent)),
        pressure_transition_period_seconds=parse_duration(kubelet.eviction_pressure_transition_period),
        max_pod_grace_period_seconds=kubelet.eviction_max_pod_grace_period,
        local_storage_isolation=kubelet.local_storage_capacity_isolation,
        evict_static_pods=config.agent.evict_static_pods,
    )
