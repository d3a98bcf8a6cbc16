"""What the verbs share: how a command fails, and how data comes out."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any


class CommandError(Exception):
    """The command cannot do what was asked; the text says what was wrong and what to do."""


def add_output_option(parser: argparse.ArgumentParser, *formats: str, default: str | None = None) -> None:
    """Add `-o`; None stands for text made for people."""
    text = f"output format; default: {default or 'text'}"
    parser.add_argument("-o", "--output", choices=formats, default=default, help=text)


def print_data(data: Any, output: str) -> None:
    """Write data as JSON or YAML to standard output; several YAML documents for a sequence."""
    if output == "json":
        print(json.dumps(data, indent=2))
        return
    import yaml

    documents = data if isinstance(data, list) else [data]
    yaml.dump_all(documents, sys.stdout, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)


def warn(sentences: Sequence[str]) -> None:
    """Tell the operator, beside the output."""
    for sentence in sentences:
        print(f"nodeagent: warning: {sentence}", file=sys.stderr)
