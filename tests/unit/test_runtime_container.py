# ruff: noqa: ASYNC240 - small local files
"""What a container finds when it starts, and how it ends: real processes of a real keeper."""

import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nodeagent.runtime.process import RuntimeBusy, StartError
from nodeagent.runtime.spec import Mount
from tests.unit.keeper_process import KeeperProcess, until

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.fixture
async def keeper(tmp_path: Path) -> AsyncIterator[KeeperProcess]:
    process = KeeperProcess(tmp_path)
    process.launch()
    yield process
    await process.clean()


async def test_exit_code_output_and_times_are_known(keeper: KeeperProcess) -> None:
    record = await keeper.start(keeper.shell("c", "echo out; echo err >&2; exit 7"))
    assert (record.state, record.exit_code, record.finished_at) == ("running", None, None)
    record = await keeper.ended("c")
    assert (record.exit_code, record.signal, record.oom_killed, record.message) == (7, None, False, "")
    assert record.started_at is not None and record.finished_at is not None
    assert record.started_at < record.finished_at
    log = (keeper.logs / "default_web_1" / "c" / "0.log").read_text()
    assert sorted(line.split(" ", 1)[1] for line in log.splitlines()) == ["stderr F err", "stdout F out"]


async def test_an_end_by_signal_is_128_and_the_signal(keeper: KeeperProcess) -> None:
    await keeper.start(keeper.spec("c", "sleep", "1000"))
    assert await keeper.runtime.signal("c", signal.SIGKILL)
    record = await keeper.ended("c")
    assert (record.exit_code, record.signal, record.oom_killed) == (137, 9, False)
    assert not await keeper.runtime.signal("c", signal.SIGKILL)


