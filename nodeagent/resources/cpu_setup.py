"""From the configuration to a CPU policy, with kubelet's words where something is wrong."""

from collections.abc import Mapping

from nodeagent.hardware.cpuset import CpuSet
from nodeagent.hardware.topology import Topology
from nodeagent.resources.cpu_assignment import CpuAssigner
from nodeagent.resources.cpu_options import CpuPolicyOptions, check_against_machine, parse_cpu_options
from nodeagent.resources.cpu_policy import StaticCpuPolicy
from nodeagent.resources.errors import OptionError
from nodeagent.resources.topology_options import Policy


def make_cpu_policy(
    policy: str,
    options: Mapping[str, str],
    topology: Topology,
    *,
    reserved_milli: int | None,
    reserved_cpus: CpuSet,
    topology_policy: str,
    alpha_options: bool = False,
    beta_options: bool = True,
    keep_shared_pool: bool = False,
) -> StaticCpuPolicy | None:
    """Return the policy, None for `none`. Raises OptionError.

    `reserved_milli` is the CPU of the node's reservations together (None: no entry), `reserved_cpus` an
    explicit list, whose size must agree with it.
    """
    if policy == "none":
        if options:
            shown = " ".join(f"{name}:{value}" for name, value in sorted(options.items()))
            raise OptionError(
                f"new none policy error: None policy: received unsupported options=map[{shown}]"
            )
        return None
    if policy != "static":
        raise OptionError(f'unknown policy: "{policy}"')
    if reserved_milli is None:
        raise OptionError("[cpumanager] unable to determine reserved CPU resources for static policy")
    if reserved_milli == 0:
        raise OptionError(
            "[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu "
            "to be greater than zero"
        )
    try:
        parsed = parse_cpu_options(options, alpha=alpha_options, beta=beta_options)
        check_against_machine(parsed, topology, topology_policy)
        reserved = _choose_reserved(topology, parsed, -(-reserved_milli // 1000), reserved_cpus)
    except OptionError as error:
        raise OptionError(f"new static policy error: {error}") from None
    return StaticCpuPolicy(
        topology,
        parsed,
        reserved,
        keep_shared_pool=keep_shared_pool,
        single_node=topology_policy == Policy.SINGLE_NUMA_NODE,
    )


def _choose_reserved(topology: Topology, options: CpuPolicyOptions, number: int, listed: CpuSet) -> CpuSet:
    """Return the CPUs that no container gets for itself: the listed ones, or the first the policy takes."""
    if not listed and number <= len(topology.online):
        return CpuAssigner(topology).take(topology.online, number, options).cpus
    if len(listed) != number:
        raise OptionError(
            "[cpumanager] unable to reserve the required amount of CPUs "
            f"(size of {listed} did not equal {number})"
        )
    for cpu in listed - topology.online:
        raise OptionError(
            "[cpumanager] unable to build the reserved physical CPUs from the reserved set: "
            f"unknown CPU ID: {cpu}"
        )
    return listed
