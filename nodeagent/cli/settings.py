"""The configuration as `run` would take it: the file, and what the rooms above it refuse at start."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from nodeagent.cli.common import CommandError
from nodeagent.config import Config, ConfigError, load_config


def add_config_option(parser: argparse.ArgumentParser) -> None:
    """Add `--config`."""
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="KubeletConfiguration, and AgentConfiguration as a second document; default: built-in defaults",
    )


def checked_config(path: Path | None) -> Config:
    """Load a configuration and refuse what the agent would refuse at start. Raises CommandError."""
    try:
        config = load_config(path)
    except ConfigError as error:
        raise CommandError(str(error)) from error
    faults = list(start_faults(config))
    if faults:
        raise CommandError("\n".join(f"{config.source}: invalid configuration: {fault}" for fault in faults))
    return config


def start_faults(config: Config) -> Iterator[str]:
    """What thresholds and policy options make impossible, in kubelet's words; no machine is looked at."""
    from nodeagent.eviction.configured import configured_thresholds
    from nodeagent.eviction.opt_in import opt_in_thresholds
    from nodeagent.eviction.thresholds import ThresholdError
    from nodeagent.resources.cpu_options import parse_cpu_options
    from nodeagent.resources.errors import OptionError
    from nodeagent.resources.topology_options import parse_topology_settings

    kubelet = config.kubelet
    try:
        configured_thresholds(kubelet)
        opt_in_thresholds(config.agent)
    except ThresholdError as error:
        yield str(error)
    options = kubelet.cpu_manager_policy_options
    if kubelet.cpu_manager_policy == "static":
        alpha, beta = config.gate("CPUManagerPolicyAlphaOptions"), config.gate("CPUManagerPolicyBetaOptions")
        try:
            parse_cpu_options(options, alpha=alpha, beta=beta)
        except OptionError as error:
            yield f"cpuManagerPolicyOptions: new static policy error: {error}"
    elif options:
        shown = " ".join(f"{name}:{value}" for name, value in sorted(options.items()))
        yield (
            "cpuManagerPolicyOptions: new none policy error: None policy: "
            f"received unsupported options=map[{shown}]"
        )
    policy, scope = kubelet.topology_manager_policy, kubelet.topology_manager_scope
    try:
        parse_topology_settings(policy, scope, kubelet.topology_manager_policy_options, ())
    except OptionError as error:
        yield f"topologyManagerPolicyOptions: {error}"
