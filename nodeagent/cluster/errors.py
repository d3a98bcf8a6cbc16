"""Why the API refuses, as an exception: what a Status object says (meta/v1)."""

from collections.abc import Mapping, Sequence
from typing import Any

from nodeagent.admission.refusal import Refusal
from nodeagent.cluster.kinds import Kind


class ApiError(Exception):
    """A refusal with the API server's status code, reason and words; `details` are those of a Status."""

    def __init__(
        self, code: int, reason: str, message: str, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = dict(details or {})

    def status(self) -> dict[str, Any]:
        """Return the Status object."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            **({"reason": self.reason} if self.reason else {}),
            **({"details": self.details} if self.details else {}),
            "code": self.code,
        }


def not_found(resource: str, name: str) -> ApiError:
    """Return the answer about an object that does not exist; `resource` is spelled with its group."""
    return ApiError(404, "NotFound", f'{resource} "{name}" not found', _about(resource, name))


def already_exists(resource: str, name: str) -> ApiError:
    return ApiError(409, "AlreadyExists", f'{resource} "{name}" already exists', _about(resource, name))


def conflict(resource: str, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return ApiError(409, "Conflict", message, _about(resource, name))


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def gone(message: str) -> ApiError:
    """Return the answer to a list or watch from a version that is not remembered."""
    return ApiError(410, "Expired", message)


def forbidden(resource: str, name: str, why: str) -> ApiError:
    return ApiError(403, "Forbidden", f'{resource} "{name}" is forbidden: {why}', _about(resource, name))


def refused(refusal: Refusal, kind: Kind, name: str) -> ApiError:
    """Return a refusal of admission as the answer; one of validation names the kind, others the resource."""
    causes: Sequence[dict[str, str]] = [
        {"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in refusal.causes
    ]
    about = _about(kind.resource, name)
    if refusal.reason == "Invalid":
        about["kind"] = kind.kind
    details = {**about, **({"causes": causes} if causes else {})}
    return ApiError(refusal.code, refusal.reason, refusal.message, details)


def _about(resource: str, name: str) -> dict[str, Any]:
    plural, _, group = resource.partition(".")
    return {"name": name, **({"group": group} if group else {}), "kind": plural}
