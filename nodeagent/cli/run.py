"""`nodeagent run`: the agent itself."""

import argparse
import asyncio

from nodeagent.cli.common import warn
from nodeagent.cli.settings import add_config_option, checked_config

HELP = "run the agent in the foreground, as its systemd service does"
EXAMPLES = """
  nodeagent run --config /etc/nodeagent/config.yaml
  nodeagent run                                       with built-in defaults

Needs root and a cgroup v2 host; `nodeagent doctor` tells whether this is one.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_config_option(parser)


def run(arguments: argparse.Namespace) -> int:
    config = checked_config(arguments.config)
    warn(config.warnings)
    # The agent's rooms are loaded only now: every other verb does without them.
    from nodeagent import agent

    asyncio.run(agent.run(config))
    return 0
