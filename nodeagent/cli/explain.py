"""`nodeagent explain`: why a pod, the node or a quota is as it is, and why a pod was evicted, by numbers."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from nodeagent.cli.client import AgentClient
from nodeagent.cli.common import CommandError, add_output_option, print_data
from nodeagent.cli.get import add_server_options

HELP = "explain a pod, the node, an eviction or an elastic quota: what was decided, by which numbers"
EXAMPLES = """
  nodeagent explain pod/web                  its admission, its CPUs, which limit binds, restarts, evictions
  nodeagent explain pod/web -n shop -o json
  nodeagent explain node                     reservations, what is left, how far eviction is
  nodeagent explain eviction                 the latest one, and a list of those before
  nodeagent explain eviction 12              signal, threshold, rate, every candidate, time to dead
  nodeagent explain quota/red                what the group may use, who lends and borrows, its pods

The agent keeps its last 1,000 decisions, over restarts too.
"""
_KINDS = ("pod", "node", "eviction", "quota")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="pod/NAME|node|eviction|quota/NAME")
    parser.add_argument("which", nargs="?", metavar="ID", help="the eviction's number")
    parser.add_argument(
        "-n", "--namespace", default="default", help="the pod's namespace; default: %(default)s"
    )
    add_output_option(parser, "json", "yaml")
    add_server_options(parser)
    parser.add_argument(
        "--proc-root",
        type=Path,
        default=Path("/proc"),
        metavar="DIR",
        help="proc mount; default: %(default)s",
    )


def run(arguments: argparse.Namespace) -> int:
    kind, name = _target(arguments.what, arguments.which)
    client = AgentClient(arguments.server)
    now = datetime.now(UTC)
    if kind == "pod":
        from nodeagent.cli.explain_pod import pod_data, pod_text, read_pod

        pod = read_pod(client, arguments.namespace, name, arguments.cgroup_root, arguments.proc_root)
        text, data = pod_text(pod, now), pod_data(pod)
    elif kind == "node":
        from nodeagent.cli.explain_node import node_data, node_text, read_node

        node = read_node(client, arguments.cgroup_root, arguments.proc_root)
        text, data = node_text(node, now), node_data(node)
    elif kind == "quota":
        from nodeagent.cli.explain_quota import quota_text, read_quota

        quota = read_quota(client, name)
        text, data = quota_text(quota), dict(quota)
    else:
        from nodeagent.cli.explain_eviction import evictions_data, evictions_text, read_evictions

        evictions = read_evictions(client, _number(name))
        text, data = evictions_text(evictions, now), evictions_data(evictions)
    if arguments.output:
        print_data(data, arguments.output)
    else:
        print(text)
    return 0


def _target(what: str, which: str | None) -> tuple[str, str]:
    """What is to be explained: its kind, and its name or number if one was given."""
    kind, slash, name = what.partition("/")
    if slash and which is not None:
        raise CommandError(f"explain {what} {which}: expected one name")
    name = name or which or ""
    if kind not in _KINDS:
        raise CommandError(
            f"explain {what}: expected pod/NAME, node, quota/NAME, or eviction with or without a number"
        )
    if kind == "pod" and not name:
        raise CommandError("explain pod: which one? 'nodeagent get pods' lists them")
    if kind == "quota" and not name:
        raise CommandError("explain quota: which one? 'nodeagent quota tree' lists them")
    return kind, name


def _number(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise CommandError(f"explain eviction {text}: expected the number of an eviction")
    return int(text)
