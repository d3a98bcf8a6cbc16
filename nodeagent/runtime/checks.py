"""The keeper's own check of specs and records: it runs as root, so it believes no message and no file."""

import re

from nodeagent.runtime.protocol import EXITED, RUNNING

MAX_CONTAINER_ID = 128
MAX_HOSTNAME = 63
# (uid_t) -1 means "leave it" to the kernel
MAX_USER_ID = 2**32 - 2

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTAINER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


# what an absent field means: records of an older keeper lack the newer ones
DEFAULTS: dict[str, object] = {
    "attempt": 0,
    "env": {},
    "working_dir": "/",
    "root_directory": None,
    "hostname": "",
    "user_id": 0,
    "group_id": 0,
    "supplementary_group_ids": [],
    "no_new_privileges": False,
    "oom_score_adj": 0,
    "log_max_bytes": 10 * 1024 * 1024,
    "log_max_files": 5,
    "host_pid": False,
    "host_ipc": False,
    "mounts": [],
}


class BadRequest(Exception):
    """A message the keeper will not act on; the text says which part and what was expected."""


class CheckedMount:
    """A mount of which both paths are absolute."""

    __slots__ = ("read_only", "source", "target")

    def __init__(self, fields: object, where: str) -> None:
        if not isinstance(fields, dict) or not fields.keys() <= set(self.__slots__):
            raise BadRequest(f"{where}: expected an object of {', '.join(self.__slots__)}")
        self.source = _absolute(fields, "source", where)
        self.target = _absolute(fields, "target", where)
        self.read_only = fields.get("read_only", False) is True


class CheckedSpec:
    """A container spec of which every field has the right type and no path leaves its place."""

    __slots__ = (
        "argv",
        "attempt",
        "cgroup",
        "container_id",
        "container_name",
        "env",
        "group_id",
        "host_ipc",
        "host_pid",
        "hostname",
        "log_max_bytes",
        "log_max_files",
        "log_path",
        "mounts",
        "no_new_privileges",
        "oom_score_adj",
        "pod_cgroup",
        "pod_name",
        "pod_namespace",
        "pod_uid",
        "root_directory",
        "supplementary_group_ids",
        "user_id",
        "working_dir",
    )

    def __init__(self, fields: object) -> None:
        if not isinstance(fields, dict):
            raise BadRequest("spec: expected an object")
        fields = {**DEFAULTS, **fields}
        if fields.keys() != set(self.__slots__):
            unknown, missing = fields.keys() - set(self.__slots__), set(self.__slots__) - fields.keys()
            raise BadRequest(f"spec: unknown fields {sorted(unknown)}, missing fields {sorted(missing)}")
        self.container_id = _text(fields, "container_id")
        if len(self.container_id) > MAX_CONTAINER_ID or not _CONTAINER_ID.fullmatch(self.container_id):
            raise BadRequest(
                f"spec.container_id: {self.container_id!r}: expected at most {MAX_CONTAINER_ID} letters,"
                " digits, '-', '_' and '.', beginning with a letter or digit"
            )
        self.pod_uid = _text(fields, "pod_uid")
        self.pod_namespace = _text(fields, "pod_namespace")
        self.pod_name = _text(fields, "pod_name")
        self.container_name = _text(fields, "container_name")
        self.attempt = _integer(fields, "attempt", 0, 2**31)
        self.argv = _texts(fields, "argv")
        if not self.argv or not self.argv[0]:
            raise BadRequest("spec.argv: expected at least the name of a program")
        self.env = _environment(fields)
        self.working_dir = _absolute(fields, "working_dir")
        self.root_directory = (
            None if fields["root_directory"] is None else _absolute(fields, "root_directory")
        )
        self.hostname = (_text(fields, "hostname") or self.pod_name)[:MAX_HOSTNAME]
        self.user_id = _integer(fields, "user_id", 0, MAX_USER_ID)
        self.group_id = _integer(fields, "group_id", 0, MAX_USER_ID)
        self.supplementary_group_ids = _group_ids(fields)
        self.no_new_privileges = _flag(fields, "no_new_privileges")
        self.oom_score_adj = _integer(fields, "oom_score_adj", -1000, 1000)
        self.log_path = _absolute(fields, "log_path")
        self.cgroup = _relative(fields, "cgroup")
        self.pod_cgroup = _relative(fields, "pod_cgroup")
        self.log_max_bytes = _integer(fields, "log_max_bytes", -1, 2**62)
        self.log_max_files = _integer(fields, "log_max_files", 2, 1000)
        self.host_pid = _flag(fields, "host_pid")
        self.host_ipc = _flag(fields, "host_ipc")
        self.mounts = _mounts(fields)


