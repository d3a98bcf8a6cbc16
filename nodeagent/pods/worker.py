"""One pod's worker: looks at what is, takes the next step towards what should be, and says how it stands."""

import asyncio
import shutil
import signal
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from nodeagent.api.meta import format_time
from nodeagent.api.pod import Container, Pod, PodStatus
from nodeagent.api.qos import oom_score_adj
from nodeagent.api.resources import is_restartable_init
from nodeagent.cgroup.errors import CgroupError
from nodeagent.pods import lifecycle, status
from nodeagent.pods.containers import forget_pod
from nodeagent.pods.launch import LaunchError, container_id, container_spec, pod_log_directory
from nodeagent.pods.lifecycle import Plan, Start, has_ended
from nodeagent.pods.record import (
    KIND,
    Failure,
    PodRecord,
    encode,
    may_ever_retry,
    may_retry,
    retry_delay_seconds,
    waits_for_room,
)
from nodeagent.pods.record import grace_seconds as own_grace_seconds
from nodeagent.pods.services import Refusal, Services
from nodeagent.pods.unsupported import unsupported
from nodeagent.runtime.process import RuntimeFault, StartError
from nodeagent.runtime.spec import ContainerRecord
from nodeagent.store import StoreError

# A step that failed (a busy cgroup, a keeper that restarts) is tried again after this, doubling.
FIRST_RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 30.0
END_IS_NEWS_SECONDS = 1.0


@dataclass(slots=True)
class _Stopping:
    """A pod on its way out: to be forgotten when `delete` is set, else to rest as Failed."""

    grace_seconds: float
    delete: bool
    deadline: datetime | None = None


