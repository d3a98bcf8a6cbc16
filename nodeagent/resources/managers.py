"""The one door to the resource managers: admits pods, says what each container runs on, survives restarts."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nodeagent.api.pod import Pod
from nodeagent.hardware.cpuset import CpuSet
from nodeagent.hardware.topology import Topology
from nodeagent.resources import adoption, explain, startup
from nodeagent.resources.alignment import Label, alignments
from nodeagent.resources.checkpoint import NoFile, StateFile, StateProblem
from nodeagent.resources.device_manager import Device
from nodeagent.resources.errors import TOPOLOGY_AFFINITY_ERROR, UNEXPECTED_ADMISSION_ERROR
from nodeagent.resources.hotplug import Displacement, displacements
from nodeagent.resources.pod_admission import PodAdmission, PodDecision
from nodeagent.resources.requests import pod_request
from nodeagent.resources.settings import LiveContainer, ManagerSettings
from nodeagent.resources.state_files import FILES
from nodeagent.resources.topology_manager import TopologyManager
from nodeagent.resources.topology_options import parse_topology_settings

__all__ = ["Admission", "LiveContainer", "ManagerSettings", "ResourceManagers"]


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a pod may run, with kubelet's reason and message, and the record that explains it."""

    admitted: bool
    reason: str = ""
    message: str = ""
    record: PodDecision | None = None

    @property
    def explanation(self) -> tuple[str, ...]:
        """Plain sentences: what was asked, what was compared, what decided."""
        return explain.sentences(self.record) if self.record else ()


