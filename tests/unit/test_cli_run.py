"""`run`: what the agent raises at start becomes a sentence and exit code 1; what is a bug stays one."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from nodeagent import agent
from nodeagent.__main__ import main
from nodeagent.config import Config
from nodeagent.machine import UnsuitableMachine
from nodeagent.store import StoreError

Run = Callable[[Config], Awaitable[None]]


def raising(error: BaseException) -> Run:
    async def run(config: Config) -> None:
        raise error

    return run


def test_the_checked_configuration_reaches_the_agent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Config] = []

    async def run(config: Config) -> None:
        seen.append(config)

    monkeypatch.setattr(agent, "run", run)
    path = tmp_path / "kubelet.yaml"
    path.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nrunOnce: false\nmaxPods: 3\n"
    )
    assert main(["run", "--config", str(path)]) == 0
    assert [config.kubelet.max_pods for config in seen] == [3]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (UnsuitableMachine("too small\ntoo old"), "nodeagent: too small\nnodeagent: too old\n"),
        (
            ExceptionGroup("", [StoreError("no room"), ExceptionGroup("", [UnsuitableMachine("too small")])]),
            "nodeagent: no room\nnodeagent: too small\n",
        ),
    ],
)
def test_a_refusal_is_told_without_a_traceback(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(agent, "run", raising(error))
    assert main(["run"]) == 1
    assert capsys.readouterr().err == said


def test_a_fault_in_the_program_is_not_hidden_among_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "run", raising(ExceptionGroup("", [StoreError("no room"), KeyError("bug")])))
    with pytest.raises(ExceptionGroup):
        main(["run"])
