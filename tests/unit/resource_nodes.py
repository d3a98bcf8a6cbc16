"""A small node for the tests of the resource managers."""

from nodeagent.api.quantity import Quantity
from nodeagent.hardware.topology import Topology, regular_topology
from nodeagent.resources.managers import Admission, ManagerSettings

GIB = 1024**3
RESERVED = {"cpu": Quantity.parse("1"), "memory": Quantity.parse("2Gi")}


def settings(**changes: object) -> ManagerSettings:
    return ManagerSettings(**{"cpu_manager_policy": "static", "node_reservation": RESERVED, **changes})  # type: ignore[arg-type]


def machine(memory: int = 8 * GIB) -> Topology:
    """Two sockets with a NUMA node of four two-thread cores each: 0-3,8-11 and 4-7,12-15."""
    return regular_topology(2, 4, 2, memory_bytes=memory)


def admitted(admission: Admission) -> Admission:
    assert admission.admitted, admission.explanation
    return admission


def memory_settings(**changes: object) -> ManagerSettings:
    reserved = tuple((node, {"memory": Quantity.parse("1Gi")}) for node in (0, 1))
    return settings(memory_manager_policy="Static", reserved_memory=reserved, **changes)
