"""Events in kubelet's words: aggregated, kept for an hour, and in the journal with the pod's fields."""

import hashlib
import logging
from collections.abc import Mapping

import msgspec

from nodeagent.api.decode import from_json, to_json
from nodeagent.api.event import Event, EventSource, ObjectReference
from nodeagent.api.meta import ObjectMeta, format_time
from nodeagent.api.pod import Pod
from nodeagent.clock import Clock
from nodeagent.store import Store, StoreError

logger = logging.getLogger(__name__)


class EventRecorder:
    """Records what happened to pods and to the node; a repeated event counts up instead of piling up."""

    def __init__(self, store: Store, clock: Clock, node_name: str) -> None:
        self._store = store
        self._clock = clock
        self._node_name = node_name

    def pod(
        self,
        pod: Pod,
        reason: str,
        message: str,
        *,
        warning: bool = False,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Record an event about a pod."""
        meta = pod.metadata
        reference = ObjectReference(
            kind="Pod", api_version="v1", namespace=meta.namespace, name=meta.name, uid=meta.uid
        )
        fields = {"POD_NAME": meta.name, "POD_NAMESPACE": meta.namespace, "POD_UID": meta.uid}
        self._record(reference, reason, message, warning, fields, annotations or {})

    def node(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Record an event about the node itself."""
        reference = ObjectReference(kind="Node", api_version="v1", name=self._node_name, uid=self._node_name)
        self._record(reference, reason, message, warning, {}, {})

    def forget_old(self) -> None:
        """Forget what was not seen for an hour."""
        try:
            self._store.forget_old_events(self._clock.now())
        except StoreError as error:
            logger.error("old events not forgotten: %s", error)

    def _record(
        self,
        about: ObjectReference,
        reason: str,
        message: str,
        warning: bool,
        fields: Mapping[str, str],
        annotations: Mapping[str, str],
    ) -> None:
        level = logging.WARNING if warning else logging.INFO
        place = f"{about.namespace}/{about.name}" if about.namespace else about.name
        logger.log(level, "%s: %s: %s", place, reason, message, extra={"EVENT_REASON": reason, **fields})
        now = self._clock.now()
        stamp = format_time(now)
        identity = f"{about.kind}/{about.namespace}/{about.name}/{about.uid}/{reason}/{message}/{warning}"
        key = hashlib.sha256(identity.encode()).hexdigest()[:16]
        namespace, name = about.namespace or "default", f"{about.name}.{key}"
        try:
            stored = self._store.event(namespace, name)
            before = from_json(stored, Event) if stored else None
            event = Event(
                metadata=ObjectMeta(
                    name=name,
                    namespace=namespace,
                    uid=key,
                    annotations=dict(annotations),
                    creation_timestamp=before.metadata.creation_timestamp if before else stamp,
                ),
                involved_object=about,
                reason=reason,
                message=message,
                type="Warning" if warning else "Normal",
                source=EventSource(component="nodeagent", host=self._node_name),
                first_timestamp=before.first_timestamp if before else stamp,
                last_timestamp=stamp,
                count=(before.count or 0) + 1 if before else 1,
            )
            self._store.put_event(namespace, name, lambda version: _body(event, version), now)
        except StoreError as error:
            # The journal has the event already; a full disk must not stop what the event is about.
            logger.error("event not stored: %s", error)


def _body(event: Event, version: int) -> bytes:
    metadata = msgspec.structs.replace(event.metadata, resource_version=str(version))
    return to_json(msgspec.structs.replace(event, metadata=metadata))
