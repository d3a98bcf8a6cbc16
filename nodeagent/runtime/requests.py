"""What clients may ask the keeper, and how it answers."""

import json
from collections.abc import Callable

from nodeagent.runtime import protocol
from nodeagent.runtime.checks import BadRequest, CheckedSpec
from nodeagent.runtime.clients import Client
from nodeagent.runtime.container import Container
from nodeagent.runtime.containers import Containers, Refused
from nodeagent.runtime.protocol import CREATED, EXITED, LIST_PAGE_BYTES, PREPARING, RUNNING

_DONE = '{"done":true}'

Request = dict[str, object]


class Requests:
    """Answers clients; each request gets exactly one reply."""

    def __init__(self, containers: Containers) -> None:
        self._containers = containers
        self._watchers: set[Client] = set()
        containers.on_change = self._changed
        self._verbs: dict[str, Callable[[Client, Request], None]] = {
            protocol.PREPARE: self._prepare,
            protocol.RELEASE: self._release,
            protocol.ABORT: self._abort,
            protocol.LIST: self._list,
            protocol.SIGNAL: self._signal,
            protocol.FORGET: self._forget,
            protocol.WATCH: self._watch,
        }

    def answer(self, client: Client, line: bytes) -> None:
        """Act on one line of a client."""
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise BadRequest("expected a JSON object")
            wanted = request.get("do")
            verb = self._verbs.get(wanted) if isinstance(wanted, str) else None
            if verb is None:
                raise BadRequest(f"do: {wanted!r}: expected one of {', '.join(self._verbs)}")
            verb(client, request)
        except Refused as refusal:
            client.reply(_error(refusal.kind, str(refusal)))
        except (BadRequest, ValueError, RecursionError) as error:
            client.reply(_error(protocol.BAD_REQUEST, str(error)))

    def ended(self, client: Client) -> None:
        """A client is gone, and with it what it had begun."""
        self._watchers.discard(client)
        self._containers.disown(client)

    def _prepare(self, client: Client, request: Request) -> None:
        spec = CheckedSpec(request.get("spec"))
        known = self._containers.by_id.get(spec.container_id)
        if known is None:
            self._containers.prepare(
                spec, json.dumps(request["spec"]), client, lambda c: client.reply(_begun(c))
            )
        elif known.state in (RUNNING, EXITED):
            client.reply(_record(known))
        else:
            raise Refused(protocol.BUSY, f"container {known.id} is being started already")

    def _release(self, client: Client, request: Request) -> None:
        client.reply(_record(self._containers.release(_id_of(request), client)))

    def _abort(self, client: Client, request: Request) -> None:
        self._containers.abort(_id_of(request), client, lambda _: client.reply(_DONE))

    def _list(self, client: Client, request: Request) -> None:
        """Reply with a page: the records behind `after`, and as `next` where to go on, null at the end."""
        after = request.get("after", "")
        if not isinstance(after, str):
            raise BadRequest("after: expected the id of a container")
        page: list[str] = []
        size = 0
        following: str | None = None
        for container_id in sorted(key for key in self._containers.by_id if key > after):
            container = self._containers.by_id[container_id]
            if container.state == PREPARING:
                continue
            page.append(container.record())
            size += len(page[-1])
            if size > LIST_PAGE_BYTES:
                following = container_id
                break
        client.reply(f'{{"records":[{",".join(page)}],"next":{json.dumps(following)}}}')

    def _signal(self, client: Client, request: Request) -> None:
        signum = request.get("signum")
        if not isinstance(signum, int) or not 1 <= signum <= 64:
            raise BadRequest(f"signum: {signum!r}: expected a number from 1 to 64")
        self._containers.signal(_id_of(request), signum)
        client.reply(_DONE)

    def _forget(self, client: Client, request: Request) -> None:
        self._containers.forget(_id_of(request))
        client.reply(_DONE)

    def _watch(self, client: Client, _request: Request) -> None:
        self._watchers.add(client)
        client.reply(_DONE)

    def _changed(self, container: Container) -> None:
        message = f'{{"changed":{container.record()}}}'
        # one that is cut off for not reading leaves the set
        for client in list(self._watchers):
            client.tell(message)


def _begun(container: Container) -> str:
    if container.state == CREATED:
        return _record(container)
    return _error(protocol.START_ERROR, container.message)


def _record(container: Container) -> str:
    return f'{{"record":{container.record()}}}'


def _error(kind: str, message: str) -> str:
    return json.dumps({"error": kind, "message": message})


def _id_of(request: Request) -> str:
    container_id = request.get("container_id")
    if not isinstance(container_id, str):
        raise BadRequest("container_id: expected text")
    return container_id
