"""What all objects of the API have in common: strict, frozen, spelled in JSON as Kubernetes does."""

from typing import Annotated

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
IntOrString = Int32 | str

# RFC 3339 text: an object keeps the spelling that it came with.
Timestamp = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
        r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
    ),
]

_INITIALISMS = {
    "api": "API",
    "cidr": "CIDR",
    "cidrs": "CIDRs",
    "fqdn": "FQDN",
    "id": "ID",
    "io": "IO",
    "ip": "IP",
    "ipc": "IPC",
    "ips": "IPs",
    "pid": "PID",
    "uid": "UID",
    "uri": "URI",
    "uuid": "UUID",
    "wwns": "WWNs",
}


def json_name(attribute: str) -> str:
    """Return the JSON spelling of an attribute: `host_ip` -> `hostIP`."""
    first, *rest = attribute.split("_")
    return first + "".join(_INITIALISMS.get(word, word.capitalize()) for word in rest)


class ApiObject(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    repr_omit_defaults=True,
    rename=json_name,
):
    """Base of every object and part of one; each says `frozen=True, kw_only=True` again for msgspec and mypy.

    A field without a default is always written out.
    """
