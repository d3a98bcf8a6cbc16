"""The file `memory_manager_state`, in kubelet's format."""

from collections.abc import Mapping

import msgspec

from nodeagent.resources.checkpoint import StateFile, checksum, go_map
from nodeagent.resources.memory_state import Block, Blocks, Machine, MemoryState, MemoryTable, NodeMemory

FILE_NAME = "memory_manager_state"


class _Table(msgspec.Struct, rename="camel"):
    total: int = 0
    system_reserved: int = 0
    allocatable: int = 0
    reserved: int = 0
    free: int = 0


class _Node(msgspec.Struct, rename="camel"):
    number_of_assignments: int = 0
    memory_map: dict[str, _Table] = {}
    cells: list[int] = []


class _Block(msgspec.Struct):
    nodes: list[int] = msgspec.field(default_factory=list, name="numaAffinity")
    kind: str = msgspec.field(default="", name="type")
    size: int = 0


class _Checkpoint(msgspec.Struct, rename="camel"):
    policy_name: str = ""
    machine_state: dict[int, _Node] = {}
    entries: dict[str, dict[str, list[_Block]]] = {}
    checksum: int = 0


def encode(policy: str, state: MemoryState) -> bytes:
    """Return the file's content."""
    checkpoint = _Checkpoint(policy, _nodes(state.machine), _entries(state.blocks))
    checkpoint.checksum = _checksum_of("MemoryManagerCheckpoint", checkpoint)
    # JSON keys are sorted as texts, so that node 10 comes before node 2.
    content: dict[str, object] = {
        "policyName": policy,
        "machineState": {
            str(node): checkpoint.machine_state[node] for node in sorted(checkpoint.machine_state, key=str)
        },
        "entries": checkpoint.entries,
        "checksum": checkpoint.checksum,
    }
    if not checkpoint.entries:
        del content["entries"]
    return msgspec.json.encode(content)


def load(file: StateFile, policy: str) -> MemoryState | None:
    """Read the file, None where there is none. Raises StateFileError."""
    data = file.read()
    if data is None:
        return None
    try:
        checkpoint = msgspec.json.decode(data, type=_Checkpoint)
        if checkpoint.checksum not in (
            0,
            _checksum_of("MemoryManagerCheckpoint", checkpoint),
            _checksum_of("MemoryManagerCheckpointV1", checkpoint),
        ):
            raise ValueError("checkpoint is corrupted")
        if checkpoint.policy_name != policy:
            raise ValueError(
                f'[memorymanager] configured policy "{policy}" differs from '
                f'state checkpoint policy "{checkpoint.policy_name}"'
            )
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise file.error(str(error)) from None
    return MemoryState(_machine(checkpoint.machine_state), _blocks(checkpoint.entries))


def _nodes(machine: Machine) -> dict[int, _Node]:
    return {
        number: _Node(
            node.assignments,
            {
                kind: _Table(
                    table.total, table.system_reserved, table.allocatable, table.reserved, table.free
                )
                for kind, table in sorted(node.tables.items())
            },
            list(node.cells),
        )
        for number, node in sorted(machine.items())
    }


def _machine(nodes: Mapping[int, _Node]) -> Machine:
    return {
        number: NodeMemory(
            node.number_of_assignments,
            tuple(node.cells),
            {
                kind: MemoryTable(
                    table.total, table.system_reserved, table.allocatable, table.reserved, table.free
                )
                for kind, table in node.memory_map.items()
            },
        )
        for number, node in nodes.items()
    }


def _entries(blocks: Blocks) -> dict[str, dict[str, list[_Block]]]:
    return {
        uid: {
            name: [_Block(list(block.nodes), block.kind, block.size) for block in listed]
            for name, listed in sorted(containers.items())
        }
        for uid, containers in sorted(blocks.items())
    }


def _blocks(entries: Mapping[str, Mapping[str, list[_Block]]]) -> Blocks:
    return {
        uid: {
            name: tuple(Block(tuple(block.nodes), block.kind, block.size) for block in listed)
            for name, listed in containers.items()
        }
        for uid, containers in entries.items()
    }


def _checksum_of(struct: str, checkpoint: _Checkpoint) -> int:
    nodes = " ".join(
        f"{number}:{_go_node(node)}" for number, node in sorted(checkpoint.machine_state.items())
    )
    entries = {
        uid: go_map({name: f"[{' '.join(map(_go_block, blocks))}]" for name, blocks in containers.items()})
        for uid, containers in checkpoint.entries.items()
    }
    return checksum(
        f"(*state.{struct}){{PolicyName:(string){checkpoint.policy_name} "
        f"MachineState:(state.NUMANodeMap)map[{nodes}] "
        f"Entries:(state.ContainerMemoryAssignments){go_map(entries)} Checksum:(checksum.Checksum)0}}"
    )


def _go_node(node: _Node) -> str:
    tables = {
        kind: (
            f"<*>{{TotalMemSize:(uint64){table.total} SystemReserved:(uint64){table.system_reserved} "
            f"Allocatable:(uint64){table.allocatable} Reserved:(uint64){table.reserved} "
            f"Free:(uint64){table.free}}}"
        )
        for kind, table in node.memory_map.items()
    }
    return (
        f"<*>{{NumberOfAssignments:(int){node.number_of_assignments} "
        f"MemoryMap:(map[v1.ResourceName]*state.MemoryTable){go_map(tables)} "
        f"Cells:([]int)[{' '.join(map(str, node.cells))}]}}"
    )


def _go_block(block: _Block) -> str:
    return (
        f"{{NUMAAffinity:([]int)[{' '.join(map(str, block.nodes))}] "
        f"Type:(v1.ResourceName){block.kind} Size:(uint64){block.size}}}"
    )
