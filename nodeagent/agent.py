"""The composition root: builds the parts from the configuration, owns their lifetime, nothing else."""

import asyncio
import logging
import os
import signal
from collections.abc import Coroutine, Iterable
from pathlib import Path

from nodeagent.api.duration import parse_duration
from nodeagent.api.pod import Pod
from nodeagent.cgroup.drivers import make_driver
from nodeagent.clock import Clock, SystemClock
from nodeagent.config import Config
from nodeagent.desired import DesiredState
from nodeagent.endurance import prepare_for_scarcity
from nodeagent.eviction.configured import eviction_policy
from nodeagent.eviction.signals import Condition
from nodeagent.hardware.hotplug import TopologyWatcher
from nodeagent.housekeeping import Housekeeping
from nodeagent.journal import configure_logging
from nodeagent.local_api import LocalApi, damage_message
from nodeagent.machine import (
    Roots,
    UnsuitableMachine,
    live_containers,
    manager_settings,
    own_cgroup,
    read_machine,
    require_fit_host,
    set_own_oom_score_adj,
    with_cpus,
)
from nodeagent.metering import Meter
from nodeagent.metrics.instruments import Instruments
from nodeagent.node import read_node_facts
from nodeagent.own_node import OwnNode
from nodeagent.pods.admission import NodeAdmission
from nodeagent.pods.cgroups import PodCgroups
from nodeagent.pods.containers import ContainerRecords
from nodeagent.pods.decisions import DecisionLog
from nodeagent.pods.events import EventRecorder
from nodeagent.pods.launch import launch_settings
from nodeagent.pods.manager import PodManager, stored_records
from nodeagent.pods.partitions import ExclusivePartitions
from nodeagent.pods.preemptor import Preemptor
from nodeagent.pods.recovery import (
    readmit,
    remove_orphans,
    report_displaced,
    report_state_files,
)
from nodeagent.pods.revoker import Revoker
from nodeagent.pods.services import Refusal, Services
from nodeagent.pods.team_quotas import TeamQuotas, quota_settings
from nodeagent.pods.tree_keeper import TreeKeeper
from nodeagent.pods.usage import UsageReader
from nodeagent.protection import Protection
from nodeagent.resources.managers import ResourceManagers
from nodeagent.resources.partitions import Partition
from nodeagent.runtime.process import ProcessRuntime, ensure_keeper
from nodeagent.server.api.unix import UnixListener
from nodeagent.server.listener import Listener
from nodeagent.server.servers import open_servers
from nodeagent.service import ServiceManager
from nodeagent.sources.manifests import ManifestReader
from nodeagent.stats.summary import Summary
from nodeagent.store import Store
from nodeagent.view import AgentView

logger = logging.getLogger(__name__)

KEEPER_SOCKET = Path("/run/nodeagent-keeper/keeper.sock")
CPU_POLL_SECONDS = 10.0
DEBUG_VERBOSITY = 4


async def run(config: Config) -> None:
    """Run the agent until SIGTERM or SIGINT; the containers go on running after it.

    Raises UnsuitableMachine, CgroupError, RuntimeFault, StoreError, StateFileError or ListenError.
    """
    configure_logging(logging.DEBUG if config.kubelet.logging.verbosity >= DEBUG_VERBOSITY else logging.INFO)
    roots = Roots()
    require_fit_host(config, roots, os.geteuid())
    set_own_oom_score_adj(roots.proc, config.kubelet.oom_score_adj)
    prepare_for_scarcity()
    agent = Agent(config, roots, SystemClock())
    await agent.start()
    try:
        async with asyncio.TaskGroup() as group:
            loops = [group.create_task(loop) for loop in agent.loops()]
            await agent.stopping.wait()
            for loop in loops:
                loop.cancel()
    finally:
        await agent.close()


