"""Getting, listing and watching."""

import asyncio
import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from aiohttp import web

from nodeagent.cluster.cluster import Cluster
from nodeagent.cluster.codec import Json, to_plain
from nodeagent.cluster.errors import ApiError, bad_request, gone
from nodeagent.cluster.kinds import Kind
from nodeagent.cluster.selectors import Matches, field_text, matcher
from nodeagent.server.api.addresses import Address
from nodeagent.server.api.answers import answer, as_table
from nodeagent.server.api.scale import SCALE, scale_of
from nodeagent.server.api.tables import table
from nodeagent.server.streams import write_in_time
from nodeagent.store import Change

# A hundred objects take a millisecond or two to write.
BATCH = 100
LONGEST_WATCH_SECONDS = 1800
BOOKMARK_SECONDS = 60
MOST_WATCHES = 100
_TRUE = ("1", "true", "True")


@dataclass(frozen=True, slots=True)
class _View:
    """How the client wants objects: which, and as themselves or as rows of a table."""

    kind: Kind
    matches: Matches | None
    is_table: bool
    include: str

    def shows(self, plain: Mapping[str, Any]) -> bool:
        return self.matches is None or self.matches(plain)

    def rendered(self, plain: Json, now: datetime) -> Json:
        if not self.is_table:
            return plain
        metadata = {"resourceVersion": plain["metadata"].get("resourceVersion", "")}
        return table(self.kind, [plain], metadata, now, self.include)


