"""Who asks, as the authentication in front of the API has found out."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from aiohttp import web


class Role(StrEnum):
    ADMIN = "admin"
    READ_ONLY = "read-only"


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated user. One who may only read sees no Secrets either."""

    name: str
    role: Role
    groups: tuple[str, ...] = ()


Who = Callable[[web.Request], User | None]
"""Tells whose request it is, None for nobody known; it may be called twice a request."""
