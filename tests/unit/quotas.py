"""Quotas and claims as they are stored."""

from datetime import UTC, datetime
from typing import Any

from nodeagent.admission.quota.validation import default_resource_quota
from nodeagent.api.decode import from_builtins
from nodeagent.api.persistent_volume_claim import PersistentVolumeClaim
from nodeagent.api.policy import ResourceQuota

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


def quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> ResourceQuota:
    """A quota as stored: without `used`, nothing is used."""
    value = {
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": hard, **spec},
        "status": {"hard": hard, "used": {**dict.fromkeys(hard, "0"), **(used or {})}},
    }
    return default_resource_quota(from_builtins(value, ResourceQuota))


def scoped(*requirements: tuple[str, str, list[str]]) -> dict[str, Any]:
    expressions = [
        {"scopeName": scope, "operator": operator, "values": values}
        for scope, operator, values in requirements
    ]
    return {"scopeSelector": {"matchExpressions": expressions}}


def claim(storage: str, allocated: str | None = None, **spec: Any) -> PersistentVolumeClaim:
    status = {} if allocated is None else {"allocatedResources": {"storage": allocated}}
    value = {
        "metadata": {"name": "c", "resourceVersion": "1"},
        "spec": {"resources": {"requests": {"storage": storage}}, **spec},
        "status": status,
    }
    return from_builtins(value, PersistentVolumeClaim)
