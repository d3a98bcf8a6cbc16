"""What should be on this node: follows the manifests and the API, and says what is wrong with them."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from nodeagent.clock import Clock
from nodeagent.local_api import LocalApi
from nodeagent.pods.admission import NodeAdmission
from nodeagent.pods.events import EventRecorder
from nodeagent.pods.manager import PodManager
from nodeagent.pods.record import PodRecord
from nodeagent.pods.team_quotas import TeamQuotas
from nodeagent.sources.manifests import ManifestError, ManifestReader, Manifests
from nodeagent.sources.watch import changes
from nodeagent.store import StoreError

logger = logging.getLogger(__name__)

STORE_RETRY_SECONDS = 10.0


class DesiredState:
    """Makes the pods and policies of both sources what should be."""

    def __init__(
        self,
        directory: Path | None,
        manifests: ManifestReader,
        api: LocalApi,
        admission: NodeAdmission,
        quotas: TeamQuotas,
        manager: PodManager,
        events: EventRecorder,
        clock: Clock,
        taken: Callable[[], None],
    ) -> None:
        self.look = asyncio.Event()
        """Set to have the manifests read again at once."""
        self._directory = directory
        self._manifests = manifests
        self._api = api
        self._admission = admission
        self._quotas = quotas
        self._manager = manager
        self._events = events
        self._clock = clock
        self._taken = taken
        self._reported: frozenset[ManifestError] = frozenset()

    async def follow_manifests(self, period_seconds: float) -> None:
        """Read the manifests whenever they change, and every period."""
        async for _ in changes(self._directory, period_seconds, self.look):
            self.take(self._manifests.read())
            self._taken()

    async def follow_api(self) -> None:
        """Take in what the API wants whenever that changes."""
        while True:
            await self._api.pods.changed.wait()
            self._api.pods.changed.clear()
            try:
                self.take(self._manifests.last)
            except StoreError as error:
                logger.error("the API's pods are looked at again later: %s", error)
                self._api.pods.changed.set()
                await self._clock.sleep(STORE_RETRY_SECONDS)

    def take(self, manifests: Manifests) -> None:
        """Make the manifests what should be, and report once what is wrong with them."""
        for error in set(manifests.errors) - self._reported:
            self._events.node("InvalidManifest", error.text, warning=True)
        self._reported = frozenset(manifests.errors)
        self._admission.policies = self._api.policies(manifests)
        self._quotas.groups = self._admission.policies.elastic_quotas
        now = self._clock.now()
        desired = {
            uid: PodRecord(pod=pod, source=manifests.files[uid], created=now)
            for uid, pod in manifests.pods.items()
        }
        self._api.set_desired(desired, manifests, self._manager)
