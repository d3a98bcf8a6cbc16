"""What nodes and pods use just now, as metrics-server tells it: the API behind `kubectl top`."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from nodeagent.cluster.cluster import Cluster
from nodeagent.cluster.codec import Json
from nodeagent.cluster.errors import ApiError
from nodeagent.cluster.kinds import NODE, POD, Kind
from nodeagent.cluster.selectors import matcher
from nodeagent.server.api.answers import answer
from nodeagent.stats.summary import ContainerStats, NodeStats, Summary

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
NODE_METRICS = Kind("NodeMetrics", "nodes", GROUP, VERSION, namespaced=False, has_status=False)
POD_METRICS = Kind("PodMetrics", "pods", GROUP, VERSION, has_status=False)
USAGE_KINDS = (NODE_METRICS, POD_METRICS)
# Over which time the processor's use is an average, as the sampling goes.
_WINDOW = "10s"

Summarise = Callable[[], Awaitable[Summary]]


class UsageEndpoint:
    """Answers from one look at the node; a container of which not everything is known yet is left out."""

    def __init__(self, cluster: Cluster, summarise: Summarise) -> None:
        self._cluster = cluster
        self._summarise = summarise

    def add_routes(self, app: web.Application) -> None:
        base = f"/apis/{GROUP}/{VERSION}"
        app.router.add_get(f"{base}/nodes", self._list_nodes)
        app.router.add_get(f"{base}/nodes/{{name}}", self._one_node)
        app.router.add_get(f"{base}/pods", self._list_pods)
        app.router.add_get(f"{base}/namespaces/{{namespace}}/pods", self._list_pods)
        app.router.add_get(f"{base}/namespaces/{{namespace}}/pods/{{name}}", self._one_pod)

    async def _list_nodes(self, request: web.Request) -> web.StreamResponse:
        labels = self._labels(NODE, request)
        found = _node((await self._summarise()).node, labels)
        return _list("NodeMetricsList", [found] if found else [])

    async def _one_node(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        found = _node((await self._summarise()).node, self._labels(NODE, request))
        return _one(found if found and found["metadata"]["name"] == name else None, NODE_METRICS, name)

    async def _list_pods(self, request: web.Request) -> web.StreamResponse:
        labels = self._labels(POD, request)
        return _list("PodMetricsList", list(_pods(await self._summarise(), labels)))

    async def _one_pod(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        pods = _pods(await self._summarise(), self._labels(POD, request))
        return _one(
            next((each for each in pods if each["metadata"]["name"] == name), None), POD_METRICS, name
        )

    def _labels(self, kind: Kind, request: web.Request) -> dict[tuple[str, str], Mapping[str, str]]:
        """Return the labels of the objects that the request selects, by namespace and name."""
        query = request.query
        selects = matcher(kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        namespace = request.match_info.get("namespace") if kind.namespaced else ""
        return {
            (plain["metadata"].get("namespace", ""), plain["metadata"]["name"]): plain["metadata"].get(
                "labels", {}
            )
            for plain in self._cluster.list(kind, namespace)
            if selects is None or selects(plain)
        }


def _node(stats: NodeStats, labels: Mapping[tuple[str, str], Mapping[str, str]]) -> Json | None:
    usage = _usage(stats)
    key = ("", stats.node_name)
    if usage is None or key not in labels:
        return None
    return {**_head(stats.node_name, "", labels[key], stats), "usage": usage}


def _pods(summary: Summary, labels: Mapping[tuple[str, str], Mapping[str, str]]) -> Iterator[Json]:
    for stats in summary.pods:
        key = (stats.pod_ref.namespace, stats.pod_ref.name)
        containers = [(each, _usage(each)) for each in stats.containers]
        known = [{"name": each.name, "usage": usage} for each, usage in containers if usage is not None]
        if key in labels and known:
            yield {**_head(key[1], key[0], labels[key], stats.containers[0]), "containers": known}


def _usage(stats: ContainerStats | NodeStats) -> Json | None:
    cpu = stats.cpu.usage_nano_cores if stats.cpu is not None else None
    memory = stats.memory.working_set_bytes if stats.memory is not None else None
    if cpu is None or memory is None:
        return None
    return {"cpu": f"{cpu}n", "memory": f"{memory >> 10}Ki"}


def _head(name: str, namespace: str, labels: Mapping[str, str], stats: ContainerStats | NodeStats) -> Json:
    taken = stats.cpu.time if stats.cpu is not None and stats.cpu.time is not None else datetime.now(UTC)
    stamp = taken.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata: dict[str, Any] = {"name": name, "creationTimestamp": stamp}
    metadata |= {"namespace": namespace} if namespace else {}
    metadata |= {"labels": dict(labels)} if labels else {}
    return {"metadata": metadata, "timestamp": stamp, "window": _WINDOW}


def _list(kind: str, items: Sequence[Json]) -> web.Response:
    head = {"kind": kind, "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}}
    return answer({**head, "items": items})


def _one(found: Json | None, kind: Kind, name: str) -> web.Response:
    if found is None:
        raise ApiError(404, "NotFound", f'{kind.resource} "{name}" not found')
    return answer({"kind": kind.kind, "apiVersion": kind.api_version, **found})
