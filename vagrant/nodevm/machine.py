"""One virtual machine: start it, wait for it, run commands in it, copy files, stop it.

A machine lives in `run/<name>` of the cache: state.json (ports, shape, image), qemu.pid (written by QEMU
itself), console.log, qemu.log and the copy-on-write overlay. Who finds that directory can stop the machine.
"""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from nodevm import accelerator, image
from nodevm.paths import CHECKOUT, VmError, cache_directory, cache_lock, require, require_space, run, say
from nodevm.shapes import SHAPES, Shape

SETTLE_SECONDS = 300
OVERLAY_NEEDS_BYTES = 700 << 20
GUEST_METRICS_PORT = 30255
# panic: an emulated kernel on a crowded host can fault while it boots; it starts again, not stands still.
KERNEL_COMMAND_LINE = (
    "root=/dev/vda rw console=ttyS0 loglevel=6 net.ifnames=0 fsck.mode=skip mitigations=off audit=0 psi=1 "
    "panic=5"
)


@dataclass(frozen=True, slots=True)
class State:
    """What is known of a machine from before QEMU starts until the directory is removed."""

    shape: str
    image: str
    accelerator: str
    ssh_port: int
    metrics_port: int
    sockets: str  # directory of the QMP and ssh control sockets: short, as their paths must be

    @property
    def qmp(self) -> str:
        return f"{self.sockets}/qmp"


