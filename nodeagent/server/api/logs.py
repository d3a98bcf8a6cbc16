"""`kubectl logs`: the log of one container of a pod that this node runs."""

from collections.abc import Callable
from contextlib import aclosing
from datetime import datetime

from aiohttp import web

from nodeagent.api.pod_log_options import InvalidLogOptions, PodLogOptions, parse_log_options
from nodeagent.cluster.cluster import Cluster
from nodeagent.cluster.codec import Json
from nodeagent.cluster.errors import ApiError, bad_request
from nodeagent.cluster.kinds import POD
from nodeagent.pods.logs import ContainerLog
from nodeagent.runtime.log_reader import read_log
from nodeagent.server.streams import write_in_time

_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


# Beside the requests in flight: followers stay for as long as they like.
MOST_FOLLOWERS = 100

FindLog = Callable[[str, str, bool], ContainerLog | None]
"""By pod UID and container; True means the attempt before the last one."""


class LogEndpoint:
    """Streams a log as it is read, so that its size does not matter."""

    def __init__(self, cluster: Cluster, find: FindLog, now: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._find = find
        self._now = now
        self._followers = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer GET .../namespaces/NAMESPACE/pods/NAME/log."""
        *_, namespace, _, name, _ = request.path.split("/")
        try:
            options = parse_log_options(request.query, self._now())
        except InvalidLogOptions as error:
            raise bad_request(str(error)) from error
        pod = self._cluster.get(POD, namespace, name)
        container = _container(pod, options)
        found = self._find(pod["metadata"]["uid"], container, options.previous)
        if found is None:
            raise bad_request(_nothing_yet(pod, container, options))
        if not options.follow:
            return await _written(request, found, options)
        if self._followers >= MOST_FOLLOWERS:
            message = f"{MOST_FOLLOWERS} logs are followed already: try again later, or without following"
            raise ApiError(429, "TooManyRequests", message)
        self._followers += 1
        try:
            return await _written(request, found, options)
        finally:
            self._followers -= 1


async def _written(request: web.Request, log: ContainerLog, options: PodLogOptions) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
    await response.prepare(request)
    async with aclosing(read_log(log.path, options, log.is_running)) as pieces:
        async for piece in pieces:
            await write_in_time(request, response, piece)
    await response.write_eof()
    return response


def _container(pod: Json, options: PodLogOptions) -> str:
    spec, name = pod["spec"], pod["metadata"]["name"]
    regular = [each["name"] for each in spec.get("containers", [])]
    init = [each["name"] for each in spec.get("initContainers", [])]
    if not options.container:
        if len(regular) == 1:
            return str(regular[0])
        choices = f"choose one of: [{' '.join(regular)}]"
        choices += f" or one of the init containers: [{' '.join(init)}]" if init else ""
        raise bad_request(f"a container name must be specified for pod {name}, {choices}")
    if options.container not in (*regular, *init):
        raise bad_request(f"container {options.container} is not valid for pod {name}")
    return options.container


def _nothing_yet(pod: Json, container: str, options: PodLogOptions) -> str:
    name = pod["metadata"]["name"]
    if options.previous:
        return f'previous terminated container "{container}" in pod "{name}" not found'
    for statuses in _STATUSES:
        for status in pod.get("status", {}).get(statuses, []):
            waiting = status.get("state", {}).get("waiting")
            if status.get("name") == container and waiting:
                why = waiting.get("reason", "")
                return f'container "{container}" in pod "{name}" is waiting to start: {why}'
    return f'container "{container}" in pod "{name}" is not available'
