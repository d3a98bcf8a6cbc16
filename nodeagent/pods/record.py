"""What the agent remembers of a pod across its own death."""

from datetime import datetime

import msgspec

from nodeagent.api.pod import Pod
from nodeagent.api.typed import decode_hook, encode_hook
from nodeagent.pods.lifecycle import Backoff
from nodeagent.runtime.spec import ContainerRecord

KIND = "PodRecord"
# kubelet's annotation: tells whether a manifest still says the same.
CONTENT_HASH = "kubernetes.io/config.hash"
# The source of pods that came by the API; that of others is their manifest.
API_SOURCE = "api"
FIRST_RETRY_SECONDS = 10.0
LONGEST_RETRY_SECONDS = 300.0
# A pod for which others make room looks this often whether they are gone.
NOMINATED_RETRY_SECONDS = 1.0
DEFAULT_GRACE_SECONDS = 30


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a pod was refused or evicted, and what its status says of it."""

    reason: str
    message: str
    at: datetime
    # A refused pod never ran; an evicted one did, and its containers' records are still there.
    evicted: bool = False
    # Trying again cannot help: the pod itself is at fault.
    final: bool = False
    # The status shows the condition DisruptionTarget.
    disruption: bool = False
    # Others are ending to make room for it.
    nominated: bool = False
    # How long from `at` its processes may take to end.
    grace_seconds: float = 0


class PodRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pod: its spec with the last status, and the bookkeeping that no container record holds.

    `generation` counts how often the pod was begun afresh after an eviction; container ids depend on it.
    """

    pod: Pod
    source: str
    created: datetime
    admitted: bool = False
    generation: int = 0
    failure: Failure | None = None
    retries: int = 0
    outcome: str | None = None
    backoffs: dict[str, Backoff] = {}
    # The last attempt of a container that failed before its first instruction: the runtime keeps none of it.
    failed_starts: dict[str, ContainerRecord] = {}

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def is_over(self) -> bool:
        """Say whether the pod holds no resources any more: refused, evicted, or run to its end."""
        return self.failure is not None or self.outcome is not None


def grace_seconds(pod: Pod) -> float:
    """Return how long the pod's containers may take to end."""
    grace = pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE_SECONDS if grace is None else max(grace, 0)


def retry_delay_seconds(record: PodRecord) -> float:
    """Return how long a failed pod waits before its next try: 10 s, doubling to 5 min."""
    if record.failure is not None and record.failure.nominated:
        return NOMINATED_RETRY_SECONDS
    return min(FIRST_RETRY_SECONDS * float(1 << min(record.retries, 10)), LONGEST_RETRY_SECONDS)


def may_ever_retry(record: PodRecord) -> bool:
    """Say whether waiting can help a failed pod; an evicted one stays evicted if it came by the API
    or has restartPolicy Never."""
    failure = record.failure
    if failure is None or failure.final:
        return False
    stays = record.source == API_SOURCE or record.pod.spec.restart_policy == "Never"
    return not (failure.evicted and stays)


def waits_for_room(record: PodRecord, failure: Failure) -> bool:
    """Say whether a refused pod is Pending, as where a scheduler waits for room, and not Failed."""
    return record.source == API_SOURCE and not failure.evicted and not failure.final


def may_retry(record: PodRecord, now: datetime) -> bool:
    """Say whether a refused or evicted pod may be tried again now."""
    failure = record.failure
    if failure is None or not may_ever_retry(record):
        return False
    return (now - failure.at).total_seconds() >= retry_delay_seconds(record)


def encode(record: PodRecord) -> bytes:
    """Return the stored form."""
    return msgspec.json.encode(record, enc_hook=encode_hook)


def decode(body: bytes) -> PodRecord:
    """Read the stored form; raises msgspec.ValidationError or msgspec.DecodeError."""
    return msgspec.json.decode(body, type=PodRecord, dec_hook=decode_hook)
