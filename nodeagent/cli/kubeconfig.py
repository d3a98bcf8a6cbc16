"""`nodeagent kubeconfig`: a file with which kubectl talks to this node."""

import argparse
import base64
import os
from datetime import UTC, datetime
from pathlib import Path

import yaml

from nodeagent.cli.common import CommandError
from nodeagent.cli.settings import add_config_option, checked_config

HELP = "write a kubeconfig for this node's API, with a client certificate of its own"
EXAMPLES = """
  nodeagent kubeconfig ~/.kube/config
  nodeagent kubeconfig --role read-only viewer.conf
  nodeagent kubeconfig | KUBECONFIG=/dev/stdin kubectl get pods

Needs root: the certificate is signed by the node's own authority. It is good for a year; the file is for its
owner only. read-only sees everything but Secrets, and changes nothing.
"""
GROUPS = {"admin": "nodeagent:admins", "read-only": "nodeagent:readers"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="default: standard output")
    parser.add_argument("--role", choices=tuple(GROUPS), default="admin", help="default: %(default)s")
    parser.add_argument("--user", default="", metavar="NAME", help="default: nodeagent-ROLE")
    parser.add_argument("--force", action="store_true", help="replace FILE if it is there")
    add_config_option(parser)


def run(arguments: argparse.Namespace) -> int:
    from nodeagent.server.access import authority

    own = checked_config(arguments.config).agent
    if not own.api_port:
        raise CommandError("apiPort is 0 in the configuration: the API is served on its socket only")
    user = arguments.user or f"nodeagent-{arguments.role}"
    directory = Path(own.state_directory) / "pki"
    if not (directory / authority.CA_KEY).exists():
        raise CommandError(f"{directory} holds no authority yet: start the agent once, as root")
    address = "127.0.0.1" if own.api_address in ("0.0.0.0", "::") else own.api_address
    host = f"[{address}]" if ":" in address else address
    ca, certificate, key = authority.client(directory, user, GROUPS[arguments.role], datetime.now(UTC))
    text = _kubeconfig(f"https://{host}:{own.api_port}", user, ca, certificate, key)
    if arguments.file is None:
        print(text, end="")
    else:
        _write(arguments.file, text, force=arguments.force)
        print(f"{arguments.file} is written: kubectl --kubeconfig {arguments.file} get pods -A")
    return 0


def _kubeconfig(server: str, user: str, ca: bytes, certificate: bytes, key: bytes) -> str:
    def data(pem: bytes) -> str:
        return base64.b64encode(pem).decode()

    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "node", "cluster": {"server": server, "certificate-authority-data": data(ca)}}],
        "users": [
            {
                "name": user,
                "user": {"client-certificate-data": data(certificate), "client-key-data": data(key)},
            }
        ],
        "contexts": [{"name": "node", "context": {"cluster": "node", "user": user}}],
        "current-context": "node",
    }
    return yaml.safe_dump(document, sort_keys=False)


def _write(path: Path, text: str, *, force: bool) -> None:
    if path.exists() and not force:
        raise CommandError(f"{path} is there already: --force replaces it")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(path)