def _text(fields: dict[str, object], name: str) -> str:
    return _plain_text(fields[name], f"spec.{name}")


def _plain_text(value: object, where: str) -> str:
    if not isinstance(value, str) or "\0" in value or _LONE_SURROGATE.search(value):
        raise BadRequest(f"{where}: {value!r}: expected Unicode text without NUL")
    return value


def _texts(fields: dict[str, object], name: str) -> list[str]:
    values = fields[name]
    if not isinstance(values, list):
        raise BadRequest(f"spec.{name}: expected a list")
    return [_plain_text(value, f"spec.{name}[{index}]") for index, value in enumerate(values)]


def _environment(fields: dict[str, object]) -> dict[str, str]:
    values = fields["env"]
    if not isinstance(values, dict):
        raise BadRequest("spec.env: expected an object")
    for name, value in values.items():
        _plain_text(value, f"spec.env[{name!r}]")
        if not _plain_text(name, "spec.env: name") or "=" in name:
            raise BadRequest(f"spec.env: {name!r}: expected a name without '='")
    return values


def _absolute(fields: dict[str, object], name: str, where: str = "spec") -> str:
    path = _plain_text(fields.get(name), f"{where}.{name}")
    if not path.startswith("/") or ".." in path.split("/"):
        raise BadRequest(f"{where}.{name}: {path!r}: expected an absolute path without '..'")
    return path


def _mounts(fields: dict[str, object]) -> list[CheckedMount]:
    values = fields["mounts"]
    if not isinstance(values, list):
        raise BadRequest("spec.mounts: expected a list")
    return [CheckedMount(value, f"spec.mounts[{index}]") for index, value in enumerate(values)]


def _relative(fields: dict[str, object], name: str) -> str:
    path = _text(fields, name)
    if path.startswith("/") or ".." in path.split("/"):
        raise BadRequest(f"spec.{name}: {path!r}: expected a path below the cgroup root, without '..'")
    return path


def _integer(fields: dict[str, object], name: str, least: int, most: int) -> int:
    return _plain_integer(fields[name], f"spec.{name}", least, most)


def _plain_integer(value: object, where: str, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadRequest(f"{where}: {value!r}: expected a number from {least} to {most}")
    return value


def _group_ids(fields: dict[str, object]) -> list[int]:
    values = fields["supplementary_group_ids"]
    if not isinstance(values, list):
        raise BadRequest("spec.supplementary_group_ids: expected a list")
    where = "spec.supplementary_group_ids"
    return [_plain_integer(value, f"{where}[{i}]", 0, MAX_USER_ID) for i, value in enumerate(values)]


def _flag(fields: dict[str, object], name: str) -> bool:
    value = fields[name]
    if not isinstance(value, bool):
        raise BadRequest(f"spec.{name}: {value!r}: expected true or false")
    return value


class CheckedRecord:
    """What an earlier keeper wrote down about a container besides its spec."""

    __slots__ = (
        "boot_id",
        "exit_code",
        "finished_at",
        "lost_lines",
        "message",
        "oom_killed",
        "pid",
        "pipes",
        "signal",
        "start_ticks",
        "started_at",
        "state",
    )

    def __init__(self, fields: dict[str, object]) -> None:
        self.pid = _plain_integer(fields["pid"], "pid", 1, 2**31)
        self.state = _plain_text(fields["state"], "state")
        if self.state not in (RUNNING, EXITED):
            raise BadRequest(f"state: {self.state!r}: expected {RUNNING!r} or {EXITED!r}")
        self.started_at = _optional_text(fields, "started_at")
        self.finished_at = _optional_text(fields, "finished_at")
        self.exit_code = _optional_integer(fields, "exit_code")
        self.signal = _optional_integer(fields, "signal")
        self.oom_killed = fields.get("oom_killed") is True
        self.message = _plain_text(fields.get("message", ""), "message")
        self.lost_lines = _plain_integer(fields.get("lost_lines", 0), "lost_lines", 0, 2**62)
        self.start_ticks = _optional_integer(fields, "start_ticks")
        self.boot_id = _plain_text(fields.get("boot_id", ""), "boot_id")
        pipes = fields.get("pipes", {})
        if not isinstance(pipes, dict):
            raise BadRequest("pipes: expected an object")
        self.pipes = {name: _plain_integer(inode, f"pipes.{name}", 0, 2**63) for name, inode in pipes.items()}


def _optional_text(fields: dict[str, object], name: str) -> str | None:
    value = fields.get(name)
    return None if value is None else _plain_text(value, name)


def _optional_integer(fields: dict[str, object], name: str) -> int | None:
    value = fields.get(name)
    return None if value is None else _plain_integer(value, name, 0, 2**63)
