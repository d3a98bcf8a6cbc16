"""Notice CPUs that go offline or come online: by the kernel's uevents, and by looking now and then."""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator
from pathlib import Path

from nodeagent.clock import Clock
from nodeagent.hardware.cpuset import CpuSet, CpuSetError
from nodeagent.hardware.machine import Topology, TopologyError
from nodeagent.hardware.sysfs import read_topology

logger = logging.getLogger(__name__)

ONLINE = "devices/system/cpu/online"
NETLINK_KOBJECT_UEVENT = 15
KERNEL_GROUP = 1
LARGEST_UEVENT_BYTES = 8192


def is_cpu_event(datagram: bytes) -> bool:
    """Whether a uevent says that a CPU went or came: `online@/devices/...`, then NUL-separated fields."""
    fields = datagram.split(b"\0")
    return b"SUBSYSTEM=cpu" in fields and fields[0].partition(b"@")[0] in (
        b"online",
        b"offline",
        b"add",
        b"remove",
    )


class UeventSocket:
    """The kernel's broadcast of device events, opened without a library: it is one bind and one split."""

    def __init__(self) -> None:
        """Raises OSError where the kernel or a sandbox gives no such socket."""
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_KOBJECT_UEVENT)
        try:
            self._socket.setblocking(False)
            self._socket.bind((0, KERNEL_GROUP))
        except OSError:
            self._socket.close()
            raise

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def had_cpu_event(self) -> bool:
        """Read all that is there; lost messages count as an event, since one may have been among them."""
        found = False
        while True:
            try:
                datagram, sender = self._socket.recvfrom(LARGEST_UEVENT_BYTES)
            except BlockingIOError:
                return found
            except OSError:
                return True
            # Port 0 is the kernel; processes may send to the group too.
            found |= sender[0] == 0 and is_cpu_event(datagram)


class TopologyWatcher:
    """Tells the machine anew whenever another set of CPUs is online."""

    def __init__(self, sys_root: Path, clock: Clock, poll_seconds: float) -> None:
        self._sys_root = sys_root
        self._clock = clock
        self._poll_seconds = poll_seconds
        self._notice = asyncio.Event()

    def notice(self) -> None:
        """Look at once instead of at the next poll."""
        self._notice.set()

    async def changes(self, known: Topology) -> AsyncGenerator[Topology, None]:
        """Yield the machine each time it has other CPUs online than before; `known` is what it was."""
        events = self._listen()
        try:
            while True:
                await self._wait()
                if self._online() == known.online:
                    continue
                try:
                    topology = await asyncio.to_thread(read_topology, self._sys_root)
                except (TopologyError, OSError) as error:
                    # Files come and go while a CPU does: the next look will find them settled.
                    logger.warning("the CPUs cannot be read now: %s", error)
                    continue
                if topology.online != known.online:
                    known = topology
                    yield topology
        finally:
            if events:
                asyncio.get_running_loop().remove_reader(events)
                events.close()

    def _online(self) -> CpuSet | None:
        try:
            return CpuSet.parse((self._sys_root / ONLINE).read_text().strip())
        except (OSError, CpuSetError):
            return None

    async def _wait(self) -> None:
        """Wait for a notice, at most until the next poll."""
        sleep = asyncio.ensure_future(self._clock.sleep(self._poll_seconds))
        notice = asyncio.ensure_future(self._notice.wait())
        try:
            await asyncio.wait((sleep, notice), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()
            notice.cancel()
        self._notice.clear()

    def _listen(self) -> UeventSocket | None:
        try:
            events = UeventSocket()
        except OSError as error:
            logger.info("no uevents here (%s): CPU changes are seen within %g s", error, self._poll_seconds)
            return None

        def read() -> None:
            if events.had_cpu_event():
                self.notice()

        asyncio.get_running_loop().add_reader(events, read)
        return events
