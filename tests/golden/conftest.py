"""Golden data: inputs with the outputs that the real systems gave, one test a case."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

OWN_DATA = Path(__file__).parent / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden-dir", type=Path, default=OWN_DATA, help="read the golden data files from this directory"
    )


@cache
def _document(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("golden")
    if marker is None:
        return
    name, key = marker.args
    path: Path = metafunc.config.getoption("golden_dir") / name
    if path.exists():
        cases = _document(path).get(key, [])
        metafunc.parametrize("case", cases, ids=[f"{key}-{index}" for index in range(len(cases))])
    else:
        absent = pytest.mark.skip(reason=f"{path} is not there")
        metafunc.parametrize("case", [pytest.param({}, marks=absent)], ids=[f"{key}-absent"])


@pytest.fixture
def document(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The whole data file that the test's case comes from (its topologies, for example)."""
    name, _ = request.node.get_closest_marker("golden").args
    return _document(request.config.getoption("golden_dir") / name)