class Reading:
    """Answers GET."""

    def __init__(self, cluster: Cluster, now: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._now = now
        self._watches = 0

    async def get(self, request: web.Request, address: Address) -> web.StreamResponse:
        """Answer with one object, or with a row."""
        plain = self._cluster.get(address.kind, address.namespace or "", address.name)
        if address.subresource == SCALE:
            return answer(scale_of(plain))
        return answer(_view(request, address).rendered(plain, self._now()))

    async def list(self, request: web.Request, address: Address) -> web.StreamResponse:
        """Answer with a list in batches, between which the event loop does its other work, or watch."""
        if request.query.get("watch") in _TRUE:
            return await self._watch(request, address)
        view = _view(request, address)
        limit = _number(request, "limit")
        after, version = _continued(request.query.get("continue", ""))
        page = self._cluster.page(address.kind, address.namespace, after, limit)
        metadata: Json = {"resourceVersion": str(version or page.version)}
        if page.resume_after is not None:
            metadata["continue"] = _token(page.resume_after, version or page.version)
            if view.matches is None:
                metadata["remainingItemCount"] = page.remaining
        bodies = [body for _, body in page.items]
        if view.is_table:
            shown = [plain for plain in map(to_plain, bodies) if view.shows(plain)]
            return answer(table(address.kind, shown, metadata, self._now(), view.include))
        if view.matches is not None:
            bodies = [body for body in bodies if view.matches(to_plain(body))]
        return await _write_list(request, address.kind, metadata, bodies)

    async def _watch(self, request: web.Request, address: Address) -> web.StreamResponse:
        if self._watches >= MOST_WATCHES:
            raise ApiError(
                429, "TooManyRequests", f"there are {MOST_WATCHES} watches already: try again later"
            )
        if request.query.get("sendInitialEvents") in _TRUE:
            message = "sendInitialEvents: Forbidden: list first, then watch from the list's resourceVersion"
            raise ApiError(422, "Invalid", message)
        view = _view(request, address)
        version = _version(request)
        if version:
            # One that is too old is refused before the answer begins.
            self._cluster.require_remembered(version)
        seconds = min(_number(request, "timeoutSeconds") or LONGEST_WATCH_SECONDS, LONGEST_WATCH_SECONDS)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        self._watches += 1
        try:
            await response.prepare(request)
            async with asyncio.timeout(seconds):
                await self._follow(request, response, address, view, version)
        except TimeoutError:
            pass
        except ApiError as error:
            await _send(request, response, "ERROR", error.status())
        finally:
            self._watches -= 1
        await response.write_eof()
        return response

    async def _follow(
        self, request: web.Request, response: web.StreamResponse, address: Address, view: _View, version: int
    ) -> None:
        if not version:
            version = self._cluster.version
            for plain in self._cluster.list(address.kind, address.namespace):
                if view.shows(plain):
                    await _send(request, response, "ADDED", view.rendered(plain, self._now()))
        bookmarks = request.query.get("allowWatchBookmarks") in _TRUE
        changes = self._cluster.watch(address.kind, version, address.namespace)
        upcoming = asyncio.ensure_future(anext(changes))
        try:
            while True:
                done, _ = await asyncio.wait([upcoming], timeout=BOOKMARK_SECONDS)
                if done:
                    event = _event(upcoming.result(), view)
                    if event is not None:
                        await _send(request, response, event[0], view.rendered(event[1], self._now()))
                    upcoming = asyncio.ensure_future(anext(changes))
                elif bookmarks:
                    await _send(request, response, "BOOKMARK", _bookmark(address.kind, self._cluster.version))
        finally:
            upcoming.cancel()
            await asyncio.gather(upcoming, return_exceptions=True)
            await changes.aclose()


def _event(change: Change, view: _View) -> tuple[str, Json] | None:
    """Return what a change is to someone who sees only what the selectors select."""
    plain = to_plain(change.body)
    if view.matches is None:
        return change.type, plain
    shown = view.matches(plain)
    was_shown = change.previous is not None and view.matches(to_plain(change.previous))
    if change.type == "DELETED":
        return ("DELETED", plain) if was_shown else None
    if shown:
        return ("MODIFIED" if was_shown else "ADDED"), plain
    return ("DELETED", plain) if was_shown else None


def _bookmark(kind: Kind, version: int) -> Json:
    head = {"kind": kind.kind, "apiVersion": kind.api_version}
    return {**head, "metadata": {"resourceVersion": str(version), "creationTimestamp": None}}


async def _send(request: web.Request, response: web.StreamResponse, kind: str, plain: Json) -> None:
    await write_in_time(request, response, msgspec.json.encode({"type": kind, "object": plain}) + b"\n")


async def _write_list(
    request: web.Request, kind: Kind, metadata: Json, bodies: list[bytes]
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata}
    await write_in_time(request, response, msgspec.json.encode(head)[:-1] + b',"items":[')
    for start in range(0, len(bodies), BATCH):
        batch = b",".join(bodies[start : start + BATCH])
        await write_in_time(request, response, b"," + batch if start else batch)
        await asyncio.sleep(0)
    await write_in_time(request, response, b"]}")
    await response.write_eof()
    return response


def _view(request: web.Request, address: Address) -> _View:
    labels, fields = request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")
    matches = matcher(address.kind, labels, fields)
    if address.name:
        name = address.name
        matches = matches or (lambda plain: field_text(plain, "metadata.name") == name)
    return _View(address.kind, matches, as_table(request), request.query.get("includeObject", "Metadata"))


def _number(request: web.Request, name: str) -> int:
    text = request.query.get(name, "")
    if not text:
        return 0
    if not text.isdecimal() or len(text) > 12:
        raise bad_request(f"{name}: expected a number that is not negative, got {text[:40]!r}")
    return int(text)


def _version(request: web.Request) -> int:
    text = request.query.get("resourceVersion", "")
    if text and (not text.isdecimal() or len(text) > 18):
        raise bad_request(f"resourceVersion: Invalid value: {text[:40]!r}: expected one that a list gave")
    return int(text or 0)


def _token(after: tuple[str, str], version: int) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode([version, *after])).decode()


def _continued(token: str) -> tuple[tuple[str, str], int]:
    """Return where a list goes on; raises ApiError 400 or 410."""
    if not token:
        return ("", ""), 0
    try:
        plain = base64.urlsafe_b64decode(token)
        version, namespace, name = msgspec.json.decode(plain, type=tuple[int, str, str])
    except (binascii.Error, ValueError, msgspec.DecodeError) as error:
        raise gone(
            "The provided continue parameter is not one of this server: begin the list again"
        ) from error
    return (namespace, name), version