async def test_a_signal_reaches_the_main_process(keeper: KeeperProcess) -> None:
    await keeper.start(keeper.shell("c", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done"))
    await keeper.says("c", "ready")
    assert await keeper.runtime.signal("c", signal.SIGTERM)
    assert (await keeper.ended("c")).exit_code == 5


async def test_the_environment_is_exactly_what_is_given(keeper: KeeperProcess) -> None:
    lines = await keeper.run(keeper.spec("a", "env", env={"B": "2", "A": "x=y z"}))
    assert sorted(lines) == ["A=x=y z", "B=2", "HOSTNAME=web", f"PATH={PATH}"]
    given = {"PATH": "/bin:/usr/bin", "HOSTNAME": "other"}
    assert sorted(await keeper.run(keeper.spec("b", "env", env=given))) == [
        "HOSTNAME=other",
        "PATH=/bin:/usr/bin",
    ]


async def test_it_has_namespaces_of_its_own(keeper: KeeperProcess) -> None:
    script = (
        "echo $$; hostname; ls -d /proc/[0-9]* | wc -l;"
        "for name in pid mnt uts ipc; do readlink /proc/self/ns/$name; done"
    )
    pid, hostname, processes, *namespaces = await keeper.run(keeper.shell("c", script))
    assert (pid, hostname) == ("1", "web")
    # itself, ls and wc
    assert int(processes) <= 3
    own = [str(Path(f"/proc/self/ns/{name}").readlink()) for name in ("pid", "mnt", "uts", "ipc")]
    assert not set(namespaces) & set(own)


async def test_it_may_share_the_hosts_pids(keeper: KeeperProcess) -> None:
    record = await keeper.start(keeper.shell("c", "echo $$; readlink /proc/self/ns/pid", host_pid=True))
    await keeper.ended("c")
    assert keeper.output("c") == [str(record.pid), str(Path("/proc/self/ns/pid").readlink())]


async def test_nothing_of_the_keeper_is_inherited(keeper: KeeperProcess) -> None:
    other = keeper.spec("other", "sleep", "1000")
    await keeper.start(other)
    script = "ls /proc/$$/fd; umask; ulimit -n; ps -o sid= -p $$; readlink /proc/$$/fd/0"
    *descriptors, umask, files, session, stdin = await keeper.run(keeper.shell("c", script))
    assert descriptors == ["0", "1", "2"]
    assert (umask, files, session.strip(), stdin) == ("0022", "1024", "1", "/dev/null")
    signals = await keeper.run(keeper.spec("d", "grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"))
    assert [int(line.split()[1], 16) for line in signals] == [0, 0]


async def test_identity_directory_and_score_are_set(keeper: KeeperProcess) -> None:
    spec = keeper.shell(
        "c",
        "id -u; id -g; id -G; pwd; cat /proc/self/oom_score_adj; grep NoNewPrivs /proc/self/status;"
        "echo x >/dev/stdout",
        user_id=12345,
        group_id=23456,
        supplementary_group_ids=(34567, 45678),
        working_dir="/usr/lib",
        oom_score_adj=321,
        no_new_privileges=True,
    )
    assert await keeper.run(spec) == [
        "12345",
        "23456",
        "23456 34567 45678",
        "/usr/lib",
        "321",
        "NoNewPrivs:\t1",
        "x",
    ]


async def test_a_root_directory_is_all_it_sees(keeper: KeeperProcess, tmp_path: Path) -> None:
    root = tmp_path / "root"
    copy_programs(root, "sh", "ls", "cat", "mount")
    (root / "etc").mkdir()
    (root / "etc" / "name").write_text("inside\n")
    (root / "escape").symlink_to("/../../../etc/name")
    script = (
        "cat /etc/name /escape; echo $$; : </dev/zero; echo gone >/dev/null; ls -d /work;"
        f"ls {tmp_path}; mount"
    )
    before = Path("/proc/self/mounts").read_text()
    lines = await keeper.run(keeper.shell("c", f"({script}) 2>&1", root_directory=str(root), user_id=1000))
    assert lines[:3] == ["inside", "inside", "1"]
    mounts = [line.split() for line in lines if " type " in line]
    assert [(where, kind) for _what, _on, where, _type, kind, _options in mounts][1:] == [
        ("/proc", "proc"),
        ("/dev", "tmpfs"),
        ("/dev/pts", "devpts"),
        ("/dev/shm", "tmpfs"),
    ]
    assert Path("/proc/self/mounts").read_text() == before


async def test_mounts_are_seen_and_stay_where_they_belong(keeper: KeeperProcess, tmp_path: Path) -> None:
    root = tmp_path / "root"
    copy_programs(root, "sh", "cat")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "note").write_text("shared\n")
    (tmp_path / "one").write_text("one file\n")
    # a link of the image must not lead a mount out of it
    (root / "etc").mkdir()
    (root / "srv").symlink_to("/../../../etc")
    mounts = (
        Mount(source=str(tmp_path / "data"), target="/data"),
        Mount(source=str(tmp_path / "data"), target="/kept", read_only=True),
        Mount(source=str(tmp_path / "one"), target="/srv/deep/one"),
        Mount(source="/dev/null", target="/dev/own-null"),
    )
    script = (
        "cat /data/note /srv/deep/one; echo new >/data/new; (: >/kept/no) 2>/dev/null || echo refused;"
        "echo x >/dev/own-null; cat /kept/new"
    )
    lines = await keeper.run(keeper.shell("c", script, root_directory=str(root), mounts=mounts))
    assert lines == ["shared", "one file", "refused", "new"]
    assert (tmp_path / "data" / "new").read_text() == "new\n"
    assert (root / "etc" / "deep").is_dir() and not Path("/etc/deep").exists()


async def test_the_hosts_own_file_system_is_given_no_new_directories(
    keeper: KeeperProcess, tmp_path: Path
) -> None:
    missing = tmp_path / "missing"
    spec = keeper.spec("c", "true", mounts=(Mount(source="/etc", target=str(missing)),))
    with pytest.raises(StartError, match=f"mount point {missing} is not there"):
        await keeper.start(spec)
    assert not missing.exists()


def copy_programs(root: Path, *names: str) -> None:
    """Make a directory a root file system with a few programs and their libraries."""
    for name in names:
        program = shutil.which(name)
        assert program is not None
        linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for path in [program, *(word for word in linked.split() if word.startswith("/"))]:
            target = root / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


@pytest.mark.parametrize(
    ("argv", "fields", "message"),
    [
        (("nonesuch",), {}, 'exec: "nonesuch": executable file not found in $PATH'),
        (("sh",), {"env": {"PATH": "/nowhere"}}, 'exec: "sh": executable file not found in $PATH'),
        (("/no/such",), {}, 'exec: "/no/such": stat /no/such: no such file or directory'),
        (("/etc/passwd",), {}, 'exec: "/etc/passwd": permission denied'),
        (("/etc",), {}, 'exec: "/etc": is a directory'),
        (
            ("true",),
            {"working_dir": "/no/such"},
            'chdir to cwd ("/no/such") failed: no such file or directory',
        ),
        (("true",), {"root_directory": "/no/such"}, "/no/such"),
        (("{directory}/garbage",), {}, "exec {directory}/garbage: exec format error"),
        (("{directory}/script",), {}, "exec {directory}/script: no such file or directory"),
        (("true",), {"log_path": "/etc/0.log"}, "/etc/0.log: expected a path below"),
        (("true", "x" * 200_000), {}, "argument list too long"),
        (("true", "x" * 2_000_000), {}, "bytes"),
    ],
    ids=lambda value: value[0][:20] if isinstance(value, tuple) else "",
)
async def test_a_program_that_cannot_run_says_why_and_leaves_nothing(
    keeper: KeeperProcess, tmp_path: Path, argv: tuple[str, ...], fields: dict[str, object], message: str
) -> None:
    tmp_path.chmod(0o755)
    for name, content in (("garbage", "\x00\x01"), ("script", "#!/no/interpreter\n")):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)
    attached: list[int] = []

    async def attach(pid: int) -> None:
        attached.append(pid)

    words = [word.replace("{directory}", str(tmp_path)) for word in argv]
    with pytest.raises(StartError) as caught:
        await keeper.start(keeper.spec("c", *words, **fields), attach)
    assert message.replace("{directory}", str(tmp_path)) in str(caught.value)
    assert (caught.value.reason, caught.value.exit_code) == ("StartError", 128)
    assert attached == []
    assert await keeper.runtime.list() == []
    await until(lambda: keeper.children() == [])


