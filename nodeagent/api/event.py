"""The Event (core/v1)."""

from nodeagent.api.base import ApiObject, Int32, Timestamp
from nodeagent.api.meta import ObjectMeta
from nodeagent.api.references import ObjectReference

__all__ = ["Event", "EventSeries", "EventSource", "ObjectReference"]


class EventSource(ApiObject, frozen=True, kw_only=True):
    component: str | None = None
    host: str | None = None


class EventSeries(ApiObject, frozen=True, kw_only=True):
    count: Int32 | None = None
    last_observed_time: Timestamp | None = None


class Event(ApiObject, frozen=True, kw_only=True):
    metadata: ObjectMeta
    involved_object: ObjectReference
    reason: str | None = None
    message: str | None = None
    type: str | None = None
    source: EventSource = EventSource()
    first_timestamp: Timestamp | None = None
    last_timestamp: Timestamp | None = None
    count: Int32 | None = None
    event_time: Timestamp | None = None
    series: EventSeries | None = None
    action: str | None = None
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""
