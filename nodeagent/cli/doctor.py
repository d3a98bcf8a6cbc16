"""`nodeagent doctor`: is this host fit to be a node? It looks and changes nothing."""

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from nodeagent.cli.common import add_output_option, print_data
from nodeagent.cli.cpus import CGROUP_ROOT
from nodeagent.cli.settings import add_config_option, checked_config
from nodeagent.clock import SystemClock

if TYPE_CHECKING:
    from nodeagent.cli.host_checks import Finding

HELP = "check whether this host can be a node, without changing anything"
EXAMPLES = """
  nodeagent doctor
  nodeagent doctor --config /etc/nodeagent/config.yaml     against this configuration
  nodeagent doctor -o json

Exits 1 when a check says FAIL: the agent would not start, or not work.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_config_option(parser)
    add_output_option(parser, "json", "yaml")
    roots = {"cgroup": CGROUP_ROOT, "proc": Path("/proc"), "sys": Path("/sys"), "run": Path("/run")}
    for name, default in roots.items():
        text = f"where {name} files are; default: %(default)s"
        parser.add_argument(f"--{name}-root", type=Path, default=default, metavar="DIR", help=text)


def run(arguments: argparse.Namespace) -> int:
    from nodeagent.cli.host_checks import Host, Level, check_host, installed_systemd

    host = Host(
        arguments.cgroup_root,
        arguments.proc_root,
        arguments.sys_root,
        arguments.run_root,
        os.geteuid(),
        SystemClock(),
        installed_systemd,
    )
    findings = list(check_host(host, checked_config(arguments.config)))
    failed = any(finding.level is Level.FAIL for finding in findings)
    if arguments.output:
        print_data(
            {"ok": not failed, "checks": [{**asdict(f), "level": f.level.value} for f in findings]},
            arguments.output,
        )
    else:
        print(_report(findings))
    return 1 if failed else 0


def _report(findings: Sequence["Finding"]) -> str:
    width = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{finding.level:<4}  {finding.name.ljust(width)}  {finding.found}  ({finding.where})")
        if finding.mend:
            lines.append(f"{'':<{8 + width}}mend: {finding.mend}")
    counts = Counter(finding.level for finding in findings)
    totals = ", ".join(f"{count} {level}" for level, count in counts.items())
    return "\n".join([*lines, "", f"{len(findings)} checks: {totals}"])
