"""The Node that this agent is: what it has, which pressures it is under, whether it goes down."""

from dataclasses import replace

from nodeagent.api.quantity import ResourceList
from nodeagent.clock import Clock
from nodeagent.eviction.signals import Condition
from nodeagent.node import NodeFacts, node_object
from nodeagent.scheduling.fit import NodeView


class OwnNode:
    """Keeps the object in step with what is known; times of transitions carry over."""

    def __init__(self, facts: NodeFacts, clock: Clock) -> None:
        self.facts = facts
        self.conditions: frozenset[Condition] = frozenset()
        self.is_shutting_down = False
        self._clock = clock
        self.object = node_object(facts, (), None, clock.now())

    def refresh(self) -> None:
        """Bring the object up to date, its heartbeat included."""
        self.object = node_object(
            self.facts,
            self.conditions,
            self.object,
            self._clock.now(),
            shutting_down=self.is_shutting_down,
        )

    def resize(self, capacity: ResourceList, allocatable: ResourceList) -> None:
        """The machine has another size now."""
        self.facts = replace(self.facts, capacity=capacity, allocatable=allocatable)

    def view(self) -> NodeView:
        """Return what admission compares pods with."""
        facts = self.facts
        return NodeView(facts.name, facts.allocatable, facts.labels, self.object.spec.taints)
