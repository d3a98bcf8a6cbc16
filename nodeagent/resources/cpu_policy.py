"""The static policy: which containers get which CPUs, as decisions on a state value."""

from dataclasses import dataclass
from itertools import accumulate

from nodeagent.hardware.cpuset import NO_CPUS, CpuSet, lowest_bits
from nodeagent.hardware.topology import Topology
from nodeagent.resources.cpu_assignment import NO_CHOICE, Choice, CpuAssigner
from nodeagent.resources.cpu_options import CpuPolicyOptions
from nodeagent.resources.cpu_state import CpuState
from nodeagent.resources.errors import SharedPoolEmpty, SmtAlignmentError
from nodeagent.resources.hints import Hint, Hints, NumaMasks
from nodeagent.resources.requests import ContainerRequest, Kind, PodRequest

RESOURCE = "cpu"


@dataclass(frozen=True, slots=True)
class CpuAllocation:
    """What a container asked for, what was looked at, and what it got."""

    requested: int
    cpus: CpuSet
    free: CpuSet = NO_CPUS
    affinity: int | None = None
    aligned: CpuSet = NO_CPUS
    """The free CPUs on the NUMA nodes of the affinity."""
    choice: Choice = NO_CHOICE
    kept: bool = False
    """It had them already."""


class StaticCpuPolicy:
    """Exclusive CPUs for whole-number requests of Guaranteed pods; everything else shares what is left."""

    name = "static"

    def __init__(
        self,
        topology: Topology,
        options: CpuPolicyOptions,
        reserved: CpuSet,
        *,
        keep_shared_pool: bool = False,
        single_node: bool = False,
    ) -> None:
        """`keep_shared_pool` refuses what would take its last CPU, which kubelet does not.

        `single_node`: the topology manager takes one NUMA node only.
        """
        self._topology = topology
        self._assigner = CpuAssigner(topology)
        self._options = options
        self._keep_shared_pool = keep_shared_pool
        self._single_node = single_node
        self._masks = NumaMasks(topology.numas, single=single_node)
        self.reserved = reserved
        self.reserved_physical = topology.with_siblings(reserved)

    def on(self, topology: Topology) -> "StaticCpuPolicy":
        """Return the same policy for the machine as it is now; what is reserved stays reserved."""
        return self._with(topology, self.reserved)

    def beside(self, state: CpuState) -> "StaticCpuPolicy":
        """Return the policy with as many reserved CPUs that suit a state better, where there are some.

        Which CPUs are reserved by number depends on those that are online, and may change while pods run.
        """
        number = len(self.reserved)
        if self._options.strict_cpu_reservation:
            reserved = (self.online | self.offline) - state.known
        else:
            others = self.online - state.assigned
            reserved = self._assigner.take(others, min(number, len(others)), self._options).cpus
            away = state.default & self.offline
            reserved |= CpuSet(lowest_bits(away.mask, number - len(reserved)))
        return self._with(self._topology, reserved) if len(reserved) == number else self

    def _with(self, topology: Topology, reserved: CpuSet) -> "StaticCpuPolicy":
        return StaticCpuPolicy(
            topology,
            self._options,
            reserved,
            keep_shared_pool=self._keep_shared_pool,
            single_node=self._single_node,
        )

    @property
    def takes_whole_cores(self) -> bool:
        """Whether the option full-pcpus-only is on."""
        return self._options.full_pcpus_only

    @property
    def online(self) -> CpuSet:
        return self._topology.online

    @property
    def offline(self) -> CpuSet:
        return self._topology.offline

    @property
    def allocatable(self) -> CpuSet:
        """Every CPU that a container can have for itself."""
        return self._topology.online - self.reserved

    @property
    def initial_default(self) -> CpuSet:
        """The shared pool of a node without exclusive CPUs."""
        return self.allocatable if self._options.strict_cpu_reservation else self._topology.online

    def free(self, state: CpuState) -> CpuSet:
        return state.default - self.reserved

    def start(self, state: CpuState, away: CpuSet = NO_CPUS) -> tuple[CpuState, str]:
        """Return the state to begin with, and what is wrong with the stored one (empty: nothing).

        `away` are CPUs of the state that are offline for now.
        """
        if not state.default:
            if state.assignments:
                return state, "default cpuset cannot be empty"
            return CpuState(self.initial_default), ""
        return state, self._problem(state.without(away))

    def _problem(self, state: CpuState) -> str:
        reserved = self.reserved & self.online
        reserved_there = reserved & state.default
        if self._options.strict_cpu_reservation and reserved_there:
            return (
                f'some of strictly reserved cpus: "{reserved_there}" are present in '
                f'defaultCpuSet: "{state.default}"'
            )
        if not self._options.strict_cpu_reservation and reserved_there != reserved:
            return f'not all reserved cpus: "{reserved}" are present in defaultCpuSet: "{state.default}"'
        for uid, containers in state.assignments.items():
            for name, cpus in containers.items():
                if cpus & state.default:
                    return (
                        f'pod: {uid}, container: {name} cpuset: "{cpus}" overlaps with default cpuset '
                        f'"{state.default}"'
                    )
        known = state.known
        if known != self.initial_default:
            return (
                f'current set of available CPUs "{self.initial_default}" doesn\'t match with CPUs in state '
                f'"{known}"'
            )
        return ""

    def allocate(
        self,
        state: CpuState,
        reusable: CpuSet,
        pod: PodRequest,
        container: ContainerRequest,
        affinity: int | None,
    ) -> CpuAllocation | None:
        """Choose a container's CPUs; None where it shares. `reusable`: of its pod's earlier init containers.

        Raises SmtAlignmentError, NotEnoughCpus or SharedPoolEmpty.
        """
        number = container.cpus
        if number == 0:
            return None
        # Before any test: a running pod that is admitted again after a restart keeps what it has.
        kept = state.cpus_of(pod.uid, container.name)
        if kept is not None:
            return CpuAllocation(number, kept, kept=True)
        if self._options.full_pcpus_only:
            self._check_whole_cores(state, number)
        free = self.free(state) | reusable
        aligned = self._near(free, affinity)
        choice = self._assigner.take(aligned, min(number, len(aligned)), self._options)
        missing = number - len(choice.cpus)
        choice |= self._assigner.take(free - choice.cpus, missing, self._options)
        if self._keep_shared_pool and not state.default - choice.cpus:
            raise SharedPoolEmpty(
                f"CPUs {choice.cpus} are the last of the shared pool, and containers without CPUs of "
                "their own need one: request fewer CPUs, or do without strict-cpu-reservation"
            )
        return CpuAllocation(number, choice.cpus, free, affinity, aligned, choice)

    def _check_whole_cores(self, state: CpuState, number: int) -> None:
        cpus_per_core = self._topology.cpus_per_core
        if number % cpus_per_core:
            raise SmtAlignmentError(
                f"SMT Alignment Error: requested {number} cpus not multiple cpus per core = {cpus_per_core}"
            )
        available = len(state.default - self.reserved_physical)
        if number > available:
            raise SmtAlignmentError(
                "SMT Alignment Error: not enough free physical CPUs: "
                f"available physical CPUs = {available}, requested CPUs = {number}, "
                f"CPUs per core = {cpus_per_core}"
            )

    def _near(self, free: CpuSet, affinity: int | None) -> CpuSet:
        """Return the free CPUs on the affinity's NUMA nodes, or with align-by-socket on their sockets."""
        if affinity is None:
            return NO_CPUS
        near = self._on_nodes(affinity)
        if self._options.align_by_socket:
            near = sum(socket for socket in self._topology.sockets.values() if socket & near)
        return CpuSet(free.mask & near)

    def _on_nodes(self, nodes: int) -> int:
        return sum(cpus for numa, cpus in self._topology.numas.items() if nodes >> numa & 1)

    def container_hints(
        self, state: CpuState, reusable: CpuSet, pod: PodRequest, container: ContainerRequest
    ) -> Hints:
        if container.cpus == 0:
            return None
        assigned = state.cpus_of(pod.uid, container.name)
        if assigned is not None:
            same = len(assigned) == container.cpus
            return {RESOURCE: self._hints(assigned, NO_CPUS, container.cpus) if same else ()}
        return {RESOURCE: self._hints(self.free(state), reusable, container.cpus)}

    def pod_hints(self, state: CpuState, reusable: CpuSet, pod: PodRequest) -> Hints:
        number = pod_cpus(pod)
        if number == 0:
            return None
        assigned = NO_CPUS
        for container in pod.containers:
            cpus = state.cpus_of(pod.uid, container.name)
            if cpus is not None:
                if len(cpus) != container.cpus:
                    return {RESOURCE: ()}
                assigned |= cpus
        if len(assigned) == number:
            return {RESOURCE: self._hints(assigned, NO_CPUS, number)}
        return {RESOURCE: self._hints(self.free(state), reusable | assigned, number)}

    def situation(self, state: CpuState, pod: PodRequest, container: ContainerRequest | None) -> str:
        """Compare a request with what is free on each NUMA node, for a refusal's explanation."""
        number = pod_cpus(pod) if container is None else container.cpus
        if not number:
            return ""
        free = self.free(state)
        nodes = ", ".join(
            f"node {numa}: {(free.mask & cpus).bit_count()} of {cpus.bit_count()}"
            for numa, cpus in self._topology.numas.items()
        )
        least = self._least_nodes(number)
        return (
            f"{number} CPUs were asked for; {len(free)} are free for exclusive use "
            f"({free or 'none'}; {nodes}). "
            f"On an empty machine they fit {least} NUMA node{'s' * (least > 1)}, so only a placement on "
            f"{least} counts as preferred"
        )

    def _least_nodes(self, number: int) -> int:
        """Return how many NUMA nodes the request needs when every CPU is free: what `preferred` means."""
        sizes = sorted((cpus.bit_count() for cpus in self._topology.numas.values()), reverse=True)
        return next(
            (nodes for nodes, total in enumerate(accumulate(sizes), 1) if total >= number), len(sizes)
        )

    def _hints(self, available: CpuSet, reusable: CpuSet, number: int) -> tuple[Hint, ...]:
        """List every set of nodes with enough CPUs that holds all reusable ones.

        Preferred are those of the smallest size that could hold the request on an empty machine.
        """
        numas = self._topology.numas
        free = self._masks.sums({numa: (available.mask & cpus).bit_count() for numa, cpus in numas.items()})
        needed = sum(1 << numa for numa, cpus in numas.items() if cpus & reusable.mask)
        missing = number - len(reusable)
        least = self._least_nodes(number)
        masks = [mask for mask in self._masks.masks if needed & ~mask == 0 and free[mask] >= missing]
        if self._options.align_by_socket:
            return tuple(
                Hint(mask, mask.bit_count() == least or self._aligned_by_socket(mask, least))
                for mask in masks
            )
        return tuple(Hint(mask, mask.bit_count() == least) for mask in masks)

    def _aligned_by_socket(self, nodes: int, least: int) -> bool:
        cpus = self._on_nodes(nodes)
        touched = sum(1 for socket in self._topology.sockets.values() if socket & cpus)
        numas_per_socket = max(1, len(self._topology.numas) // len(self._topology.sockets))
        return touched == -(-least // numas_per_socket)


def pod_cpus(pod: PodRequest) -> int:
    """Return how many exclusive CPUs a pod has at most at one time."""
    sidecars = largest = 0
    for container in pod.containers:
        if container.kind is Kind.SIDECAR:
            sidecars += container.cpus
        elif container.kind is Kind.INIT:
            largest = max(largest, sidecars + container.cpus)
    return max(largest, sidecars + sum(container.cpus for container in pod.of_kind(Kind.APP)))
