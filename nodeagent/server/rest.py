"""The read-only part of the Kubernetes API that `nodeagent get` and `describe` need."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from nodeagent.server.json_answers import list_response, object_response, status_response
from nodeagent.server.view import ServerView

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

# To leave out a filter and answer with everything would be a wrong answer.
_UNSUPPORTED = {
    "watch": "watching is not supported yet: list again, for example once a second",
    "labelSelector": "label selectors are not supported yet: filter the list",
    "fieldSelector": "field selectors are not supported yet: filter the list",
    "continue": "lists are never cut: ask without continue",
}
_FALSE = ("", "0", "false", "False")


def add_rest_routes(app: web.Application, view: ServerView) -> None:
    """Serve `/api/v1/...`."""
    rest = _Rest(view)
    routes: dict[str, Handler] = {
        "/api/v1/pods": rest.pods,
        "/api/v1/namespaces/{namespace}/pods": rest.pods,
        "/api/v1/namespaces/{namespace}/pods/{name}": rest.pod,
        "/api/v1/nodes": rest.nodes,
        "/api/v1/nodes/{name}": rest.node,
        "/api/v1/events": rest.events,
        "/api/v1/namespaces/{namespace}/events": rest.events,
    }
    for path, handler in routes.items():
        app.router.add_get(path, handler, allow_head=False)


@web.middleware
async def status_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse below `/api` as the API server does, with a Status."""
    if not request.path.startswith("/api"):
        return await handler(request)
    for parameter, sentence in _UNSUPPORTED.items():
        if request.query.get(parameter, "") not in _FALSE:
            return status_response(400, "BadRequest", f"{parameter}: {sentence}")
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return status_response(404, "NotFound", "the server could not find the requested resource")
    except web.HTTPMethodNotAllowed:
        message = "the server does not allow this method on the requested resource: this API is read-only"
        return status_response(405, "MethodNotAllowed", message)


class _Rest:
    def __init__(self, view: ServerView) -> None:
        self._view = view

    async def pods(self, request: web.Request) -> web.StreamResponse:
        namespace = request.match_info.get("namespace")
        pods = [pod for pod in self._view.pods() if namespace in (None, pod.metadata.namespace)]
        return await list_response(request, "PodList", pods)

    async def pod(self, request: web.Request) -> web.StreamResponse:
        wanted = request.match_info["namespace"], request.match_info["name"]
        for pod in self._view.pods():
            if (pod.metadata.namespace, pod.metadata.name) == wanted:
                return object_response(pod)
        return _not_found("pods", wanted[1])

    async def nodes(self, request: web.Request) -> web.StreamResponse:
        return await list_response(request, "NodeList", [self._view.node()])

    async def node(self, request: web.Request) -> web.StreamResponse:
        node = self._view.node()
        if node.metadata.name == request.match_info["name"]:
            return object_response(node)
        return _not_found("nodes", request.match_info["name"])

    async def events(self, request: web.Request) -> web.StreamResponse:
        namespace = request.match_info.get("namespace")
        events = [event for event in self._view.events() if namespace in (None, event.metadata.namespace)]
        return await list_response(request, "EventList", events)


def _not_found(resource: str, name: str) -> web.Response:
    details = {"name": name, "kind": resource}
    return status_response(404, "NotFound", f'{resource} "{name}" not found', details)