class Agent:
    """All parts of one agent, and the loops that drive them."""

    def __init__(self, config: Config, roots: Roots, clock: Clock) -> None:
        kubelet, own = config.kubelet, config.agent
        self.stopping = asyncio.Event()
        self._config = config
        self._clock = clock
        self._machine = machine = read_machine(config, roots)
        self._service = ServiceManager()
        self._instruments = Instruments()
        self._meter = Meter(self._instruments)
        self._records = ContainerRecords()
        self._listeners: list[Listener | UnixListener] = []
        self._manifest_directory = Path(kubelet.static_pod_path) if kubelet.static_pod_path else None
        self._manifests = ManifestReader(self._manifest_directory, own.node_name)
        self._state_directory = Path(own.state_directory)
        self._store = Store(self._state_directory / "nodeagent.db")
        self._decisions = DecisionLog(self._store)
        self._events = EventRecorder(self._store, clock, own.node_name)
        self._runtime = ProcessRuntime(KEEPER_SOCKET)
        amounts = machine.amounts
        facts = read_node_facts(config, amounts.capacity, amounts.allocatable, clock.now())
        self._node = OwnNode(facts, clock)
        self._policy = eviction_policy(config)
        self._api = LocalApi(self._store, clock, facts.name, self._records, self._summary)
        self._meter.begin(self._policy.effective_thresholds)

    async def start(self) -> None:
        """Find what an earlier agent left, make the upper levels of the tree, and listen."""
        if "NOTIFY_SOCKET" not in os.environ:
            log_directory = Path(self._config.kubelet.pod_logs_dir)
            keeper_state = self._state_directory / "keeper"
            await ensure_keeper(KEEPER_SOCKET, keeper_state, log_directory, self._machine.roots.cgroup)
        for record in await self._runtime.list():
            self._records.update(record)
        self._build()
        await self._cgroups.ensure_upper()
        for path, values in self._machine.reserved_cgroups.items():
            await self._driver.update(path, values)
        report_state_files(self._managers, self._events)
        manifests = self._manifests.read()
        stored = stored_records(self._store)
        known = {record.uid for record in stored} | manifests.pods.keys()
        if self._store.moved_aside is not None:
            # What the API wanted is not known any more, and nothing is ended for that.
            known |= self._records.pod_uids()
            self._events.node("DatabaseDamaged", damage_message(self._store.moved_aside), warning=True)
        orphans = await remove_orphans(known, self._cgroups, self._runtime, self._records)
        self._instruments.orphaned_runtime_pods.increase(by=len(orphans))
        readmit(stored, self._managers, self._events)
        self._manager.restore(stored)
        self._api.begin(self._node.object, self._manager.pods())
        self._desired.take(manifests)
        await self._listen()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        loop.add_signal_handler(signal.SIGHUP, self._desired.look.set)

    def loops(self) -> Iterable[Coroutine[object, object, None]]:
        """Return everything that runs side by side until the agent stops."""
        return (
            self._follow_runtime(),
            self._desired.follow_manifests(parse_duration(self._config.kubelet.file_check_frequency)),
            self._desired.follow_api(),
            self._tree_keeper.run(),
            self._tree_keeper.follow_pods(),
            self._api.control(),
            self._api.serve_network(self._config.agent),
            self._follow_cpus(),
            self._housekeeping.run(),
            *self._protection.loops(),
            self._revoker.run(),
            self._service.keep_alive(self._clock, self._housekeeping.is_turning),
        )

    async def close(self) -> None:
        """Let go of everything, and leave the containers as they are."""
        self._service.stopping("stopping; containers go on running")
        for listener in self._listeners:
            await listener.close()
        await self._manager.close()
        self._protection.close()
        await self._driver.close()
        self._store.close()

    def _build(self) -> None:
        config, kubelet, machine = self._config, self._config.kubelet, self._machine
        log_directory = Path(kubelet.pod_logs_dir)
        self._managers = ResourceManagers(
            machine.topology,
            manager_settings(config, machine.amounts.resources.reservation),
            self._state_directory,
            live_containers(machine, self._records.everything()),
        )
        self._driver = make_driver(kubelet.cgroup_driver, machine.tree, self._clock)
        self._cgroups = PodCgroups(
            machine.tree,
            self._driver,
            machine.layout,
            machine.cgroup_settings,
            kubepods_resources=machine.amounts.resources.kubepods,
            managers=self._managers,
            records=self._records,
            active_pods=lambda: self._manager.active_pods(),
        )
        self._tree_keeper = TreeKeeper(
            self._cgroups,
            ExclusivePartitions(machine.tree, self._cgroups, Partition(config.agent.exclusive_cpu_partition)),
            self._managers,
            self._events,
            self._clock,
            period_seconds=parse_duration(kubelet.cpu_manager_reconcile_period),
            sync_seconds=parse_duration(kubelet.sync_frequency),
        )
        self._team_quotas = TeamQuotas(
            quota_settings(config.agent.elastic_quota),
            self._node.view,
            lambda: self._manager.quota_pods(),
            self._clock,
        )
        self._admission = NodeAdmission(
            self._node.view,
            self._managers,
            self._policy,
            lambda: self._node.conditions,
            lambda pod: self._preemptor.rivals_of(pod),
            lambda: self._manager.admitted_pods(),
            self._clock,
            self._decisions.keep_admission,
            lambda pod: self._team_quotas.judge(pod, self._preemptor.kept_before(pod)),
            lambda pod, over_quota: self._preemptor.make_room(pod, is_over_quota=over_quota),
        )
        self._usage = UsageReader(
            self._node.facts.name,
            self._cgroups,
            self._records,
            self._clock,
            proc_root=machine.roots.proc,
            storage=self._state_directory,
            log_directory=log_directory,
            own_cgroup=own_cgroup(machine.roots.proc),
        )
        self._manager = PodManager(self._services(log_directory))
        self._preemptor = Preemptor(
            self._node.view,
            self._manager,
            self._team_quotas,
            self._policy.protects,
            self._events,
            self._decisions,
            self._clock,
            self._meter.pod_preempted,
        )
        self._desired = DesiredState(
            self._manifest_directory,
            self._manifests,
            self._api,
            self._admission,
            self._team_quotas,
            self._manager,
            self._events,
            self._clock,
            self._say_how_it_stands,
        )
        self._revoker = Revoker(
            self._team_quotas,
            self._manager,
            self._events,
            self._decisions,
            self._clock,
            parse_duration(config.agent.elastic_quota.revoke_pod_interval),
        )
        self._housekeeping = Housekeeping(
            self._node,
            self._api,
            self._manager,
            self._records,
            self._usage,
            self._team_quotas,
            self._events,
            self._decisions,
            self._clock,
            proc_root=machine.roots.proc,
            sync_seconds=parse_duration(kubelet.sync_frequency),
        )
        self._protection = Protection(
            config,
            self._policy,
            machine,
            self._clock,
            manager=self._manager,
            cgroups=self._cgroups,
            records=self._records,
            usage=self._usage,
            events=self._events,
            decisions=self._decisions,
            meter=self._meter,
            say=self._service.status,
            conditions_changed=self._set_conditions,
            shutting_down=self._set_shutting_down,
        )

    def _services(self, log_directory: Path) -> Services:
        kubelet = self._config.kubelet
        return Services(
            clock=self._clock,
            runtime=self._runtime,
            cgroups=self._cgroups,
            store=self._store,
            events=self._events,
            launch=launch_settings(self._config, self._node.facts.address, self._machine.amounts.allocatable),
            memory_capacity_bytes=self._machine.info.memory_bytes,
            longest_backoff_seconds=parse_duration(kubelet.crash_loop_back_off.max_container_restart_period),
            admit=self._admit,
            starting=self._managers.starting,
            release=self._release,
            may_return=self._admission.may_return,
            records=self._records,
            observer=self._meter,
            publish=self._api.pods.publish,
            gone=self._api.pods.gone,
            devices_of=self._managers.container_devices,
        )

    async def _listen(self) -> None:
        """Open the servers, then watch for pressure; raises ListenError."""
        view = AgentView(
            config=self._config,
            instruments=self._instruments,
            tree=self._machine.tree,
            proc_root=self._machine.roots.proc,
            current_topology=lambda: self._machine.topology,
            clock=self._clock,
            manager=self._manager,
            records=self._records,
            pod_cgroups=self._cgroups,
            managers=self._managers,
            store=self._store,
            decision_log=self._decisions,
            health_checks={"log": lambda: None, "syncloop": self._housekeeping.health},
            current_node=lambda: self._node.object,
            summarise=self._summary,
            headrooms=self._protection.headrooms,
            team_quotas=self._team_quotas,
        )
        self._listeners = [*await open_servers(view), await self._api.listen()]
        self._protection.watch()

    async def _follow_runtime(self) -> None:
        async for record in self._runtime.changes():
            self._manager.container_changed(record)
            self._tree_keeper.container_changed()

    async def _follow_cpus(self) -> None:
        """Let allocatable, the shared pool and the exclusive CPUs follow the CPUs that are online."""
        watcher = TopologyWatcher(self._machine.roots.sys, self._clock, CPU_POLL_SECONDS)
        async for topology in watcher.changes(self._machine.topology):
            message = f"online CPUs are {topology.online} now, and were {self._machine.topology.online}"
            self._events.node("CPUsChanged", message, warning=True)
            try:
                self._machine = with_cpus(self._machine, topology, self._config)
            except UnsuitableMachine as error:
                self._events.node("CPUsChanged", f"allocatable stays as it was: {error}", warning=True)
            amounts = self._machine.amounts
            self._node.resize(amounts.capacity, amounts.allocatable)
            report_displaced(self._managers.update_topology(topology), self._manager.pods(), self._events)
            self._tree_keeper.wake()

    async def _summary(self) -> Summary:
        pods = self._manager.active_pods()
        return await asyncio.to_thread(self._usage.in_full, pods)

    def _admit(self, pod: Pod) -> Pod | Refusal:
        began = self._clock.monotonic()
        answer = self._admission.admit(pod)
        self._meter.pod_placed(self._managers, self._clock.monotonic() - began)
        return answer

    def _release(self, pod_uid: str) -> None:
        shared = self._managers.shared_pool
        self._admission.release(pod_uid)
        if self._managers.shared_pool != shared:
            self._tree_keeper.wake()

    def _set_conditions(self, conditions: frozenset[Condition]) -> None:
        self._node.conditions = conditions
        self._node.refresh()
        self._manager.wake_all()

    def _set_shutting_down(self, shutting_down: bool) -> None:
        self._admission.is_node_shutting_down = self._node.is_shutting_down = shutting_down
        self._node.refresh()

    def _say_how_it_stands(self) -> None:
        pods = self._manager.pods()
        running = sum(1 for pod in pods if pod.status.phase == "Running")
        self._service.ready(f"{running} of {len(pods)} pods running")
