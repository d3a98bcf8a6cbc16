"""`nodeagent logs`: what a pod's container has written."""

import argparse
import re
import sys

from nodeagent.cli.api_client import ApiClient, add_socket_option
from nodeagent.cli.api_objects import DEFAULT_NAMESPACE, address
from nodeagent.cli.common import CommandError
from nodeagent.cluster.kinds import POD

HELP = "print the log of a pod's container"
EXAMPLES = """
  nodeagent logs web-node
  nodeagent logs web-node -c main -f --tail 20
  nodeagent logs web-node --previous --timestamps
  nodeagent logs web-node --since 10m
"""
_UNITS = {"s": 1, "m": 60, "h": 3600}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pod", metavar="POD")
    parser.add_argument("-n", "--namespace", default=DEFAULT_NAMESPACE, help="default: %(default)s")
    add_socket_option(parser)
    parser.add_argument("-c", "--container", default="", help="needed where the pod has several")
    parser.add_argument("-f", "--follow", action="store_true", help="go on as it grows")
    parser.add_argument("-p", "--previous", action="store_true", help="of the attempt before the last one")
    parser.add_argument("--timestamps", action="store_true", help="begin each line with its time")
    parser.add_argument("--tail", type=int, default=-1, metavar="LINES", help="only the last lines")
    parser.add_argument("--since", default="", metavar="DURATION", help="only lines younger than 10s, 5m, 2h")


def run(arguments: argparse.Namespace) -> int:
    query = {name: "true" for name in ("follow", "previous", "timestamps") if getattr(arguments, name)}
    query |= {"container": arguments.container} if arguments.container else {}
    query |= {"tailLines": str(arguments.tail)} if arguments.tail >= 0 else {}
    query |= {"sinceSeconds": str(_seconds(arguments.since))} if arguments.since else {}
    where = (*address(POD, arguments.namespace, arguments.pod), "log")
    for block in ApiClient(arguments.socket).stream(*where, query=query):
        sys.stdout.buffer.write(block)
        sys.stdout.buffer.flush()
    return 0


def _seconds(text: str) -> int:
    parts = re.fullmatch(r"(\d{1,9})([smh])", text)
    if parts is None or int(parts[1]) == 0:
        raise CommandError(f"--since {text}: expected a number with s, m or h, such as 10m")
    return int(parts[1]) * _UNITS[parts[2]]