class Machine:
    """The machine called `name`. Without a name it is called after its shape."""

    def __init__(self, shape: str = "plain", name: str | None = None) -> None:
        if shape not in SHAPES:
            raise VmError(f"shape {shape!r} is unknown: expected one of {', '.join(SHAPES)}")
        self.shape: Shape = SHAPES[shape]
        self.name = name or shape
        self.directory = cache_directory() / "run" / self.name
        self._process: subprocess.Popen[bytes] | None = None

    # --- life ---

    def up(self, *, tied: bool = False) -> None:
        """Boot a fresh copy of the checkout's image and wait for ssh; only wait if it runs already.

        `tied` makes the kernel kill QEMU when this process ends, however it ends.
        """
        require("qemu-system-x86_64", "qemu-img", "ssh")
        *early, last = accelerator.candidates()
        for choice in early:
            try:
                return self._boot(choice, tied=tied)
            except VmError as error:
                say(f"no machine under {choice} here: {str(error).splitlines()[0]}")
                accelerator.remember_failure(choice)
        self._boot(last, tied=tied)

    def down(self) -> None:
        """Stop QEMU and delete the overlay. A disk that is thrown away needs no orderly shutdown."""
        pid = self.pid()
        if pid is not None:
            self._quit()
            if not self._ended(pid, seconds=10):
                os.kill(pid, signal.SIGKILL)
                self._ended(pid, seconds=10)
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        state = self._state()
        if state is not None:
            shutil.rmtree(state.sockets, ignore_errors=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    def pid(self) -> int | None:
        """The PID of this machine's QEMU, or None. A reused PID is told apart by its command line."""
        state = self._state()
        try:
            pid = int((self.directory / "qemu.pid").read_text())
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        ours = state is not None and any(state.qmp.encode() in word for word in words)
        return pid if ours else None

    def state(self) -> State:
        """VmError when the machine is not running."""
        state = self._state()
        if state is None or self.pid() is None:
            raise VmError(f"{self.name} is not running: vagrant/vm up --shape {self.shape.name}")
        return state

    def console(self, lines: int = 40) -> str:
        """The end of the serial console and of QEMU's own messages."""
        parts = []
        for name in ("qemu.log", "console.log"):
            path = self.directory / name
            if path.exists():
                parts += path.read_text(errors="replace").splitlines()[-lines:]
        return "\n".join(f"  | {line}" for line in parts)

    # --- inside ---

    def ssh_command(self, *options: str) -> list[str]:
        """The ssh command up to the host name; commands share one connection."""
        state = self.state()
        settings = {
            "IdentityFile": image.ensure_key(),
            "IdentitiesOnly": "yes",
            "Port": state.ssh_port,
            "BatchMode": "yes",
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": "/dev/null",
            "LogLevel": "ERROR",
            "ConnectTimeout": 60,
            "ServerAliveInterval": 15,
            "ServerAliveCountMax": 12,
            "ControlMaster": "auto",
            "ControlPath": f"{state.sockets}/ssh",
            "ControlPersist": "yes",
        }
        return ["ssh", "-F", "none", *(f"-o{key}={value}" for key, value in settings.items()), *options]

    def ssh(
        self, command: str, *, timeout_seconds: float | None = None, data: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell command as root and capture what it prints; `data` is its standard input."""
        return subprocess.run(
            [*self.ssh_command(), "root@127.0.0.1", command],
            input=data or "",
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_seconds,
            check=False,
        )

    def put(self, local: Path, remote: str) -> None:
        """Copy a file or a directory into the machine, as rsync names them."""
        self._rsync("-a", str(local), f"root@127.0.0.1:{remote}")

    def get(self, remote: str, local: Path) -> None:
        """Copy a file or a directory out of the machine."""
        self._rsync("-a", f"root@127.0.0.1:{remote}", str(local))

    def put_project(self) -> None:
        """The checkout's package over the installed one. Unchanged files keep their compiled form."""
        where = "import nodeagent, os; print(os.path.dirname(nodeagent.__file__))"
        found = self.ssh(f"cd / && /opt/nodeagent/bin/python -c {shlex.quote(where)}")
        if found.returncode != 0:
            raise VmError(f"no nodeagent installed in {self.name}:\n{found.stderr}")
        remote = f"root@127.0.0.1:{found.stdout.strip()}/"
        self._rsync(
            "-rlp", "--checksum", "--delete", "--exclude=__pycache__", f"{CHECKOUT}/nodeagent/", remote
        )

    def _rsync(self, *arguments: str) -> None:
        require("rsync")
        run(["rsync", "-e", shlex.join(self.ssh_command()), *arguments])

    # --- starting ---

    def _boot(self, choice: str, *, tied: bool) -> None:
        with cache_lock():
            ours = self.pid() is None
            if ours:
                remove_dead_machines()
                built = image.ensure_image(in_use=images_in_use())
                self._start(built, choice, tied=tied)
        began = time.monotonic()
        try:
            self._wait_for_ssh(began)
            self._wait_until_settled()
        except BaseException:
            if ours:
                self.down()
            raise
        if ours:
            say(f"{self.name} is up after {time.monotonic() - began:.0f} s under {choice}")

    def _start(self, built: image.Image, choice: str, *, tied: bool) -> None:
        """Start QEMU and wait for its pidfile: until then others would take the machine for dead."""
        self.down()
        self.directory.mkdir(parents=True)
        require_space(self.directory, OVERLAY_NEEDS_BYTES)
        overlay = self.directory / "overlay.qcow2"
        run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", built.disk, overlay])
        sockets = tempfile.mkdtemp(prefix="nodeagent-vm-")
        ssh_port, metrics_port = _free_ports(2)
        state = State(self.shape.name, built.directory.name, choice, ssh_port, metrics_port, sockets)
        (self.directory / "state.json").write_text(json.dumps(asdict(state)))
        say(f"starting {self.name}: {self.shape.description}, {choice}")
        command = self._qemu(state, built, overlay)
        if tied:
            command = ["setpriv", "--pdeathsig", "KILL", *command]
        with (self.directory / "qemu.log").open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        try:
            while self.pid() is None:
                if self._process.poll() is not None:
                    raise VmError(f"QEMU ended with exit code {self._process.returncode}:\n{self.console()}")
                time.sleep(0.05)
        except BaseException:
            self.down()
            raise

    def _qemu(self, state: State, built: image.Image, overlay: Path) -> list[str]:
        forwards = (
            f"hostfwd=tcp:127.0.0.1:{state.ssh_port}-:22,"
            f"hostfwd=tcp:127.0.0.1:{state.metrics_port}-:{GUEST_METRICS_PORT}"
        )
        command = ["qemu-system-x86_64", "-name", f"nodeagent-{self.name}", "-machine", "q35", "-nodefaults"]
        command += accelerator.arguments(state.accelerator)
        command += self.shape.arguments()
        command += [
            "-kernel",
            str(built.kernel),
            "-initrd",
            str(built.initrd),
            "-append",
            KERNEL_COMMAND_LINE,
        ]
        command += ["-drive", f"file={overlay},if=virtio,format=qcow2,cache=unsafe,discard=unmap"]
        command += ["-netdev", f"user,id=net,{forwards}", "-device", "virtio-net-pci,netdev=net,romfile="]
        command += ["-device", "virtio-rng-pci", "-display", "none", "-no-user-config"]
        command += ["-serial", f"file:{self.directory}/console.log"]
        command += ["-qmp", f"unix:{state.qmp},server=on,wait=off"]
        command += ["-pidfile", str(self.directory / "qemu.pid")]
        return command

    def _wait_for_ssh(self, began: float) -> None:
        first_line_seconds, boot_seconds = accelerator.patience_seconds(self.state().accelerator)
        console = self.directory / "console.log"
        next_word = 15
        while self.pid() is not None:
            elapsed = time.monotonic() - began
            if _greets(self.state().ssh_port):
                return
            if elapsed > first_line_seconds and console.stat().st_size == 0:
                raise VmError(f"the kernel said nothing within {first_line_seconds} s\n{self.console()}")
            if elapsed > boot_seconds:
                raise VmError(f"{self.name} did not answer on ssh within {boot_seconds} s:\n{self.console()}")
            if elapsed > next_word:
                say(f"booting, {elapsed:.0f} s")
                next_word += 15
            time.sleep(0.3)
        raise VmError(f"QEMU ended while {self.name} was booting:\n{self.console()}")

    def _wait_until_settled(self) -> None:
        result = self.ssh("systemctl is-system-running --wait", timeout_seconds=SETTLE_SECONDS)
        if result.stdout.strip() != "running":
            failed = self.ssh("systemctl list-units --failed --plain --no-legend").stdout
            say(f"the system is {result.stdout.strip() or result.stderr.strip()}; failed units:\n{failed}")

    def _quit(self) -> None:
        state = self._state()
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(5)
                connection.connect(state.qmp if state else "")
                connection.sendall(b'{"execute": "qmp_capabilities"}\n{"execute": "quit"}\n')
                while connection.recv(4096):
                    pass
        except OSError:
            pass  # the PID is what counts: the caller waits for it and kills it

    def _ended(self, pid: int, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self._process is not None:
                self._process.poll()  # reaps our own child, which would stay in /proc
            if not Path(f"/proc/{pid}").exists():
                return True
            time.sleep(0.05)
        return False

    def _state(self) -> State | None:
        try:
            return State(**json.loads((self.directory / "state.json").read_text()))
        except (OSError, ValueError, TypeError):
            return None


def machines() -> list[Machine]:
    """Every machine with a directory, running or not."""
    found = []
    for directory in sorted((cache_directory() / "run").glob("*")):
        try:
            shape = json.loads((directory / "state.json").read_text())["shape"]
        except (OSError, ValueError, KeyError):
            shape = "plain"
        found.append(Machine(shape, directory.name))
    return found


def images_in_use() -> set[Path]:
    """The image directories that running machines have open."""
    return {cache_directory() / machine.state().image for machine in machines() if machine.pid() is not None}


def remove_dead_machines() -> None:
    """Delete what machines left behind whose QEMU is gone."""
    for machine in machines():
        if machine.pid() is None:
            machine.down()


def _greets(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _free_ports(count: int) -> Sequence[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in held]
    for server in held:
        server.close()
    return ports
