"""The shell scripts and the virtual machine's runner pass their checkers too."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHELLS = (b"#!/bin/bash\n", b"#!/bin/sh\n")


def _shell_scripts() -> list[Path]:
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    files = (ROOT / name for name in names if name)
    return [path for path in files if path.is_file() and path.read_bytes()[:32].startswith(SHELLS)]


def _check(*command: str) -> None:
    environment = os.environ | {"MYPYPATH": "vagrant"}
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr


def test_shellcheck_finds_nothing() -> None:
    assert shutil.which("shellcheck"), "shellcheck is missing: apt-get install shellcheck"
    scripts = _shell_scripts()
    assert ROOT / "tests" / "run" in scripts
    _check("shellcheck", *map(str, scripts))


def test_the_runner_is_typed_and_clean() -> None:
    tools = Path(sys.executable).parent
    _check(str(tools / "mypy"), "--strict", "vagrant/vm", "tests/integration/conftest.py")
    _check(str(tools / "ruff"), "check", "vagrant/vm")
    _check(str(tools / "ruff"), "format", "--check", "vagrant/vm")