class PodWorker:
    """Drives one pod; what it decides follows from its record, its containers' records and the clock."""

    def __init__(self, record: PodRecord, services: Services) -> None:
        self.record = record
        self.gone = False
        self._services = services
        self._stopping: _Stopping | None = None
        self._wake = asyncio.Event()
        self._failures = 0
        self._released = False
        self._is_stored = False

    @property
    def pod(self) -> Pod:
        return self.record.pod

    @property
    def is_stopping(self) -> bool:
        return self._stopping is not None

    @property
    def is_deleting(self) -> bool:
        return self._stopping is not None and self._stopping.delete

    @property
    def holds_resources(self) -> bool:
        """Admitted, and not yet given back: an evicted pod holds on until its processes are gone."""
        return self.record.admitted and not self._released

    @property
    def waits(self) -> bool:
        """Not here yet, or not any more, and to be tried again."""
        failure = self.record.failure
        is_over = self.record.outcome is not None or (failure is not None and not may_ever_retry(self.record))
        return not (self.holds_resources or self.is_deleting or is_over)

    @property
    def is_finished(self) -> bool:
        """Say whether all its containers have ended for good, though the worker may not have seen it yet."""
        now = self._services.clock.now()
        return lifecycle.plan(self.pod, self._records(), self.record.backoffs, now).outcome is not None

    def wake(self) -> None:
        """Look again soon: something about the pod has changed."""
        self._wake.set()

    def delete(self, grace_seconds: float | None = None) -> None:
        """End the pod, with its own grace period or another one, and forget it; again: hasten that."""
        before = self._stopping
        grace = own_grace_seconds(self.pod) if grace_seconds is None else grace_seconds
        hastens = before is None or (grace_seconds is not None and grace < before.grace_seconds)
        if hastens:
            self._stopping = _Stopping(grace, delete=True)
        elif before is not None and not before.delete:
            before.delete = True
        else:
            # Every wake would ask the containers to end once more.
            return
        self._wake.set()

    def evict(self, failure: Failure, grace_seconds: float) -> None:
        """End the pod and keep it as Failed; with no grace its processes are killed before this returns."""
        if grace_seconds <= 0:
            self._services.cgroups.kill(self.pod)
        self._stopping = _Stopping(grace_seconds, delete=self._stopping is not None and self._stopping.delete)
        self._fail(msgspec.structs.replace(failure, grace_seconds=grace_seconds))
        try:
            self._store()
        except StoreError as error:
            self._services.events.pod(self.pod, "FailedSync", f"eviction not stored: {error}", warning=True)
        self._wake.set()

    async def run(self) -> None:
        """Work until the pod is gone."""
        while not self.gone:
            self._wake.clear()
            delay = await self.step()
            # Where a step wants no pause, the others have their turn: the runtime's news above all.
            with suppress(TimeoutError):
                async with asyncio.timeout(0 if self.gone else delay):
                    await self._wake.wait()

    async def step(self) -> float | None:
        """Look, take the next step, and return in how many seconds to look again (None: when woken)."""
        began = self._services.clock.monotonic()
        operation = "sync" if self._stopping is None else "terminating"
        try:
            delay = await (self._stop() if self._stopping is not None else self._advance())
            self._store()
        except (CgroupError, RuntimeFault, StoreError, OSError) as error:
            self._failures += 1
            self._services.events.pod(self.pod, "FailedSync", f"error syncing pod: {error}", warning=True)
            return min(FIRST_RETRY_SECONDS * float(1 << min(self._failures - 1, 10)), LONGEST_RETRY_SECONDS)
        self._failures = 0
        self._services.observer.pod_synced(operation, self._services.clock.monotonic() - began)
        return delay

    async def _advance(self) -> float | None:
        """Take the next step of a pod that should be here; return when to look again without being woken."""
        if self.record.failure is not None:
            return await self._rest(self.record.failure)
        if self.record.outcome is not None:
            await self._release()
            return None
        if not self.record.admitted and not self._admit():
            return 0
        await self._services.cgroups.ensure_pod(self.pod)
        now = self._services.clock.now()
        plan = lifecycle.plan(self.pod, self._records(), self.record.backoffs, now)
        if plan.stop:
            self._stopping = _Stopping(own_grace_seconds(self.pod), delete=False)
            return 0
        if plan.outcome is not None:
            await self._release()
            self._save(outcome=plan.outcome)
        self._publish(plan)
        for start in plan.start:
            if self.is_stopping:
                return 0
            await self._start(start)
        if plan.start:
            return 0
        self._report_backoff(plan)
        return plan.recheck_seconds

    def _admit(self) -> bool:
        refusal = self._services.admit(self.pod)
        if isinstance(refusal, Pod):
            self._save(pod=refusal, admitted=True)
            if ignored := unsupported(self.pod).ignored:
                message = f"not done by this node yet, and left out: {', '.join(ignored)}"
                self._services.events.pod(self.pod, "NotHonoured", message, warning=True)
            return True
        self._services.events.pod(self.pod, refusal.reason, refusal.message, warning=True)
        self._services.observer.pod_refused(refusal.reason)
        self._fail(self._rejected(refusal))
        return False

    async def _rest(self, failure: Failure) -> float | None:
        """Wait out a refusal or an eviction, then begin afresh if the node lets the pod return."""
        if self._live():
            if self._released:
                # Its processes are gone, and the runtime is about to say so.
                return END_IS_NEWS_SECONDS
            # An agent before this one began to end it.
            spent = (self._services.clock.now() - failure.at).total_seconds()
            self._stopping = _Stopping(max(failure.grace_seconds - spent, 0), delete=False)
            return 0
        await self._release()
        now = self._services.clock.now()
        ended = self._failed_status(failure, now)
        if ended != self.pod.status:
            self._save(pod_status=ended)
        if not may_retry(self.record, now) or (failure.evicted and not self._services.may_return()):
            if not may_ever_retry(self.record):
                return None
            waited = (now - failure.at).total_seconds()
            return max(1.0, retry_delay_seconds(self.record) - waited)
        if failure.evicted:
            await self._forget()
            self._released = False
            self._save(
                failure=None,
                admitted=False,
                backoffs={},
                failed_starts={},
                generation=self.record.generation + 1,
            )
        elif isinstance(answer := self._services.admit(self.pod), Pod):
            self._released = False
            self._save(failure=None, pod=answer, admitted=True, retries=0)
        else:
            self._fail(self._rejected(answer))
        return 0

    async def _start(self, start: Start) -> None:
        container, services = start.container, self._services
        generation = self.record.generation
        identifier = container_id(self.record.uid, generation, container.name, start.attempt)
        try:
            spec = container_spec(
                container,
                self.pod,
                services.launch,
                container_id=identifier,
                attempt=start.attempt,
                oom_score_adj=oom_score_adj(self.pod, container, services.memory_capacity_bytes),
                cgroup=services.cgroups.leaf(self.pod, identifier),
                pod_cgroup=services.cgroups.slice(self.pod),
                devices=services.devices_of(self.record.uid, container.name),
            )
        except LaunchError as error:
            services.events.pod(self.pod, "Failed", f"Error: {error}", warning=True)
            now = services.clock.now()
            reason = "CreateContainerConfigError"
            self._fail(Failure(reason=reason, message=str(error), at=now, final=True))
            return
        services.starting(self.pod, container.name)
        if start.attempt > 0:
            now = services.clock.now()
            backoff = lifecycle.next_backoff(
                self.record.backoffs.get(container.name), now, services.longest_backoff_seconds
            )
            self._save(backoffs={**self.record.backoffs, container.name: backoff})

        async def attach(pid: int) -> None:
            await services.cgroups.attach(self.pod, container, spec.cgroup, pid)

        try:
            services.records.update(await services.runtime.start(spec, attach))
        except StartError as error:
            services.observer.container_not_started(self._container_type(container), error.reason)
            services.events.pod(self.pod, "Failed", f"Error: {error}", warning=True)
            stamp = format_time(services.clock.now())
            failed = ContainerRecord(
                spec=spec,
                pid=0,
                state="exited",
                started_at=stamp,
                finished_at=stamp,
                exit_code=StartError.exit_code,
                message=str(error),
            )
            self._save(failed_starts={**self.record.failed_starts, container.name: failed})
        else:
            services.observer.container_started(self._container_type(container))
            services.events.pod(self.pod, "Started", f"Container started: {container.name}")

    async def _stop(self) -> float | None:
        """Take the next step of a pod that must end."""
        stopping = self._stopping
        assert stopping is not None
        live = self._live()
        now = self._services.clock.now()
        if live and stopping.grace_seconds > 0:
            if stopping.deadline is None:
                stopping.deadline = now + timedelta(seconds=stopping.grace_seconds)
                self._mark_terminating(stopping)
            for record in self._next_to_signal(live):
                await self._services.runtime.signal(record.spec.container_id, signal.SIGTERM)
            if now < stopping.deadline:
                return (stopping.deadline - now).total_seconds()
        await self._release()
        if not stopping.delete:
            self._stopping = None
            return 0
        await self._forget()
        logs = pod_log_directory(self.pod, self._services.launch.log_directory)
        await asyncio.to_thread(shutil.rmtree, logs, ignore_errors=True)
        meta = self.pod.metadata
        self._services.store.delete(KIND, meta.namespace, meta.uid)
        self._services.gone(self.pod)
        self.gone = True
        return None

    async def _release(self) -> None:
        """Kill what is left of the pod, remove its cgroups, give back what it held; once is enough."""
        if self._released:
            return
        await self._services.cgroups.remove_pod(self.pod)
        self._services.release(self.record.uid)
        self._released = True

    async def _forget(self) -> None:
        await forget_pod(self._services.runtime, self._services.records, self.record.uid)

    def _next_to_signal(self, live: tuple[ContainerRecord, ...]) -> tuple[ContainerRecord, ...]:
        """Return whom to ask to end now: the sidecars only when all the others are gone."""
        sidecars = {c.name for c in self.pod.spec.init_containers if is_restartable_init(c)}
        others = tuple(record for record in live if record.spec.container_name not in sidecars)
        return others or live

    def _records(self) -> tuple[ContainerRecord, ...]:
        return (*self._services.records.of(self.record.uid), *self.record.failed_starts.values())

    def _live(self) -> tuple[ContainerRecord, ...]:
        return tuple(record for record in self._records() if not has_ended(record))

    def _container_type(self, container: Container) -> str:
        return "init_container" if container in self.pod.spec.init_containers else "container"

    def _mark_terminating(self, stopping: _Stopping) -> None:
        grace = stopping.grace_seconds
        self._services.events.pod(self.pod, "Killing", f"Stopping containers, grace period {grace:g}s")
        if stopping.delete and stopping.deadline is not None:
            meta = msgspec.structs.replace(
                self.pod.metadata,
                deletion_timestamp=format_time(stopping.deadline),
                deletion_grace_period_seconds=int(grace),
            )
            self._save(pod=msgspec.structs.replace(self.pod, metadata=meta))

    def _rejected(self, refusal: Refusal) -> Failure:
        message = f"Pod was rejected: {refusal.message}"
        now = self._services.clock.now()
        return Failure(reason=refusal.reason, message=message, at=now, nominated=refusal.nominated)

    def _fail(self, failure: Failure) -> None:
        failed = self._failed_status(failure, self._services.clock.now())
        retries = self.record.retries + (not failure.nominated)
        self._save(failure=failure, retries=retries, pod_status=failed)

    def _failed_status(self, failure: Failure, now: datetime) -> PodStatus:
        if waits_for_room(self.record, failure):
            node_name = self._services.launch.node_name if failure.nominated else None
            return status.unscheduled(self.pod, failure.message, node_name, now)
        known = self._status(Plan(outcome="Failed", initialized=True), now)
        return status.failed(known, self.pod.status, failure.reason, failure.message, failure.disruption, now)

    def _status(self, plan: Plan, now: datetime) -> PodStatus:
        return status.pod_status(
            self.pod,
            self._records(),
            plan,
            start_time=self.record.created,
            now=now,
            host_ip=self._services.launch.host_ip,
        )

    def _publish(self, plan: Plan) -> None:
        now = self._services.clock.now()
        before = self.pod.status
        current = self._status(plan, now)
        if current != before:
            self._save(pod_status=current)
        if current.phase == "Running" and before.phase != "Running":
            self._services.observer.pod_started((now - self.record.created).total_seconds())

    def _save(self, pod_status: PodStatus | None = None, **changes: object) -> None:
        if pod_status is not None:
            changes["pod"] = msgspec.structs.replace(self.pod, status=pod_status)
        self.record = msgspec.structs.replace(self.record, **changes)
        self._is_stored = False

    def _store(self) -> None:
        """Write the record once for all that a step changed in it."""
        if not self._is_stored and not self.gone:
            meta = self.pod.metadata
            self._services.store.put(KIND, meta.namespace, meta.uid, encode(self.record))
            self._services.publish(self.pod)
            self._is_stored = True

    def _report_backoff(self, plan: Plan) -> None:
        for waiting in plan.waiting.values():
            if waiting.reason == "CrashLoopBackOff":
                message = waiting.message[0].upper() + waiting.message[1:]
                self._services.events.pod(self.pod, "BackOff", message, warning=True)
