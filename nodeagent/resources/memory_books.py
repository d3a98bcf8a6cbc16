"""Do the stored books of the NUMA nodes agree with the blocks in them, and with this machine?"""

from collections.abc import Iterator, Mapping

from nodeagent.resources.memory_state import MEMORY, Block, Machine, MemoryState, NodeMemory

ACCEPTED_DRIFT_BYTES = 64 * 1024 * 1024
"""A kernel gives a NUMA node a few MB more or less at each boot."""


def start(unused: Machine, stored: MemoryState) -> tuple[MemoryState, str]:
    """Return the state to begin with, and what is wrong with the stored one (empty: nothing)."""
    if not stored.machine:
        if stored.blocks:
            return stored, "[memorymanager] machine state can not be empty when it has memory assignments"
        return MemoryState(unused), ""
    problem = _impossible_block(unused, stored)
    if not problem and differences(unused, stored):
        problem = "[memorymanager] the expected machine state is different from the real one"
    return stored, problem


def rebuild(unused: Machine, stored: MemoryState) -> MemoryState:
    """Work the books out from the blocks alone."""
    state = MemoryState(unused, stored.blocks)
    groups: dict[int, set[tuple[int, ...]]] = {}
    for _, _, block in _blocks(stored):
        state = state.reserve(block.nodes, block.kind, block.size)
        for node in block.nodes:
            groups.setdefault(node, set()).add(block.nodes)
    # Blocks do not tell in which order they came, and the last one decides about the group.
    machine = {
        number: NodeMemory(node.assignments, stored.machine[number].cells, node.tables)
        if number in stored.machine and stored.machine[number].cells in groups.get(number, ())
        else node
        for number, node in state.machine.items()
    }
    return MemoryState(machine, stored.blocks)


def differences(unused: Machine, stored: MemoryState) -> tuple[str, ...]:
    """Say where the stored books differ from those that the blocks and this machine make."""
    expected = rebuild(unused, stored).machine
    if set(expected) != set(stored.machine):
        return (f"the file has the NUMA nodes {sorted(stored.machine)}, the machine has {sorted(expected)}",)
    return tuple(
        f"NUMA node {number}: {what} is {is_} in the file, expected {should}"
        for number in expected
        for what, is_, should in _compare(_facts(stored.machine, number), _facts(expected, number))
    )


def adapt_to_drift(unused: Machine, stored: MemoryState) -> MemoryState | None:
    """Return the state with this boot's totals, None where more differs or the blocks do not fit any more."""
    rebuilt = rebuild(unused, stored)
    if set(rebuilt.machine) != set(stored.machine) or not _fits(rebuilt):
        return None
    for number, node in rebuilt.machine.items():
        before = stored.machine[number]
        if (before.assignments, before.cells) != (node.assignments, node.cells):
            return None
        for kind in {*before.tables, *node.tables}:
            if kind not in before.tables or kind not in node.tables:
                return None
            old, new = before.tables[kind], node.tables[kind]
            drift = abs(old.total - new.total)
            allowed = ACCEPTED_DRIFT_BYTES if kind == MEMORY else 0
            if old.system_reserved != new.system_reserved or drift > allowed:
                return None
    return rebuilt


def salvaged(unused: Machine, stored: MemoryState) -> MemoryState:
    """Keep the blocks of every container that this machine has room for."""
    state = MemoryState(unused)
    for uid, containers in stored.blocks.items():
        for name, blocks in containers.items():
            candidate = state.with_blocks(uid, name, blocks)
            if _impossible_block(unused, candidate):
                continue
            for block in blocks:
                candidate = candidate.reserve(block.nodes, block.kind, block.size)
            if _fits(candidate):
                state = candidate
    return state


def _impossible_block(unused: Machine, stored: MemoryState) -> str:
    for uid, name, block in _blocks(stored):
        if any(node not in unused for node in block.nodes):
            trouble = "NUMA that does not exist"
        elif any(block.kind not in unused[node].tables for node in block.nodes):
            trouble = "memory resource that does not exist"
        else:
            continue
        return f"[memorymanager] (pod: {uid}, container: {name}) the memory assignment uses {trouble}"
    return ""


def _facts(machine: Machine, number: int) -> Mapping[str, object]:
    """Within a group only the sums count: which node gave how much depends on the order of events."""
    node = machine[number]
    facts: dict[str, object] = {"number of assignments": node.assignments, "group": list(node.cells)}
    for kind, table in node.tables.items():
        facts[f"{kind} total"] = table.total
        facts[f"{kind} reserved for the system"] = table.system_reserved
        facts[f"{kind} allocatable"] = table.allocatable
        group = [
            machine[cell].tables[kind]
            for cell in node.cells
            if cell in machine and kind in machine[cell].tables
        ]
        facts[f"{kind} reserved"] = sum(table.reserved for table in group)
        facts[f"{kind} free"] = sum(table.free for table in group)
    return facts


def _compare(
    stored: Mapping[str, object], expected: Mapping[str, object]
) -> Iterator[tuple[str, object, object]]:
    for what in dict.fromkeys((*stored, *expected)):
        if stored.get(what) != expected.get(what):
            yield what, stored.get(what, "missing"), expected.get(what, "missing")


def _fits(state: MemoryState) -> bool:
    wanted: dict[str, int] = {}
    for _, _, block in _blocks(state):
        wanted[block.kind] = wanted.get(block.kind, 0) + block.size
    given: dict[str, int] = {}
    for node in state.machine.values():
        for kind, table in node.tables.items():
            given[kind] = given.get(kind, 0) + table.reserved
    return all(given.get(kind) == size for kind, size in wanted.items())


def _blocks(state: MemoryState) -> Iterator[tuple[str, str, Block]]:
    for uid, containers in state.blocks.items():
        for name, blocks in containers.items():
            for block in blocks:
                yield uid, name, block
