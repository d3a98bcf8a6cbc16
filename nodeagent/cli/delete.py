"""`nodeagent delete`: remove objects of the API."""

import argparse

from nodeagent.cli.api_client import ApiClient, add_socket_option
from nodeagent.cli.api_objects import (
    DEFAULT_NAMESPACE,
    address,
    kind_named,
    kind_of,
    name_and_namespace,
    read_objects,
)
from nodeagent.cli.common import CommandError
from nodeagent.cluster.kinds import Kind

HELP = "delete objects of the node's API"
EXAMPLES = """
  nodeagent delete pod web
  nodeagent delete deployment web -n team
  nodeagent delete -f pod.yaml

A running pod gets its grace period; --grace-period says another one. Static pods go with their manifests.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", nargs="?", metavar="KIND")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("-f", "--filename", action="append", default=[], metavar="FILE")
    parser.add_argument("-n", "--namespace", default=DEFAULT_NAMESPACE, help="default: %(default)s")
    add_socket_option(parser)
    parser.add_argument("--grace-period", type=int, metavar="SECONDS", help="default: the pod's own")


def run(arguments: argparse.Namespace) -> int:
    if bool(arguments.filename) == bool(arguments.kind) or (arguments.kind and not arguments.names):
        raise CommandError("expected KIND and NAMEs, or -f FILE")
    wanted: list[tuple[Kind, str, str]] = []
    if arguments.kind:
        kind = kind_named(arguments.kind)
        wanted = [(kind, arguments.namespace, name) for name in arguments.names]
    for item in read_objects(arguments.filename):
        kind = kind_of(item)
        name, namespace = name_and_namespace(item, kind, arguments.namespace)
        wanted.append((kind, namespace, name))
    client = ApiClient(arguments.socket)
    refused: list[str] = []
    seconds = arguments.grace_period
    query = {} if seconds is None else {"gracePeriodSeconds": str(seconds)}
    for kind, namespace, name in wanted:
        try:
            client.call("DELETE", *address(kind, namespace, name), query=query)
            print(f'{kind.kind.lower()}{"." + kind.group if kind.group else ""} "{name}" deleted')
        except CommandError as error:
            refused.append(str(error))
    if refused:
        raise CommandError("\n".join(refused))
    return 0
