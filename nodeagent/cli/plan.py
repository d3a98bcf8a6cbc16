"""`nodeagent plan`: what would happen to these pods, on this machine or another, and why."""

import argparse
import sys

from nodeagent.cli.common import add_output_option, print_data, warn
from nodeagent.cli.settings import add_config_option, checked_config

LIVE = "live"
HELP = "show what would happen to pods, on this machine or another, without touching anything"
EXAMPLES = """
  nodeagent plan pod.yaml                                      on this machine, as it is configured by default
  nodeagent plan *.yaml --config /etc/nodeagent/config.yaml    with a configuration
  nodeagent plan pod.yaml --topology 2x8x2 --memory 64Gi       2 sockets, 8 cores each, 2 threads each
  lscpu -J > other.json; nodeagent plan pod.yaml --topology other.json
  nodeagent plan pod.yaml -o json                              every decision, file and value

Pods are admitted in the order given, to a node that is empty, under the LimitRanges, quotas and priority
classes among the manifests. Needs neither root nor cgroups.
Exits 1 when anything in the input is refused; what is good is planned all the same.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "manifests", nargs="+", metavar="MANIFEST", help="file, directory, or - for standard input"
    )
    add_config_option(parser)
    parser.add_argument(
        "--topology",
        default=LIVE,
        metavar="MACHINE",
        help="live, SOCKETSxCORESxTHREADS (2x4x2), an lscpu file, or a copy of /sys; default: live",
    )
    parser.add_argument(
        "--memory", metavar="QUANTITY", help="memory of the machine; default: its own, or 16Gi"
    )
    add_output_option(parser, "json", "yaml")


def run(arguments: argparse.Namespace) -> int:
    from nodeagent.cli.plan_machine import load_machine, planned_node
    from nodeagent.cli.plan_manifests import SourcedPod, gathered, read_manifests
    from nodeagent.cli.plan_output import plan_data, plan_text
    from nodeagent.cli.planning import make_plan
    from nodeagent.clock import SystemClock

    config = checked_config(arguments.config)
    warn(config.warnings)
    topology, info = load_machine(arguments.topology, arguments.memory)
    found = list(read_manifests(arguments.manifests, config.agent.node_name))
    pods = [item for item in found if isinstance(item, SourcedPod)]
    policies, refused = gathered(found)
    node = planned_node(config, topology, info)
    plan = make_plan(pods, node, policies, SystemClock())
    if arguments.output:
        print_data(plan_data(plan, node, refused), arguments.output)
    else:
        print(plan_text(plan, node))
        for item in refused:
            print(f"nodeagent: {item.sentence}".replace("\n", "\nnodeagent: "), file=sys.stderr)
    return 0 if not refused and all(planned.admitted for planned in plan.pods) else 1