async def test_it_is_attached_before_its_first_instruction(keeper: KeeperProcess, tmp_path: Path) -> None:
    seen: list[object] = []

    async def attach(pid: int) -> None:
        seen.append(Path(f"/proc/{pid}/exe").resolve())
        seen.append(Path(f"/proc/{pid}/cmdline").read_bytes())
        seen.append((tmp_path / "mark").exists())

    await keeper.start(keeper.spec("c", "touch", str(tmp_path / "mark")), attach)
    assert seen == [Path(shutil.which("touch") or "").resolve(), f"touch\0{tmp_path}/mark\0".encode(), False]
    assert (await keeper.ended("c")).exit_code == 0
    assert (tmp_path / "mark").exists()


async def test_if_attach_fails_nothing_is_left(keeper: KeeperProcess, tmp_path: Path) -> None:
    async def fail(pid: int) -> None:
        raise LookupError("no such slice")

    spec = keeper.spec("c", "touch", str(tmp_path / "mark"))
    with pytest.raises(LookupError, match="no such slice"):
        await keeper.start(spec, fail)
    assert keeper.children() == []
    assert not (tmp_path / "mark").exists()
    assert await keeper.run(spec) == []


async def test_a_process_killed_before_its_release_is_a_start_error(keeper: KeeperProcess) -> None:
    async def kill(pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        await until(lambda: keeper.children() == [])

    with pytest.raises(StartError, match="it ended before it was released"):
        await keeper.start(keeper.spec("c", "sleep", "1000"), kill)


async def test_a_container_starts_only_once(keeper: KeeperProcess) -> None:
    first = await keeper.start(keeper.spec("c", "sleep", "1000"))

    async def attach(pid: int) -> None:
        raise AssertionError("attached a second time")

    assert await keeper.start(keeper.spec("c", "sleep", "1000"), attach) == first
    await keeper.runtime.signal("c", signal.SIGKILL)
    ended = await keeper.ended("c")
    assert await keeper.start(keeper.spec("c", "sleep", "1000"), attach) == ended


async def test_only_an_ended_container_is_forgotten(keeper: KeeperProcess) -> None:
    await keeper.start(keeper.spec("c", "sleep", "1000"))
    with pytest.raises(RuntimeBusy, match="container c is running"):
        await keeper.runtime.forget("c")
    await keeper.runtime.signal("c", signal.SIGKILL)
    await keeper.ended("c")
    await keeper.runtime.forget("c")
    await keeper.runtime.forget("c")
    assert await keeper.runtime.list() == []


@pytest.mark.parametrize(("oom_kills", "expected"), [(0, False), (1, True)])
async def test_a_kill_for_memory_is_told_from_others(
    keeper: KeeperProcess, oom_kills: int, expected: bool
) -> None:
    events = keeper.cgroups / "pod" / "c.scope" / "memory.events"
    events.parent.mkdir(parents=True)
    events.write_text("oom_kill 0\n")
    await keeper.start(keeper.spec("c", "sleep", "1000"))
    events.write_text(f"oom_kill {oom_kills}\n")
    await keeper.runtime.signal("c", signal.SIGKILL)
    record = await keeper.ended("c")
    assert (record.exit_code, record.oom_killed) == (137, expected)


async def test_a_leaf_that_is_gone_speaks_through_its_pod(keeper: KeeperProcess) -> None:
    events = keeper.cgroups / "pod" / "memory.events"
    events.parent.mkdir(parents=True)
    events.write_text("oom_kill 5\n")
    for name in ("a", "b"):
        await keeper.start(keeper.spec(name, "sleep", "1000"))
    events.write_text("oom_kill 6\n")
    await keeper.runtime.signal("a", signal.SIGKILL)
    assert (await keeper.ended("a")).oom_killed
    await keeper.runtime.signal("b", signal.SIGKILL)
    assert not (await keeper.ended("b")).oom_killed


async def test_the_last_words_are_in_the_log_when_the_end_is_told(keeper: KeeperProcess) -> None:
    await keeper.start(keeper.shell("c", "seq 1 9999; printf unfinished"))
    await keeper.ended("c")
    assert keeper.output("c") == [*map(str, range(1, 10_000)), "unfinished"]


async def test_a_chatty_container_starves_nobody(keeper: KeeperProcess) -> None:
    for name in ("a", "b"):
        await keeper.start(keeper.spec(name, "yes", "x" * 100, log_max_bytes=1_000_000, log_max_files=2))
    for number in range(5):
        name = f"quiet-{number}"
        assert await keeper.run(keeper.shell(name, f"echo {number}; exit {number}")) == [str(number)]
        assert (await keeper.ended(name)).exit_code == number
    directory = keeper.logs / "default_web_1" / "a"
    await until(lambda: len(list(directory.iterdir())) == 2)
    await keeper.runtime.signal("a", signal.SIGKILL)
    await keeper.ended("a")
    assert max(path.stat().st_size for path in directory.iterdir()) < 1_200_000
