"""`nodeagent apply`: make objects of the API be as files say."""

import argparse

from nodeagent.cli.api_client import ApiClient, NotFound, add_socket_option
from nodeagent.cli.api_objects import (
    DEFAULT_NAMESPACE,
    Json,
    address,
    kind_of,
    name_and_namespace,
    read_objects,
)
from nodeagent.cli.common import CommandError

HELP = "create or change objects of the node's API, as files say"
EXAMPLES = """
  nodeagent apply -f pod.yaml
  nodeagent apply -f directory/ -n team
  kubectl create deployment web --image=x --dry-run=client -o yaml | nodeagent apply -f -

Fields that a file leaves out stay as they are. Needs root; others use kubectl with `nodeagent kubeconfig`.
"""
MERGE_PATCH = "application/merge-patch+json"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-f", "--filename", action="append", required=True, metavar="FILE", help="a file, a directory, or -"
    )
    parser.add_argument("-n", "--namespace", default=DEFAULT_NAMESPACE, help="default: %(default)s")
    add_socket_option(parser)


def run(arguments: argparse.Namespace) -> int:
    client = ApiClient(arguments.socket)
    refused: list[str] = []
    for item in read_objects(arguments.filename):
        try:
            print(_apply(client, item, arguments.namespace))
        except CommandError as error:
            refused.append(str(error))
    if refused:
        raise CommandError("\n".join(refused))
    return 0


def _apply(client: ApiClient, item: Json, given: str) -> str:
    kind = kind_of(item)
    name, namespace = name_and_namespace(item, kind, given)
    shown = f"{kind.kind.lower()}{'.' + kind.group if kind.group else ''}/{name}"
    try:
        before = client.call("GET", *address(kind, namespace, name)) if name else {}
    except NotFound:
        before = {}
    if not before:
        made = client.call("POST", *address(kind, namespace), body=item)
        return f"{shown.rpartition('/')[0]}/{made['metadata']['name']} created"
    after = client.call("PATCH", *address(kind, namespace, name), body=item, content_type=MERGE_PATCH)
    versions = [each["metadata"].get("resourceVersion") for each in (before, after)]
    return f"{shown} {'unchanged' if versions[0] == versions[1] else 'configured'}"
