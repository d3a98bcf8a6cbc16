"""Why a request is refused, as a value: the API server's status code, reason, words and causes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from nodeagent.admission.request import GroupResource
from nodeagent.api.errors import ErrorKind, FieldError

_CAUSE_REASONS: dict[str, str] = {
    ErrorKind.REQUIRED: "FieldValueRequired",
    ErrorKind.DUPLICATE: "FieldValueDuplicate",
    ErrorKind.NOT_SUPPORTED: "FieldValueNotSupported",
    ErrorKind.NOT_FOUND: "FieldValueNotFound",
    ErrorKind.FORBIDDEN: "FieldValueForbidden",
    ErrorKind.TOO_LONG: "FieldValueTooLong",
    ErrorKind.TOO_MANY: "FieldValueTooMany",
}


@dataclass(frozen=True, slots=True)
class Cause:
    """One of `details.causes` of a Status."""

    reason: str
    message: str
    field: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the API answers instead of doing what was asked; `str()` is the message."""

    code: int
    reason: str
    message: str
    causes: tuple[Cause, ...] = ()

    def __str__(self) -> str:
        return self.message


def forbidden(resource: GroupResource, name: str, why: str) -> Refusal:
    """Return the refusal of a policy: 403."""
    return Refusal(403, "Forbidden", f'{resource} "{name}" is forbidden: {why}')


def denied(message: str) -> Refusal:
    """Return the refusal of the elastic quotas' webhook, as the API server passes it on: 403."""
    return Refusal(
        403, "Forbidden", f'admission webhook "vquota.koordinator.sh" denied the request: {message}'
    )


def invalid(kind: str, name: str, errors: Sequence[FieldError]) -> Refusal:
    """Return the refusal of an object that is wrong in itself: 422."""
    return Refusal(
        422,
        "Invalid",
        f'{kind} "{name}" is invalid: {aggregate(map(str, errors))}',
        tuple(_cause(error) for error in errors),
    )


def already_exists(resource: GroupResource, name: str) -> Refusal:
    """Return the refusal of a name that is taken: 409."""
    return Refusal(409, "AlreadyExists", f'{resource} "{name}" already exists')


def aggregate(messages: Iterable[str]) -> str:
    """Return several messages as one: each once, in brackets if they are more than one."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _cause(error: FieldError) -> Cause:
    reason = _CAUSE_REASONS.get(error.kind, "FieldValueInvalid")
    return Cause(reason, str(replace(error, path="")), error.path)
