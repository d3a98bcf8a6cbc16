"""The manifest directory: one broken file costs only itself, the same manifest is the same pod."""

import asyncio
import os
from pathlib import Path

import pytest

from nodeagent.sources.manifests import LARGEST_FILE_BYTES, ManifestReader, Manifests
from nodeagent.sources.watch import changes

POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  containers: [{name: c, image: x, command: [sleep, "1"]}]
"""


def manifest(name: str) -> str:
    return POD.replace("NAME", name)


def read(directory: Path) -> Manifests:
    return ManifestReader(directory, "n1").read()


def test_pods_get_what_kubelet_gives_static_pods(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(manifest("web"))
    (pod,) = read(tmp_path).pods.values()
    assert (pod.metadata.name, pod.metadata.namespace, pod.spec.node_name) == ("web-n1", "default", "n1")
    assert pod.metadata.annotations["kubernetes.io/config.source"] == "file"
    assert len(pod.metadata.uid) == 32
    assert int(pod.metadata.uid, 16) >= 0


@pytest.mark.parametrize(
    ("spec", "priority"),
    [
        ("priorityClassName: system-node-critical", 2_000_001_000),
        ("priorityClassName: system-cluster-critical", 2_000_000_000),
        ("priorityClassName: system-node-critical\n  priority: 7", 7),
        ("priorityClassName: shop", None),
        ("hostNetwork: false", None),
    ],
)
def test_system_priority_classes_are_known_without_an_api_server(
    spec: str, priority: int | None, tmp_path: Path
) -> None:
    (tmp_path / "web.yaml").write_text(f"{manifest('web')}  {spec}\n")
    (pod,) = read(tmp_path).pods.values()
    assert pod.spec.priority == priority


async def test_no_directory_holds_no_pods_and_is_not_watched() -> None:
    assert ManifestReader(None, "n1").read().pods == {}
    assert [None async for _ in changes(None, 3600, asyncio.Event())] == [None]


def test_same_content_is_the_same_pod_and_other_content_another(tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(manifest("web"))
    before = set(read(tmp_path).pods)
    file.write_text("# a comment\n" + manifest("web"))
    assert set(read(tmp_path).pods) == before
    file.write_text(manifest("web").replace('"1"', '"2"'))
    assert set(read(tmp_path).pods).isdisjoint(before)


def test_broken_file_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(manifest("good"))
    broken = tmp_path / "broken.yaml"
    broken.write_text(manifest("x").replace("containers", "continers"))
    found = read(tmp_path)
    assert [pod.metadata.name for pod in found.pods.values()] == ["good-n1"]
    (error,) = found.errors
    assert error.file == str(broken)
    assert "spec.continers" in error.text
    assert "containers" in error.text


def test_running_pods_of_a_broken_file_are_kept(tmp_path: Path) -> None:
    broken, gone = tmp_path / "broken.yaml", tmp_path / "gone.yaml"
    broken.write_text("a: [")
    found = read(tmp_path)
    assert found.keeps(str(broken))
    assert not found.keeps(str(gone))


def test_second_pod_of_the_same_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(manifest("web"))
    (tmp_path / "b.yaml").write_text(manifest("web").replace('"1"', '"2"'))
    found = read(tmp_path)
    assert list(found.files.values()) == [str(tmp_path / "a.yaml")]
    assert "stands in" in found.errors[0].text


def test_only_manifests_are_read(tmp_path: Path) -> None:
    for name in (".hidden.yaml", "notes.txt", "web.yaml~", "web.yaml.swp"):
        (tmp_path / name).write_text(manifest("web"))
    (tmp_path / "directory.yaml").mkdir()
    os.mkfifo(tmp_path / "fifo.yaml")
    found = read(tmp_path)
    assert found.pods == {}
    assert sorted(Path(error.file).name for error in found.errors) == ["directory.yaml", "fifo.yaml"]


def test_over_large_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_text("#" * (LARGEST_FILE_BYTES + 1))
    assert "larger than 1048576 bytes" in read(tmp_path).errors[0].text


def test_directory_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    found = read(tmp_path / "absent")
    assert found.pods == {}
    assert found.errors == ()


@pytest.mark.parametrize("uid", ["../../etc", "a/b", "x" * 300])
def test_uid_that_could_leave_its_place_is_refused(tmp_path: Path, uid: str) -> None:
    (tmp_path / "web.yaml").write_text(manifest("web").replace("{name: web}", f"{{name: web, uid: {uid!r}}}"))
    found = read(tmp_path)
    assert found.pods == {}
    assert "metadata.uid" in found.errors[0].text


def test_policies_stand_beside_pods(tmp_path: Path) -> None:
    (tmp_path / "limits.yaml").write_text(
        """
apiVersion: v1
kind: LimitRange
metadata: {name: defaults}
spec: {limits: [{type: Container, default: {memory: 256Mi}}]}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
"""
    )
    (tmp_path / "wrong.yaml").write_text(
        """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: system-mine}
value: 1000
"""
    )
    found = read(tmp_path)
    assert [each.metadata.name for each in found.policies.limit_ranges_of("default")] == ["defaults"]
    assert "high" in [each.metadata.name for each in found.policies.priority_classes]
    (error,) = found.errors
    assert "system-mine is not a known system priority class" in error.text


def test_what_has_not_changed_is_not_read_again_and_what_has_is(tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(manifest("web"))
    reader = ManifestReader(tmp_path, "n1")
    (first,) = reader.read().pods.values()
    (again,) = reader.read().pods.values()
    assert again is first
    file.write_text(manifest("api"))
    assert [pod.metadata.name for pod in reader.read().pods.values()] == ["api-n1"]
    file.unlink()
    assert reader.read().pods == {}
