"""What kinds there are, as clients discover them: the old lists, and the aggregated form (v2)."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import msgspec
from aiohttp import web

from nodeagent.cluster.codec import Json
from nodeagent.cluster.kinds import POD, Kind, Kinds
from nodeagent.server.api.addresses import no_such_path
from nodeagent.server.api.answers import answer
from nodeagent.server.api.scale import SCALE, is_scalable
from nodeagent.server.api.usage import USAGE_KINDS

KUBERNETES_VERSION = ("1", "36", "v1.36.2")
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_STATUS_VERBS = ["get", "patch", "update"]
# Subresource of pods -> the kind that it takes, and what can be done.
POD_SUBRESOURCES = {
    "binding": ("Binding", ["create"]),
    "eviction": ("Eviction", ["create"]),
    "log": ("Pod", ["get"]),
}


class Discovery:
    """Answers below /api, /apis and /version."""

    def __init__(self, kinds: Kinds, read_only: Sequence[Kind] = ()) -> None:
        self._stored = kinds
        self._read_only = read_only

    @property
    def _kinds(self) -> Iterable[Kind]:
        """Those that clients install come and go."""
        return (*self._stored, *self._read_only)

    def add_routes(self, app: web.Application) -> None:
        app.router.add_get("/version", self._version)
        app.router.add_get("/api", self._core)
        app.router.add_get("/apis", self._groups)
        app.router.add_get("/api/{version}", self._resources)
        app.router.add_get("/apis/{group}", self._group)
        app.router.add_get("/apis/{group}/{version}", self._resources)

    async def _version(self, request: web.Request) -> web.StreamResponse:
        major, minor, version = KUBERNETES_VERSION
        return answer({"major": major, "minor": minor, "gitVersion": version, "platform": "linux/amd64"})

    async def _core(self, request: web.Request) -> web.StreamResponse:
        if _wants_aggregated(request):
            return _aggregated(kind for kind in self._kinds if not kind.group)
        return answer({"kind": "APIVersions", "versions": ["v1"]})

    async def _groups(self, request: web.Request) -> web.StreamResponse:
        named = [kind for kind in self._kinds if kind.group]
        if _wants_aggregated(request):
            return _aggregated(named)
        groups = [_group_object(name, kinds) for name, kinds in _by_group(named)]
        return answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})

    async def _group(self, request: web.Request) -> web.StreamResponse:
        kinds = [kind for kind in self._kinds if kind.group and kind.group == request.match_info["group"]]
        if not kinds:
            raise no_such_path()
        group = _group_object(kinds[0].group, kinds)
        return answer({"kind": "APIGroup", "apiVersion": "v1", **group})

    async def _resources(self, request: web.Request) -> web.StreamResponse:
        place = (request.match_info.get("group", ""), request.match_info["version"])
        kinds = [kind for kind in self._kinds if (kind.group, kind.version) == place]
        if not kinds:
            raise no_such_path()
        resources = [resource for kind in kinds for resource in _resource_list(kind)]
        head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": kinds[0].api_version}
        return answer({**head, "resources": resources})


def _wants_aggregated(request: web.Request) -> bool:
    accepted = (part.replace(" ", "") for part in request.headers.get("Accept", "").split(","))
    return any("g=apidiscovery.k8s.io" in part and "v=v2;" in f"{part};" for part in accepted)


def _aggregated(kinds: Iterable[Kind]) -> web.Response:
    items = []
    for name, of_group in _by_group(kinds):
        versions = []
        for version in dict.fromkeys(kind.version for kind in of_group):
            resources = [_aggregated_resource(kind) for kind in of_group if kind.version == version]
            versions.append({"version": version, "resources": resources, "freshness": "Current"})
        items.append({"metadata": {"name": name} if name else {}, "versions": versions})
    head = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}}
    body = msgspec.json.encode({**head, "items": items})
    return web.Response(body=body, headers={"Content-Type": AGGREGATED})


def _aggregated_resource(kind: Kind) -> Json:
    subresources = [
        {
            "subresource": name,
            "responseKind": _response_kind(kind, of),
            "verbs": verbs,
        }
        for name, of, verbs in _subresources(kind)
    ]
    return {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.kind.lower(),
        "verbs": _verbs(kind),
        **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
        **({"categories": ["all"]} if _is_workload(kind) else {}),
        **({"subresources": subresources} if subresources else {}),
    }


def _response_kind(kind: Kind, of: str) -> Json:
    if of == "Scale":
        return {"group": "autoscaling", "version": "v1", "kind": of}
    return {"group": kind.group, "version": kind.version, "kind": of}


def _resource_list(kind: Kind) -> Iterator[Json]:
    yield {
        "name": kind.plural,
        "singularName": kind.kind.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _verbs(kind),
        **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
        **({"categories": ["all"]} if _is_workload(kind) else {}),
    }
    for name, of, verbs in _subresources(kind):
        head = {"name": f"{kind.plural}/{name}", "singularName": ""}
        place = {"group": "autoscaling", "version": "v1"} if of == "Scale" else {}
        yield {**head, **place, "namespaced": kind.namespaced, "kind": of, "verbs": verbs}


def _subresources(kind: Kind) -> Iterator[tuple[str, str, list[str]]]:
    if kind.has_status:
        yield "status", kind.kind, _STATUS_VERBS
    if is_scalable(kind):
        yield SCALE, "Scale", _STATUS_VERBS
    if kind is POD:
        for name, (of, verbs) in POD_SUBRESOURCES.items():
            yield name, of, verbs


def _verbs(kind: Kind) -> list[str]:
    return ["get", "list"] if kind in USAGE_KINDS else VERBS


def _is_workload(kind: Kind) -> bool:
    if kind.group:
        return kind.group in ("apps", "batch")
    return kind.plural in ("pods", "services", "replicationcontrollers")


def _by_group(kinds: Iterable[Kind]) -> Iterator[tuple[str, list[Kind]]]:
    for name, of_group in groupby(sorted(kinds, key=lambda kind: kind.group), lambda kind: kind.group):
        yield name, list(of_group)


def _group_object(name: str, kinds: Iterable[Kind]) -> Json:
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version}
        for version in dict.fromkeys(kind.version for kind in kinds)
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}
