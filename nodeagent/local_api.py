"""The Kubernetes API of this node: its objects, the pods that it wants here, the Node that it shows."""

import logging
from collections.abc import Iterable
from pathlib import Path

from aiohttp import web

from nodeagent.admission.elastic_quota.quotas import Quotas
from nodeagent.admission.elastic_quota.report import status_change
from nodeagent.admission.policies import Policies
from nodeagent.api.node import Node
from nodeagent.api.pod import Pod
from nodeagent.clock import Clock
from nodeagent.cluster.cluster import Cluster
from nodeagent.cluster.policies import combined
from nodeagent.config.schema import AgentConfiguration
from nodeagent.controllers.loop import ControllerLoop
from nodeagent.node import LONGEST_SILENCE_SECONDS, is_worth_telling
from nodeagent.pods.containers import ContainerRecords
from nodeagent.pods.logs import ContainerLog, find_log
from nodeagent.pods.manager import PodManager
from nodeagent.pods.record import PodRecord
from nodeagent.server.api.app import create_api_app
from nodeagent.server.api.logs import LogEndpoint
from nodeagent.server.api.unix import UnixListener, peer
from nodeagent.server.api.usage import Summarise
from nodeagent.server.api.who import Who
from nodeagent.sources.cluster_pods import ClusterPods
from nodeagent.sources.manifests import Manifests
from nodeagent.store import Store, StoreError

logger = logging.getLogger(__name__)


class LocalApi:
    """What the agent has to do with the API."""

    def __init__(
        self, store: Store, clock: Clock, node_name: str, records: ContainerRecords, summarise: Summarise
    ) -> None:
        self.cluster = Cluster(store.resources, clock)
        self.pods = ClusterPods(self.cluster, node_name)
        self._clock = clock
        self._records = records
        self._summarise = summarise
        self._told: Node | None = None

    def begin(self, node: Node, pods: Iterable[Pod]) -> None:
        """Make what everybody expects to be there, and say what there is; raises StoreError."""
        self.cluster.begin()
        self.tell_node(node)
        self.pods.begin(pods)

    async def listen(self) -> UnixListener:
        """Serve root on this machine; raises ListenError."""
        return await UnixListener(self._app(peer)).start()

    async def control(self) -> None:
        """Run the controllers until cancelled."""
        await ControllerLoop(self.cluster, self._clock).run()

    async def serve_network(self, own: AgentConfiguration) -> None:
        """Serve holders of certificates until cancelled, where a port is set."""
        if own.api_port:
            from nodeagent.server.access.tls import TlsServer, certificate_holder

            app = self._app(certificate_holder)
            directory = Path(own.state_directory) / "pki"
            server = TlsServer(app, directory, own.api_address, own.api_port, own.node_name, self._clock)
            await server.run()

    def _app(self, who: Who) -> web.Application:
        def find(pod_uid: str, container: str, previous: bool) -> ContainerLog | None:
            return find_log(self._records, pod_uid, container, previous=previous)

        logs = LogEndpoint(self.cluster, find, self._clock.now)
        others = {("pods", "log"): logs.answer}
        return create_api_app(self.cluster, who, self._clock.now, others, self._summarise)

    def tell_node(self, node: Node) -> None:
        """Show the Node if it has changed; its heartbeat alone is shown every five minutes."""
        if is_worth_telling(self._told, node):
            try:
                reports = self.cluster.reports
                reports.publish_node(node)
                reports.renew_lease(node.metadata.name, self._clock.now(), 2 * LONGEST_SILENCE_SECONDS)
                self._told = node
            except StoreError as error:
                logger.error("the Node is not stored: %s", error)

    def tell_groups(self, quotas: Quotas) -> None:
        """Show what the groups of ElasticQuotas may use and use, where that has changed."""
        for changed in filter(None, map(status_change, quotas.groups())):
            try:
                self.cluster.reports.publish_group(changed)
            except StoreError as error:
                logger.error("ElasticQuota %s is not stored: %s", changed.metadata.name, error)

    def policies(self, manifests: Manifests) -> Policies:
        """Return the policies of the manifests and of the API as one."""
        self.cluster.policies.limited_resources = manifests.policies.limited_resources
        self.cluster.policies.groups_of_manifests = manifests.policies.elastic_quotas
        return combined(manifests.policies, self.cluster.policies.current())

    def set_desired(self, desired: dict[str, PodRecord], manifests: Manifests, manager: PodManager) -> None:
        """Make the manifests' pods and the API's what should be; raises StoreError."""
        for uid, grace_seconds in self.pods.leaving(manager.workers):
            manager.delete(uid, grace_seconds)
        everything = desired | self.pods.desired(manager.workers)
        manager.set_desired(everything, self.pods.keeps(manifests.keeps))


def damage_message(moved_to: Path) -> str:
    """Return what an event says of a database that could not be read."""
    return (
        f"the database was damaged and is now {moved_to}: the API begins empty; pods that came by it run on "
        "without being looked after, until the agent starts once more"
    )
