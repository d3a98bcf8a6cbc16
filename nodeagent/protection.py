"""What protects the node: eviction, the kernel's own kills told to their pods, an orderly shutdown."""

from collections.abc import Callable, Coroutine
from pathlib import Path

from nodeagent.clock import Clock
from nodeagent.config import Config
from nodeagent.eviction.loop import EvictionLoop
from nodeagent.eviction.manager import Policy
from nodeagent.eviction.notify import Notices
from nodeagent.eviction.pace import Headroom, Limits, Pace
from nodeagent.eviction.signals import Condition
from nodeagent.logind import Logind
from nodeagent.machine import Machine
from nodeagent.metering import Meter
from nodeagent.pods.cgroups import PodCgroups
from nodeagent.pods.containers import ContainerRecords
from nodeagent.pods.decisions import DecisionLog
from nodeagent.pods.events import EventRecorder
from nodeagent.pods.evictor import Evictor
from nodeagent.pods.manager import PodManager
from nodeagent.pods.oom_kills import OomKillReporter
from nodeagent.pods.shutdown import NodeShutdown, shutdown_phases
from nodeagent.pods.usage import UsageReader
from nodeagent.stats.fill_rate import measure_fill_rate
from nodeagent.stats.hot import HotReader


class Protection:
    """The parts that watch the node for what would end it, and act on its pods."""

    def __init__(
        self,
        config: Config,
        policy: Policy,
        machine: Machine,
        clock: Clock,
        *,
        manager: PodManager,
        cgroups: PodCgroups,
        records: ContainerRecords,
        usage: UsageReader,
        events: EventRecorder,
        decisions: DecisionLog,
        meter: Meter,
        say: Callable[[str], None],
        conditions_changed: Callable[[frozenset[Condition]], None],
        shutting_down: Callable[[bool], None],
    ) -> None:
        """`say` is told how a shutdown stands."""
        self._machine = machine
        storage = Path(config.agent.state_directory)
        self._hot = HotReader(machine.roots.proc, machine.tree, machine.layout.kubepods, (storage,))
        evictor = Evictor(
            manager,
            cgroups,
            events,
            clock,
            self._hot,
            usage,
            conditions_changed,
            meter.pod_evicted,
            meter.pod_dead,
            decisions,
            Path(config.kubelet.pod_logs_dir),
        )
        limits = Limits.of_machine(len(machine.topology.cpus), measure_fill_rate())
        self._eviction = EvictionLoop(evictor, clock, policy, Pace(limits))
        self._oom_kills = OomKillReporter(
            machine.layout.kubepods, records, manager.pods, events, meter.oom_killed
        )
        self._shutdown = NodeShutdown(
            shutdown_phases(config.kubelet), Logind(), manager, events, clock, say, shutting_down
        )

    def watch(self) -> None:
        """Have the kernel give notice from now on; raises OSError."""
        self._oom_kills.watch(self._machine.roots.kernel_log)
        self._notices = Notices(self._eviction.wake)
        self._notices.watch_node(self._machine.tree, self._machine.layout.kubepods, self._machine.roots.proc)

    def loops(self) -> tuple[Coroutine[object, object, None], ...]:
        """Return what runs beside everything else."""
        return self._eviction.run(), self._shutdown.run()

    def headrooms(self) -> list[Headroom]:
        """Return how far each eviction threshold is."""
        return self._eviction.headrooms()

    def close(self) -> None:
        """Stop watching."""
        self._notices.close()
        self._oom_kills.close()
        self._hot.close()
