"""What a container is asked to be, and what is known of it: the agent's side of the keeper's messages."""

from collections.abc import Mapping

import msgspec


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A file or directory of the host that a container sees at a path of its own, links not followed out."""

    source: str
    target: str
    read_only: bool = False


class ContainerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One container to start. The keeper checks it again (`checks.CheckedSpec`) and never forgets a field."""

    container_id: str
    pod_uid: str
    pod_namespace: str
    pod_name: str
    container_name: str
    attempt: int = 0
    argv: tuple[str, ...]
    # exactly what the process gets, except that PATH and HOSTNAME are added where they are missing
    env: Mapping[str, str] = {}
    working_dir: str = "/"
    # None: the host's own file system
    root_directory: str | None = None
    # "" : the pod's name
    hostname: str = ""
    user_id: int = 0
    group_id: int = 0
    supplementary_group_ids: tuple[int, ...] = ()
    no_new_privileges: bool = False
    oom_score_adj: int = 0
    log_path: str
    # both relative to the cgroup root
    cgroup: str
    pod_cgroup: str
    log_max_bytes: int = 10 * 1024 * 1024
    log_max_files: int = 5
    host_pid: bool = False
    host_ipc: bool = False
    mounts: tuple[Mount, ...] = ()


class ContainerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One container as the keeper knows it.

    `state` is "created" (stands before its first instruction), "running" or "exited". An exited container
    without `exit_code` ended while no keeper watched: kubelet calls that ContainerStatusUnknown, exit code
    137. After a signal `exit_code` is 128 + `signal`. Times are RFC 3339 with nanoseconds.
    """

    spec: ContainerSpec
    pid: int
    state: str
    started_at: str | None = None
    finished_at: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    oom_killed: bool = False
    message: str = ""
    # lines that the log's disk refused
    lost_lines: int = 0
