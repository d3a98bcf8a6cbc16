"""One configuration file: kubelet's KubeletConfiguration and our own document beside it."""

from nodeagent.config.config import Config, ConfigError, load_config, parse_config, section_to_builtins
from nodeagent.config.schema import DEFAULT_EVICTION_HARD, AgentConfiguration, KubeletConfiguration

__all__ = [
    "DEFAULT_EVICTION_HARD",
    "AgentConfiguration",
    "Config",
    "ConfigError",
    "KubeletConfiguration",
    "load_config",
    "parse_config",
    "section_to_builtins",
]
