"""Records of the resource managers in plain sentences, and as plain data."""

import dataclasses
from collections.abc import Iterator, Mapping

from nodeagent.hardware.cpuset import CpuSet, bits
from nodeagent.resources.cpu_policy import CpuAllocation
from nodeagent.resources.device_manager import DeviceAllocation
from nodeagent.resources.hints import Hint
from nodeagent.resources.memory_policy import MemoryAllocation
from nodeagent.resources.pod_admission import ContainerDecision, Offer, PodDecision

MOST_SHOWN = 4


def sentences(decision: PodDecision) -> tuple[str, ...]:
    """Say what was asked, what was compared and what decided, container by container."""
    said = [sentence for container in decision.containers for sentence in _of_container(container)]
    if decision.refused:
        who = f"container {decision.refused.container}" if decision.refused.container else "the pod"
        said.append(f"{who} was refused: {decision.reason}: {decision.message}")
        said += (f"{who}: {_of_offer(offer)}" for offer in decision.refused.offers)
        said += (f"{who}: {sentence}" for sentence in decision.situation)
    return tuple(said)


def to_builtins(value: object) -> object:
    """Return a record as dicts, lists and scalars; CPU sets as lists of the kernel's format."""
    if isinstance(value, CpuSet):
        return str(value)
    if isinstance(value, Hint):
        return {"numaNodes": _nodes(value.mask), "preferred": value.preferred}
    if isinstance(value, Offer):
        return {
            "resource": value.resource,
            "preferred": [_nodes(mask) for mask in value.preferred],
            "others": value.others,
            "anywhere": value.anywhere,
        }
    if dataclasses.is_dataclass(value):
        return {
            _camel(field.name): _nodes(content)
            if field.name == "affinity" and isinstance(content, int)
            else to_builtins(content)
            for field in dataclasses.fields(value)
            for content in [getattr(value, field.name)]
        }
    if isinstance(value, Mapping):
        return {key: to_builtins(content) for key, content in value.items()}
    if isinstance(value, tuple | list):
        return [to_builtins(content) for content in value]
    return value


def _of_container(decision: ContainerDecision) -> Iterator[str]:
    who = f"container {decision.container}"
    for offer in decision.offers:
        yield f"{who}: {_of_offer(offer)}"
    if decision.affinity.mask is not None:
        preferred = "" if decision.affinity.preferred else ", which is more than it needs on an empty machine"
        yield f"{who}: placed on {_named(decision.affinity.mask)}{preferred}"
    for allocation in decision.allocations:
        yield f"{who}: {_of_allocation(allocation)}"
    if decision.shared_because:
        yield f"{who}: shares CPUs with others, because {decision.shared_because}"


def _of_offer(offer: Offer) -> str:
    if offer.anywhere:
        return f"{offer.resource} fits any NUMA node"
    if not offer.preferred and not offer.others:
        return f"{offer.resource} fits no set of NUMA nodes now"
    shown = " or ".join(_named(mask) for mask in offer.preferred[:MOST_SHOWN])
    more = f" or {len(offer.preferred) - MOST_SHOWN} more" if len(offer.preferred) > MOST_SHOWN else ""
    wider = f"{offer.others} wider set{'s' * (offer.others != 1)} of nodes" if offer.others else ""
    if not shown:
        return f"{offer.resource} fits only {wider} than it would need on an empty machine"
    return f"{offer.resource} fits {shown}{more}" + (f" ({wider} would do too)" if wider else "")


def _of_allocation(allocation: object) -> str:
    match allocation:
        case CpuAllocation(kept=True):
            return f"keeps its CPUs {allocation.cpus}"
        case CpuAllocation():
            steps = ", ".join(
                f"{step.units} {','.join(map(str, step.ids))} ({step.cpus})"
                for step in allocation.choice.steps
            )
            return (
                f"got the CPUs {allocation.cpus} for itself, {allocation.requested} of the "
                f"{len(allocation.free)} that were free: {steps}"
            )
        case MemoryAllocation():
            blocks = ", ".join(
                f"{block.size} bytes of {block.kind} on {_named(sum(1 << node for node in block.nodes))}"
                for block in allocation.blocks
            )
            extended = "; the aligned nodes had too little, so more were added" if allocation.extended else ""
            return f"{'keeps' if allocation.kept else 'got'} {blocks}{extended}"
        case DeviceAllocation():
            devices = "; ".join(f"{resource} {', '.join(ids)}" for resource, ids in allocation.ids.items())
            return f"{'keeps' if allocation.kept else 'got'} {devices}"
        case _:
            return str(allocation)


def _named(mask: int) -> str:
    nodes = list(bits(mask))
    return f"NUMA node{'s' * (len(nodes) > 1)} {','.join(map(str, nodes))}"


def _nodes(mask: int | None) -> list[int] | None:
    return None if mask is None else list(bits(mask))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)
