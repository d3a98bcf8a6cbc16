"""Which names and numbers the API allows; each check gives the API server's sentences, none if right."""

import re
from ipaddress import ip_address

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_KEY = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_KEY_OR_NOTHING = rf"({_KEY})?"
_CONFIG_KEY = r"[-._a-zA-Z0-9]+"
_HEADER = r"[-A-Za-z0-9]+"
# A pod's UID becomes part of directory and cgroup names, where "-" and "_" are told apart from nothing.
_UID = r"[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?"

LONGEST_LABEL = 63
LONGEST_SUBDOMAIN = 253
LONGEST_PORT_NAME = 15
LONGEST_UID = 63
LARGEST_ID = 2**32 - 1

Messages = list[str]


def label(value: str) -> Messages:
    """Check a DNS label as in RFC 1123: a container's or volume's name, a namespace."""
    messages = _no_longer_than(value, LONGEST_LABEL)
    if re.fullmatch(_LABEL, value) is None:
        if re.fullmatch(_SUBDOMAIN, value) is not None:
            return [*messages, "must not contain dots"]
        rule = (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
            "and must start and end with an alphanumeric character"
        )
        messages.append(_pattern(rule, _LABEL, "my-name", "123-abc"))
    return messages


def subdomain(value: str) -> Messages:
    """Check a DNS subdomain as in RFC 1123: the name of most objects."""
    messages = _no_longer_than(value, LONGEST_SUBDOMAIN)
    if re.fullmatch(_SUBDOMAIN, value) is None:
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character"
        )
        messages.append(_pattern(rule, _SUBDOMAIN, "example.com"))
    return messages


def qualified_name(value: str) -> Messages:
    """Check a label key or resource name: a name with an optional DNS prefix and '/'."""
    parts = value.split("/")
    if len(parts) > 2:
        optional = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_key_rule()}{optional}"]
    messages = []
    if len(parts) == 2:
        faults = subdomain(parts[0]) if parts[0] else ["must be non-empty"]
        messages += [f"prefix part {fault}" for fault in faults]
    name = parts[-1]
    if not name:
        messages.append("name part must be non-empty")
    messages += [f"name part {fault}" for fault in _no_longer_than(name, LONGEST_LABEL)]
    if re.fullmatch(_KEY, name) is None:
        messages.append(f"name part {_key_rule()}")
    return messages


def label_value(value: str) -> Messages:
    messages = _no_longer_than(value, LONGEST_LABEL)
    if re.fullmatch(_KEY_OR_NOTHING, value) is None:
        rule = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        messages.append(_pattern(rule, _KEY_OR_NOTHING, "MyValue", "my_value", "12345"))
    return messages


def environment_name(value: str) -> Messages:
    if value and all(" " <= character <= "~" and character != "=" for character in value):
        return []
    return [
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
    ]


def config_key(value: str) -> Messages:
    """Check a key of a ConfigMap or Secret, which becomes a file's name."""
    messages = _no_longer_than(value, LONGEST_SUBDOMAIN)
    if re.fullmatch(_CONFIG_KEY, value) is None:
        rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        messages.append(_pattern(rule, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if value in (".", ".."):
        messages.append(f"must not be '{value}'")
    elif value.startswith(".."):
        messages.append("must not start with '..'")
    return messages


def header_name(value: str) -> Messages:
    if re.fullmatch(_HEADER, value) is not None:
        return []
    rule = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [_pattern(rule, _HEADER, "X-Header-Name")]


def port_name(value: str) -> Messages:
    """Check the name of a port (IANA service name)."""
    messages = _no_longer_than(value, LONGEST_PORT_NAME)
    if re.fullmatch(r"[-a-z0-9]+", value) is None:
        messages.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if re.search(r"[a-z]", value) is None:
        messages.append("must contain at least one letter (a-z)")
    if "--" in value:
        messages.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        messages.append("must not begin or end with a hyphen")
    return messages


def port_number(value: int) -> Messages:
    return within(value, 1, 65535)


def user_or_group_id(value: int) -> Messages:
    return within(value, 0, LARGEST_ID)


def within(value: int, lowest: int, highest: int) -> Messages:
    return [] if lowest <= value <= highest else [f"must be between {lowest} and {highest}, inclusive"]


def address(value: str) -> Messages:
    try:
        ip_address(value)
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return []


def pod_uid(value: str) -> Messages:
    """Check a UID that a manifest gives: it becomes part of the names of directories and cgroups."""
    messages = _no_longer_than(value, LONGEST_UID)
    if re.fullmatch(_UID, value) is None:
        rule = (
            "a pod's UID must consist of alphanumeric characters or '-', "
            "and must start and end with an alphanumeric character"
        )
        messages.append(_pattern(rule, _UID, "8c5f1f6e-0b6e-4e5b-9d3c-2f1f5a0f7a11"))
    return messages


def _key_rule() -> str:
    rule = (
        "must consist of alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character"
    )
    return _pattern(rule, _KEY, "MyName", "my.name", "123-abc")


def _no_longer_than(value: str, limit: int) -> Messages:
    return [f"must be no more than {limit} bytes"] if len(value.encode()) > limit else []


def _pattern(rule: str, pattern: str, *examples: str) -> str:
    named = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {named}regex used for validation is '{pattern}')"
