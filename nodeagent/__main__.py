"""The command line: one verb a module, and the one place where errors become exit codes."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from nodeagent import __version__
from nodeagent.cli.common import CommandError

VERBS = (
    "run",
    "plan",
    "get",
    "describe",
    "apply",
    "delete",
    "logs",
    "explain",
    "tree",
    "top",
    "quota",
    "kubeconfig",
    "state",
    "doctor",
    "config",
)
REFUSED, INTERRUPTED, PIPE_CLOSED = 1, 130, 141

_EPILOG = """
examples:
  nodeagent doctor                          is this host fit to be a node?
  nodeagent plan pod.yaml --topology 2x4x2  what would happen to these pods on such a machine?
  nodeagent run --config config.yaml        be a node
  nodeagent get pods -o wide
  nodeagent apply -f pod.yaml               through the node's own API; also delete, logs
  nodeagent describe pod web
  nodeagent explain pod/web                 why is it as it is? also: node, eviction
  nodeagent tree                            cgroups, what they use, and which limit binds
  nodeagent top                             who uses most, and who is held back
  nodeagent kubeconfig ~/.kube/config       let kubectl talk to this node
  nodeagent quota tree                      teams that share the node: lent and borrowed
  nodeagent state verify                    do the state files suit this machine?

exit codes: 0 done, 1 refused or not found (the reason is on standard error), 2 wrong usage
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        # The agent itself must not carry the other verbs in its memory.
        verbs = words[:1] if words and words[0] in VERBS else VERBS
        arguments = build_parser(verbs).parse_args(words)
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except SystemExit as stop:
        # argparse: 0 after --help, 2 after an explanation of what is wrong.
        return stop.code if isinstance(stop.code, int) else 2
    except CommandError as error:
        for line in str(error).splitlines():
            print(f"nodeagent: {line}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has left; the interpreter must not complain about that when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"nodeagent: {where}{error.strerror or error}", file=sys.stderr)
        return REFUSED


def build_parser(names: Sequence[str] = VERBS) -> argparse.ArgumentParser:
    """Return the parser of these verbs."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="nodeagent",
        description="A mini-kubelet on cgroup v2: decides what runs on a node, and writes it to the kernel.",
        epilog=_EPILOG,
        formatter_class=formatter,
    )
    parser.add_argument("--version", action="version", version=f"nodeagent {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for name in names:
        module = importlib.import_module(f"nodeagent.cli.{name}")
        verb = verbs.add_parser(
            name,
            help=module.HELP,
            description=module.HELP[0].upper() + module.HELP[1:] + ".",
            epilog=f"examples:{module.EXAMPLES}",
            formatter_class=formatter,
        )
        module.configure(verb)
        verb.set_defaults(run=module.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
