"""`nodeagent describe`: one pod or the node in full, with its events."""

import argparse
from datetime import UTC, datetime

from nodeagent.api.node import Node
from nodeagent.cli.client import AgentClient
from nodeagent.cli.common import CommandError, add_output_option, print_data
from nodeagent.cli.cpus import CpuLookup
from nodeagent.cli.get import add_server_options
from nodeagent.cli.objects import Fetched, events_about, fetch_events, fetch_nodes, fetch_pod, fetch_pods

HELP = "show everything about one pod or the node, with its events"
EXAMPLES = """
  nodeagent describe pod web
  nodeagent describe pod web -n shop
  nodeagent describe node
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=("pod", "node"), metavar="pod|node")
    parser.add_argument("name", nargs="?", help="the pod's name; the node may stay unnamed")
    parser.add_argument(
        "-n", "--namespace", default="default", help="the pod's namespace; default: %(default)s"
    )
    add_output_option(parser, "json", "yaml")
    add_server_options(parser)


def run(arguments: argparse.Namespace) -> int:
    client = AgentClient(arguments.server)
    text = _pod(client, arguments) if arguments.kind == "pod" else _node(client, arguments)
    if text:
        print(text)
    return 0


def _pod(client: AgentClient, arguments: argparse.Namespace) -> str:
    from nodeagent.cli.describe_pod import describe_pod

    if not arguments.name:
        raise CommandError("describe pod: which one? 'nodeagent get pods' lists them")
    pod = fetch_pod(client, arguments.namespace, arguments.name)
    if arguments.output:
        print_data(pod.raw, arguments.output)
        return ""
    events = events_about(fetch_events(client), "Pod", arguments.namespace, pod.value.metadata.name)
    cpus = CpuLookup(arguments.cgroup_root).cpus(pod.value)
    return describe_pod(pod.value, events, cpus, datetime.now(UTC))


def _node(client: AgentClient, arguments: argparse.Namespace) -> str:
    from nodeagent.cli.describe_node import describe_node

    node = _chosen_node(fetch_nodes(client), arguments.name)
    if arguments.output:
        print_data(node.raw, arguments.output)
        return ""
    events = events_about(fetch_events(client), "Node", "", node.value.metadata.name)
    pods = [pod.value for pod in fetch_pods(client)]
    return describe_node(node.value, pods, events, datetime.now(UTC))


def _chosen_node(nodes: list[Fetched[Node]], name: str | None) -> Fetched[Node]:
    found = [node for node in nodes if name in (None, node.value.metadata.name)]
    if not found:
        names = ", ".join(node.value.metadata.name for node in nodes)
        raise CommandError(f"nodes {name} not found; this node is {names or 'not registered yet'}")
    return found[0]
