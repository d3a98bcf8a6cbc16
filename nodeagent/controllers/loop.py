"""Carries out what the controllers decide, whenever something that they look at has changed."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence

from nodeagent.api.meta import format_time
from nodeagent.clock import Clock
from nodeagent.cluster.cluster import STATUS, Cluster
from nodeagent.cluster.errors import ApiError
from nodeagent.cluster.kinds import (
    DEPLOYMENT,
    JOB,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from nodeagent.controllers import deployments, jobs, replicas, stateful_sets
from nodeagent.controllers.objects import Action, Create, Delete, Json, Scale, Tell, controller_of, uid_of
from nodeagent.store import Change

logger = logging.getLogger(__name__)

OWNERS = (DEPLOYMENT, REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET, JOB)
MANAGED = (REPLICA_SET, POD)
SETTLE_SECONDS = 0.1
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 5.0, 300.0


class ControllerLoop:
    """One client of the API among others; what is refused is tried again, ever more seldom."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._wake = asyncio.Event()
        self._wake.set()
        # An agent that was away may have left what nobody manages any more.
        self._had_owners = True
        self._refused: dict[str, tuple[float, float]] = {}
        """By the owner's UID: when to try again, and how long the last wait was."""
        self._resources = {kind.resource for kind in (*OWNERS, POD)}
        cluster.listeners.append(self._note)

    async def run(self) -> None:
        """Go on until cancelled."""
        while True:
            self._wake.clear()
            seconds = self.look()
            try:
                async with asyncio.timeout(seconds):
                    await self._wake.wait()
            except TimeoutError:
                continue
            await self._clock.sleep(SETTLE_SECONDS)

    def look(self) -> float | None:
        """Do what is to be done now; return in how many seconds something refused is tried again."""
        objects = {kind.resource: self._cluster.list(kind) for kind in OWNERS}
        has_owners = any(objects.values())
        if not has_owners and not self._had_owners:
            return None
        self._had_owners = has_owners
        objects[POD.resource] = self._cluster.list(POD)
        now = self._clock.monotonic()
        present = {uid_of(item) for items in objects.values() for item in items}
        self._refused = {uid: wait for uid, wait in self._refused.items() if uid in present}
        for action, owner in self._decide(objects, present):
            if self._refused.get(owner, (0.0, 0.0))[0] <= now:
                self._act(action, owner, now)
        waits = [due - now for due, _ in self._refused.values() if due > now]
        return min(waits, default=None)

    def _decide(
        self, objects: Mapping[str, Sequence[Json]], present: set[str]
    ) -> Iterator[tuple[Action, str]]:
        pods, sets = objects[POD.resource], objects[REPLICA_SET.resource]
        stamp = format_time(self._clock.now())
        for kind in MANAGED:
            for item in objects[kind.resource]:
                owner = controller_of(item)
                if owner is not None and owner.get("uid") not in present and _is_ours(owner):
                    yield Delete(kind, item), uid_of(item)
        for deployment in objects[DEPLOYMENT.resource]:
            yield from ((each, uid_of(deployment)) for each in deployments.decide(deployment, sets))
        for kind in (REPLICA_SET, REPLICATION_CONTROLLER):
            for owner in objects[kind.resource]:
                yield from ((each, uid_of(owner)) for each in replicas.decide(kind, owner, pods))
        for owner in objects[STATEFUL_SET.resource]:
            yield from ((each, uid_of(owner)) for each in stateful_sets.decide(owner, pods))
        for owner in objects[JOB.resource]:
            yield from ((each, uid_of(owner)) for each in jobs.decide(owner, pods, stamp))

    def _act(self, action: Action, owner: str, now: float) -> None:
        try:
            self._do(action)
        except ApiError as error:
            if error.reason in ("NotFound", "Conflict", "AlreadyExists"):
                # Somebody was quicker: the change that this was has woken us already.
                return
            wait = min(2 * self._refused.get(owner, (0.0, FIRST_RETRY_SECONDS / 2))[1], LONGEST_RETRY_SECONDS)
            self._refused[owner] = now + wait, wait
            logger.warning("not done, tried again in %g s: %s", wait, error)
        else:
            if isinstance(action, Create):
                self._refused.pop(owner, None)

    def _do(self, action: Action) -> None:
        meta = action.object["metadata"]
        namespace, name = meta.get("namespace", ""), meta.get("name", "")
        match action:
            case Create(kind, item):
                self._cluster.create(kind, namespace, item)
            case Delete(kind):
                if "deletionTimestamp" not in meta:
                    self._cluster.delete(kind, namespace, name)
            case Scale(kind, _, count):
                self._cluster.modify(
                    kind, namespace, name, lambda old: {**old, "spec": {**old["spec"], "replicas": count}}
                )
            case Tell(kind, item, status) if item.get("status") != status:
                self._cluster.modify(
                    kind, namespace, name, lambda old: {**old, "status": status}, subresource=STATUS
                )

    def _note(self, changes: Sequence[Change]) -> None:
        if any(change.key.resource in self._resources for change in changes):
            self._wake.set()


def _is_ours(reference: Json) -> bool:
    return any(
        (reference.get("kind"), reference.get("apiVersion")) == (kind.kind, kind.api_version)
        for kind in OWNERS
    )
