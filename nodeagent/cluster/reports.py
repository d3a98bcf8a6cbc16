"""What the node itself says to the API: how its Node stands and its pods, and which pods are gone."""

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import structs

from nodeagent.api.elastic_quota import ElasticQuota
from nodeagent.api.meta import ObjectMeta, format_time
from nodeagent.api.node import Node
from nodeagent.api.pod import Pod
from nodeagent.cluster import codec
from nodeagent.cluster.beginning import LEASE_NAMESPACE
from nodeagent.cluster.deletion import Deletion
from nodeagent.cluster.kinds import ELASTIC_QUOTA, LEASE, NODE, POD, Kind
from nodeagent.cluster.writer import Writer
from nodeagent.store import Key, Resources

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"


class Reports:
    """Writes without admission, and charges quotas all the same; all may raise StoreError."""

    def __init__(self, resources: Resources, writer: Writer, deletion: Deletion) -> None:
        self._resources = resources
        self._writer = writer
        self._deletion = deletion

    def pods(self) -> Sequence[Pod]:
        """Return all pods, decoded."""
        return [pod for _, pod in codec.readable(POD, self._resources.page(POD.resource))]

    def decoded_pod(self, body: bytes) -> Pod:
        """Return a pod as it was stored."""
        pod: Pod = codec.stored(POD, body)
        return pod

    def is_cordoned(self, node: str) -> bool:
        """Whether somebody has closed the node to new pods (kubectl cordon)."""
        body = self._resources.get(Key(NODE.resource, "", node))
        return body is not None and bool(codec.stored(NODE, body).spec.unschedulable)

    def publish_mirror(self, pod: Pod) -> None:
        """Show a static pod; one of that name that is no mirror keeps its name."""
        key = Key(POD.resource, pod.metadata.namespace, pod.metadata.name)
        body = self._resources.get(key)
        if body is None or MIRROR_ANNOTATION in self.decoded_pod(body).metadata.annotations:
            self._writer.publish(POD, key, pod)

    def publish_node(self, node: Node) -> None:
        """Show the node as it stands; labels, annotations and cordon that others gave it are kept."""
        key = Key(NODE.resource, "", node.metadata.name)
        body = self._resources.get(key)
        if body is not None:
            stored: Node = codec.stored(NODE, body)
            metadata = structs.replace(
                stored.metadata, labels={**stored.metadata.labels, **node.metadata.labels}
            )
            spec = structs.replace(node.spec, unschedulable=stored.spec.unschedulable)
            node = structs.replace(node, metadata=metadata, spec=spec)
        self._writer.publish(NODE, key, node)

    def renew_lease(self, node: str, now: datetime, duration_seconds: int) -> None:
        """Show that the node is there, and for how long that may be believed."""
        key = Key(LEASE.resource, LEASE_NAMESPACE, node)
        body = self._resources.get(key)
        created = format_time(now)
        metadata = ObjectMeta(name=node, namespace=LEASE_NAMESPACE, uid=node, creation_timestamp=created)
        if body is not None:
            metadata = codec.stored(LEASE, body).metadata
        spec = {
            "holderIdentity": node,
            "leaseDurationSeconds": duration_seconds,
            "renewTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        self._writer.publish(LEASE, key, codec.JsonObject(metadata, {"spec": spec}))

    def publish_group(self, group: ElasticQuota) -> None:
        """Show what an ElasticQuota's group may use and uses; one that is not of the API has no object."""
        key = Key(ELASTIC_QUOTA.resource, group.metadata.namespace, group.metadata.name)
        body = self._resources.get(key)
        if body is not None and codec.stored(ELASTIC_QUOTA, body).metadata.uid == group.metadata.uid:
            self._writer.publish(ELASTIC_QUOTA, key, group)

    def report(self, pod: Pod) -> None:
        """Take in where a pod of the API is and how it stands there; one that is gone is no error."""
        key = Key(POD.resource, pod.metadata.namespace, pod.metadata.name)
        body = self._resources.get(key)
        if body is None:
            return
        stored = self.decoded_pod(body)
        if stored.metadata.uid == pod.metadata.uid:
            spec = structs.replace(stored.spec, node_name=pod.spec.node_name)
            self._writer.publish(POD, key, structs.replace(stored, spec=spec, status=pod.status))

    def withdraw(self, kind: Kind, namespace: str, name: str, uid: str) -> None:
        """Remove an object that the agent has seen to its end; another one of that name stays."""
        key = Key(kind.resource, namespace, name)
        body = self._resources.get(key)
        if body is not None and codec.to_plain(body)["metadata"].get("uid") == uid:
            self._deletion.remove(kind, key)
