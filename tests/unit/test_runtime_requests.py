"""Whatever a client writes, it gets one reply and the keeper goes on."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeagent.runtime.clients import Client
from nodeagent.runtime.containers import Containers
from nodeagent.runtime.logs import Timestamps
from nodeagent.runtime.loop import Loop
from nodeagent.runtime.records import RecordFile
from nodeagent.runtime.requests import Requests
from nodeagent.runtime.service import ServiceManager


class Listening(Client):
    """A client without a connection that notes its replies."""

    def __init__(self) -> None:
        self.replies: list[str] = []

    def reply(self, message: str) -> None:
        self.replies.append(message)


@pytest.fixture
def requests(tmp_path: Path) -> Iterator[Requests]:
    records = RecordFile(str(tmp_path), print)
    records.load()
    yield Requests(
        Containers(
            loop=Loop(),
            records=records,
            manager=ServiceManager({}, print),
            timestamps=Timestamps(),
            monotonic=lambda: 0.0,
            log_directory=str(tmp_path),
            cgroup_root=str(tmp_path),
            report=print,
        )
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
VERBS = st.sampled_from(["prepare", "release", "abort", "list", "signal", "forget", "watch"])
REQUESTS = st.fixed_dictionaries(
    {"do": VERBS | JSON},
    optional={name: JSON for name in ("spec", "container_id", "signum", "after")},
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(request=REQUESTS | JSON)
def test_every_request_gets_one_reply(requests: Requests, request: object) -> None:
    client = Listening()
    requests.answer(client, json.dumps(request).encode())
    (reply,) = client.replies
    decoded = json.loads(reply)
    assert decoded.keys() in ({"error", "message"}, {"done"}, {"records", "next"})


@given(line=st.binary())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_every_line_gets_one_reply(requests: Requests, line: bytes) -> None:
    client = Listening()
    requests.answer(client, line)
    assert json.loads(client.replies[0])["error"] == "BadRequest"
    assert len(client.replies) == 1
