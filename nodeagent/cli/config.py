"""`nodeagent config`: the effective configuration, and what each field means."""

import argparse
import difflib
from collections.abc import Iterator
from typing import Any

from nodeagent.cli.common import CommandError, add_output_option, print_data, warn
from nodeagent.cli.settings import add_config_option, checked_config
from nodeagent.config import AgentConfiguration, KubeletConfiguration, section_to_builtins
from nodeagent.config.setting import Row, Section, rows

HELP = "print the effective configuration, or explain its fields"
EXAMPLES = """
  nodeagent config --config /etc/nodeagent/config.yaml         the file with every default filled in
  nodeagent config --config /etc/nodeagent/config.yaml -o json
  nodeagent config --explain evictionHard                      what a field does here
  nodeagent config --docs                                      the whole table, as Markdown

Exits 1, with the same words as `nodeagent run`, for a configuration that must not run.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_config_option(parser)
    add_output_option(parser, "yaml", "json", default="yaml")
    parser.add_argument("--explain", metavar="FIELD", help="explain a field, or all fields of a section")
    parser.add_argument("--docs", action="store_true", help="print the table of all fields as Markdown")


def run(arguments: argparse.Namespace) -> int:
    if arguments.explain:
        print("\n\n".join(_explanation(row) for row in _find(arguments.explain)))
        return 0
    if arguments.docs:
        print("\n".join(_markdown()))
        return 0
    config = checked_config(arguments.config)
    warn(config.warnings)
    documents = config.to_documents()
    if arguments.output == "json":
        print_data({"apiVersion": "v1", "kind": "List", "items": documents}, "json")
    else:
        print_data(documents, "yaml")
    return 0


def _find(name: str) -> list[Row]:
    table = [*rows(KubeletConfiguration), *rows(AgentConfiguration)]
    found = [row for row in table if row.name == name or row.name.startswith(f"{name}.")]
    if not found:
        near = difflib.get_close_matches(name.lower(), {row.name.lower(): row for row in table}, n=3)
        names = [row.name for row in table if row.name.lower() in near]
        suggestion = (
            f"did you mean {' or '.join(names)}?" if names else "'nodeagent config --docs' lists all fields"
        )
        raise CommandError(f"there is no field {name!r}; {suggestion}")
    return found


def _explanation(row: Row) -> str:
    return (
        f"{row.name} ({row.type_name}), {row.setting.effect}\n  {row.setting.doc}\n  default: {_default(row)}"
    )


def _markdown() -> Iterator[str]:
    documents: tuple[tuple[str, type[Section]], ...] = (
        ("KubeletConfiguration (kubelet.config.k8s.io/v1beta1)", KubeletConfiguration),
        ("AgentConfiguration (nodeagent.io/v1alpha1)", AgentConfiguration),
    )
    for title, section in documents:
        yield f"## {title}\n\n| field | type | default | here | meaning |\n|---|---|---|---|---|"
        for row in sorted(rows(section), key=lambda row: row.name):
            cells = (row.name, row.type_name, _default(row), row.setting.effect, row.setting.doc)
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        yield ""


def _default(row: Row) -> str:
    value: Any = row.default
    if isinstance(value, dict) and value:
        return ", ".join(f"{key}: {item}" for key, item in sorted(value.items()))
    if isinstance(value, tuple) and value:
        return ", ".join(map(str, value))
    if isinstance(value, Section):
        return str(section_to_builtins(value))
    if isinstance(value, bool):
        return str(value).lower()
    return "not set" if value in (None, "", (), {}) else str(value)
