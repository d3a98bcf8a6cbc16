"""`nodeagent run`: the agent itself."""

import argparse
import asyncio

from nodeagent.cli.common import CommandError, warn
from nodeagent.cli.settings import add_config_option, checked_config
from nodeagent.config import Config

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
    _run_agent(config)
    return 0


def _run_agent(config: Config) -> None:
    # The agent's rooms are loaded only now: every other verb does without them.
    from nodeagent import agent
    from nodeagent.cgroup.errors import CgroupError
    from nodeagent.machine import UnsuitableMachine
    from nodeagent.resources.checkpoint import StateFileError
    from nodeagent.resources.errors import OptionError
    from nodeagent.runtime.connection import RuntimeFault
    from nodeagent.server.listener import ListenError
    from nodeagent.store import StoreError

    refusals = (
        CgroupError,
        ListenError,
        OptionError,
        RuntimeFault,
        StateFileError,
        StoreError,
        UnsuitableMachine,
    )
    try:
        asyncio.run(agent.run(config))
    except refusals as error:
        raise CommandError(str(error)) from error
    except BaseExceptionGroup as group:
        refused, others = group.split(refusals)
        if refused is None or others is not None:
            raise
        raise CommandError("\n".join(_sentences(refused))) from group


def _sentences(group: BaseExceptionGroup[BaseException]) -> list[str]:
    return [
        sentence
        for error in group.exceptions
        for sentence in (_sentences(error) if isinstance(error, BaseExceptionGroup) else [str(error)])
    ]