class ResourceManagers:
    """CPUs, memory and devices of one node.

    Raises OptionError where the settings contradict themselves or the machine. A state file that does not
    suit is no error: it is one of the `problems`, and running containers keep what the kernel says they have.
    """

    def __init__(
        self,
        topology: Topology,
        settings: ManagerSettings,
        state_directory: Path | None,
        live: Iterable[LiveContainer] = (),
    ) -> None:
        """`live` are the containers that run already. Without a directory nothing is kept, as for a plan."""
        if state_directory:
            state_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._settings = settings
        self._topology = topology
        self._live = {(container.pod_uid, container.name): container for container in live}
        self._files = {
            manager: StateFile(state_directory / name, manager) if state_directory else NoFile(manager)
            for manager, name in FILES.items()
        }
        self.topology_admission_requests = 0
        self.topology_admission_errors = 0
        self.aligned: Counter[Label] = Counter()
        self.misaligned: Counter[Label] = Counter()
        """What could not be aligned, by scope and boundary."""
        self.write_failure = ""
        """Why the state could not be written; it is tried again at the next change or `refresh`."""
        self._topology_settings = parse_topology_settings(
            settings.topology_manager_policy,
            settings.topology_manager_scope,
            settings.topology_manager_policy_options,
            topology.numa_nodes,
        )
        topology_manager = TopologyManager(self._topology_settings, topology.numa_nodes)
        self._devices = startup.device_manager(settings, topology, self._files["device"])
        self._cpus = startup.cpu_manager(settings, topology, self._files["cpu"], self._live.values())
        self._memory = startup.memory_manager(settings, topology, self._files["memory"])
        self._admission = PodAdmission(topology_manager, (self._devices, self._cpus, self._memory))

    @property
    def problems(self) -> tuple[StateProblem, ...]:
        """The state files that do not suit; each tells the command that mends it."""
        return tuple(file.problem for file in self._files.values() if file.problem)

    def admit(self, pod: Pod, active_pods: Iterable[Pod]) -> Admission:
        """Serve a pod, or refuse it and leave everything as it was.

        `active_pods` are all that may hold resources; what others held is free for this one. A pod that
        holds all it asks for keeps it.
        """
        everybody = {other.metadata.uid: other for other in (*active_pods, pod)}
        active = {uid: _container_names(other) for uid, other in everybody.items()}
        for manager in (self._devices, self._cpus, self._memory):
            manager.release_stale(active)
        for uid in {uid for uid, _ in self._live} & everybody.keys():
            adoption.adopt(pod_request(everybody[uid]), self._live, self._cpus, self._memory)
        request = pod_request(pod)
        self._cpus.forget_reusable()
        before = self._cpus.state, self._memory.state, self._devices.state
        decision = adoption.kept(request, self._cpus, self._memory, self._devices)
        if decision is None:
            self.topology_admission_requests += 1
            decision = self._admission.admit(request)
            self.topology_admission_errors += decision.reason == TOPOLOGY_AFFINITY_ERROR
            for label, is_aligned in alignments(
                decision, self._topology_settings, whole_cores=self._cpus.takes_whole_cores
            ):
                (self.aligned if is_aligned else self.misaligned)[label] += 1
        if decision.admitted and self._save():
            return Admission(True, record=decision)
        self._cpus.state, self._memory.state, self._devices.state = before
        if decision.admitted:
            message = f"Allocate failed due to {self.write_failure}, which is unexpected"
            return Admission(False, UNEXPECTED_ADMISSION_ERROR, message, decision)
        self._save()
        return Admission(False, decision.reason, decision.message, decision)

    def remove(self, pod_uid: str) -> None:
        """Take back everything that a pod holds."""
        for manager in (self._devices, self._cpus, self._memory):
            manager.release_pod(pod_uid)
        self._save()

    def starting(self, pod: Pod, container: str) -> None:
        """Take back the memory of init containers that ended before this container is created."""
        self._memory.release_init(pod_request(pod), container)
        self._save()

    def refresh(self) -> None:
        """Write what could not be written before, also after the operator put a file aside."""
        self._save()

    def update_topology(self, topology: Topology) -> tuple[Displacement, ...]:
        """Go on after CPUs went offline or came online; return the containers whose own CPUs that changed."""
        before, self._topology = self._cpus.visible, topology
        if self._cpus.policy:
            self._cpus.adapt(self._cpus.policy.on(topology))
        self._save()
        return tuple(displacements(self._cpus.state, before, self._cpus.visible))

    @property
    def shared_pool(self) -> CpuSet:
        """The CPUs of every container without CPUs of its own: all online ones without a policy."""
        if not self._cpus.policy:
            return self._topology.online
        online = self._topology.online
        # With every shared CPU offline others must do: an empty cpuset cannot be written.
        return self._cpus.visible.default or self._cpus.policy.reserved & online or online

    @property
    def reserved_cpus(self) -> CpuSet:
        """The CPUs that no container gets for itself."""
        return self._cpus.policy.reserved if self._cpus.policy else CpuSet()

    def container_cpus(self, pod_uid: str, container: str) -> CpuSet | None:
        """Return what belongs in `cpuset.cpus`; None where the file is to be left alone."""
        if not self._cpus.policy:
            return None
        return self._cpus.visible.cpus_of(pod_uid, container) or self.shared_pool

    def container_mems(self, pod_uid: str, container: str) -> CpuSet | None:
        """Return what belongs in `cpuset.mems`; None where the file is to be left alone."""
        blocks = self._memory.state.blocks_of(pod_uid, container)
        return CpuSet.from_iterable(node for block in blocks for node in block.nodes) if blocks else None

    def container_devices(self, pod_uid: str, container: str) -> tuple[Device, ...]:
        """Return the devices that a container holds, with what it needs to use them."""
        return self._devices.devices_of(pod_uid, container)

    def is_exclusive(self, pod_uid: str, container: str) -> bool:
        return self._cpus.state.cpus_of(pod_uid, container) is not None

    def exclusive_cpus(self, pod_uid: str) -> Mapping[str, CpuSet]:
        """Return the CPUs that are a pod's own and online, by container."""
        return self._cpus.visible.assignments.get(pod_uid, {})

    def has_exclusive_cpus(self, pod: Pod) -> bool:
        return pod.metadata.uid in self._cpus.state.assignments

    def exclusive_cpus_per_numa(self) -> Mapping[int, int]:
        assigned = self._cpus.visible.assigned.mask
        return {numa: (assigned & cpus).bit_count() for numa, cpus in self._topology.numas.items()}

    @property
    def extended_resources(self) -> Mapping[str, int]:
        """How many devices there are of each kind, for capacity and allocatable."""
        return {name: len(devices) for name, devices in self._devices.resources.items()}

    @property
    def cpu_pinning(self) -> tuple[int, int]:
        """Containers that asked for CPUs of their own, and those that did not get them."""
        return self._cpus.pinning_requests, self._cpus.pinning_errors

    @property
    def memory_pinning(self) -> tuple[int, int]:
        """Containers that asked for memory of their own, and those that did not get it."""
        return self._memory.pinning_requests, self._memory.pinning_errors

    def _save(self) -> bool:
        """Write what changed, one file a manager; say whether everything is safe."""
        try:
            for manager in (self._cpus, self._memory, self._devices):
                manager.save()
        except OSError as error:
            self.write_failure = f"the state not being written: {error.strerror} ({error.filename})"
            return False
        self.write_failure = ""
        return True


def _container_names(pod: Pod) -> frozenset[str]:
    return frozenset(container.name for container in (*pod.spec.init_containers, *pod.spec.containers))
