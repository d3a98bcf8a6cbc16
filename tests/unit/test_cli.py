"""The command line as a whole: help, exit codes, and no traceback whatever happens."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import nodeagent.__main__ as command_line
from nodeagent.__main__ import VERBS, main
from nodeagent.cli import config as config_verb

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "kubelet.yaml"
    path.write_text(HEADER + text)
    return str(path)


def test_help_names_every_verb_and_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert "examples:" in text and "exit codes: 0 done, 1 refused" in text
    for verb in VERBS:
        assert f"\n    {verb}" in text


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"usage: nodeagent {verb}" in text
    assert f"examples:\n  nodeagent {verb}" in text


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["fly"],
        ["get"],
        ["get", "secrets"],
        ["get", "pods", "-o", "xml"],
        ["config", "--speed"],
        ["tree", "--interval", "x"],
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what_is_right(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    assert "usage: nodeagent" in capsys.readouterr().err


def test_the_effective_configuration_is_printed_with_warnings_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, "maxPods: 20\nclusterDomain: cluster.local\n")
    assert main(["config", "--config", path]) == 0
    said = capsys.readouterr()
    kubelet, agent = yaml.safe_load_all(said.out)
    assert (kubelet["kind"], kubelet["maxPods"]) == ("KubeletConfiguration", 20)
    assert agent["stateDirectory"] == "/var/lib/nodeagent"
    assert said.err == (
        "nodeagent: warning: these fields change nothing here: clusterDomain: accepted without effect\n"
    )
    assert main(["config", "--config", path, "-o", "json"]) == 0
    assert [item["kind"] for item in yaml.safe_load(capsys.readouterr().out)["items"]] == [
        "KubeletConfiguration",
        "AgentConfiguration",
    ]


def test_the_json_of_config_is_a_configuration_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "--config", write(tmp_path, "maxPods: 20"), "-o", "json"]) == 0
    (tmp_path / "again.json").write_text(capsys.readouterr().out)
    assert main(["config", "--config", str(tmp_path / "again.json")]) == 0
    assert "maxPods: 20" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("maxPods: -1", "invalid configuration: maxPods (--max-pods) -1 must not be a negative number"),
        (
            "evictionSoft: {memory.available: 1Gi}",
            "invalid configuration: evictionSoftGracePeriod: grace period must be specified for the soft "
            "eviction threshold memory.available",
        ),
        (
            "evictionHard: {memory.free: 1Gi}",
            "evictionHard[memory.free]: unsupported eviction signal memory.free",
        ),
        (
            "topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: {prefer-closest: 'true'}",
            'topologyManagerPolicyOptions: unknown Topology Manager Policy option: "prefer-closest"',
        ),
        (
            "cpuManagerPolicyOptions: {full-pcpus-only: 'true'}",
            "None policy: received unsupported options=map[full-pcpus-only:true]",
        ),
        (
            "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n"
            "cpuManagerPolicyOptions: {align-by-socket: 'true'}",
            'CPU Manager Policy Alpha-level Options not enabled, but option "align-by-socket" provided',
        ),
    ],
)
@pytest.mark.parametrize("verb", ["config", "run"])
def test_config_and_run_refuse_the_same_in_the_same_words(
    verb: str, text: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, text)
    assert main([verb, "--config", path]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"nodeagent: {path}: ")
    assert sentence in said.err


def test_every_fault_has_its_own_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--config", write(tmp_path, "maxPods: -1\npodsPerCore: -1")]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and all(line.startswith("nodeagent: ") for line in lines)


def test_fields_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--explain", "readOnlyPort"]) == 0
    text = capsys.readouterr().out
    assert "readOnlyPort (integer), implemented" in text and "default: 10255" in text
    assert main(["config", "--explain", "authentication.webhook"]) == 0
    assert "authentication.webhook.cacheTTL (duration), not yet implemented" in capsys.readouterr().out
    assert main(["config", "--explain", "maxpod"]) == 1
    assert "did you mean maxPods" in capsys.readouterr().err
    assert main(["config", "--docs"]) == 0
    assert "| maxPods | integer | 110 | implemented | Most pods on this node. |" in capsys.readouterr().out


def test_a_missing_file_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--config", "/nowhere/kubelet.yaml"]) == 1
    assert (
        capsys.readouterr().err
        == "nodeagent: /nowhere/kubelet.yaml: cannot be read: No such file or directory\n"
    )


def test_an_interrupted_command_is_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(config_verb, "run", interrupted)
    assert main(["config"]) == command_line.INTERRUPTED
    assert capsys.readouterr().err == ""


def test_a_reader_that_leaves_early_is_no_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "nodeagent", "config", "--docs"]
    done = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, check=False)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (command_line.PIPE_CLOSED, b"")


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("nodeagent 0.")
