"""`nodeagent state`: the resource managers' files, shown, compared with the machine, or put aside."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodeagent.cli.client import DEFAULT_SERVER
from nodeagent.cli.common import CommandError, add_output_option, print_data
from nodeagent.cli.settings import add_config_option, checked_config
from nodeagent.clock import SystemClock
from nodeagent.config import Config
from nodeagent.resources.checkpoint import StateProblem
from nodeagent.resources.state_files import FILES, put_aside, state_problem

HELP = "show, verify or put aside the files that say who has which CPUs, memory and devices"
EXAMPLES = """
  nodeagent state show cpu
  nodeagent state verify --config /etc/nodeagent/config.yaml   all three, against this machine
  nodeagent state reset memory                                 a new file; running pods keep what they have

verify exits 1 when a file does not suit this machine and the configuration. reset may be used while the agent
runs: it writes a new file from what its pods hold.
"""


@dataclass(frozen=True, slots=True)
class _Verdict:
    """One file, compared."""

    manager: str
    path: Path
    is_there: bool
    problem: StateProblem | None


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("show", "verify", "reset"), metavar="show|verify|reset")
    parser.add_argument(
        "manager", nargs="?", choices=tuple(FILES), metavar="cpu|memory|device", help="default: all of them"
    )
    add_config_option(parser)
    parser.add_argument(
        "--state-directory",
        type=Path,
        metavar="DIR",
        help="where the files are; default: the configuration's",
    )
    add_output_option(parser, "json", "yaml")
    parser.add_argument(
        "--server",
        default=DEFAULT_SERVER,
        help="the agent, which knows the pods' names; default: %(default)s",
    )
    for name, default in (("proc", Path("/proc")), ("sys", Path("/sys"))):
        text = f"where {name} files are; default: %(default)s"
        parser.add_argument(f"--{name}-root", type=Path, default=default, metavar="DIR", help=text)


def run(arguments: argparse.Namespace) -> int:
    config = checked_config(arguments.config)
    directory = arguments.state_directory or Path(config.agent.state_directory)
    managers = [arguments.manager] if arguments.manager else list(FILES)
    if arguments.action == "show":
        return _show(managers, directory, arguments)
    if arguments.action == "verify":
        return _verify(managers, directory, config, arguments)
    if not arguments.manager:
        raise CommandError(f"state reset: which one? Expected one of {', '.join(FILES)}")
    return _reset(directory / FILES[arguments.manager], config, arguments.output)


def _show(managers: Sequence[str], directory: Path, arguments: argparse.Namespace) -> int:
    from nodeagent.cli.state_text import pod_names, read_state, state_text

    paths = {manager: directory / FILES[manager] for manager in managers}
    found = {manager: path for manager, path in paths.items() if _is_there(path)}
    if not found:
        missing = ", ".join(map(str, paths.values()))
        raise CommandError(f"{missing}: no such file; an agent that has run here makes it")
    states = {manager: read_state(path) for manager, path in found.items()}
    if arguments.output:
        items = [{"manager": m, "path": str(found[m]), "state": state} for m, state in states.items()]
        print_data(items[0] if arguments.manager else items, arguments.output)
        return 0
    names = pod_names(arguments.server)
    print("\n\n".join(state_text(manager, found[manager], state, names) for manager, state in states.items()))
    return 0


def _verify(managers: Sequence[str], directory: Path, config: Config, arguments: argparse.Namespace) -> int:
    verdicts = _verdicts(managers, directory, config, arguments.proc_root, arguments.sys_root)
    suits = all(verdict.problem is None for verdict in verdicts)
    if arguments.output:
        data = {"ok": suits, "configuration": config.source, "files": [_as_data(each) for each in verdicts]}
        print_data(data, arguments.output)
    else:
        print("\n".join(line for verdict in verdicts for line in _lines(verdict, config.source)))
    return 0 if suits else 1


def _verdicts(
    managers: Sequence[str], directory: Path, config: Config, proc_root: Path, sys_root: Path
) -> list[_Verdict]:
    from nodeagent.hardware.node import read_node_info
    from nodeagent.hardware.topology import TopologyError, read_topology
    from nodeagent.machine import UnsuitableMachine, manager_settings, node_amounts
    from nodeagent.resources.errors import OptionError

    try:
        topology = read_topology(sys_root)
        info = read_node_info(
            proc_root, sys_root, directory if directory.is_dir() else Path("/"), len(topology.cpus)
        )
        settings = manager_settings(config, node_amounts(config, info).resources.reservation)
        verdicts = []
        for manager in managers:
            path = directory / FILES[manager]
            problem = state_problem(manager, path, settings, topology)
            verdicts.append(_Verdict(manager, path, _is_there(path), problem))
    except (OptionError, TopologyError, UnsuitableMachine) as error:
        raise CommandError(f"{config.source}: {error}") from error
    return verdicts


def _lines(verdict: _Verdict, configuration: str) -> list[str]:
    if not verdict.is_there:
        return [f"{verdict.path}: no such file: the agent begins with nothing assigned"]
    problem = verdict.problem
    if problem is None:
        return [f"{verdict.path}: suits this machine and the configuration ({configuration})"]
    return [
        f"{verdict.path}: does not suit: {problem.cause}",
        *(f"  {difference}" for difference in problem.differences),
        f"  compared with this machine and the configuration ({configuration})",
        f"  mend: '{problem.command}'; running pods keep what they have",
    ]


def _as_data(verdict: _Verdict) -> dict[str, Any]:
    data: dict[str, Any] = {
        "manager": verdict.manager,
        "path": str(verdict.path),
        "exists": verdict.is_there,
        "ok": verdict.problem is None,
    }
    if verdict.problem is not None:
        problem = verdict.problem
        data |= {"cause": problem.cause, "differences": list(problem.differences), "mend": problem.command}
    return data


def _reset(path: Path, config: Config, output: str | None) -> int:
    if not _is_there(path):
        raise CommandError(f"{path}: no such file: there is nothing to put aside")
    aside = put_aside(path, SystemClock().now())
    if output:
        print_data({"path": str(path), "putAside": str(aside)}, output)
        return 0
    period = config.kubelet.cpu_manager_reconcile_period
    print(
        f"{path} is now {aside}.\n"
        f"A running agent writes a new file at its next reconcile (every {period}), from what its pods hold "
        "now; no pod is touched.\n"
        "An agent that is started later begins with what its running containers have."
    )
    return 0


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
