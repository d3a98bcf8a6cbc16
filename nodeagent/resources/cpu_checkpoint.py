"""The file `cpu_manager_state`, in kubelet's format."""

from collections.abc import Mapping

import msgspec

from nodeagent.hardware.cpuset import CpuSet, CpuSetError
from nodeagent.resources.checkpoint import StateFile, checksum, go_map
from nodeagent.resources.cpu_state import CpuState

FILE_NAME = "cpu_manager_state"
_NAMES = {"policy_name": "policyName", "default_cpu_set": "defaultCpuSet"}


class _Checkpoint(msgspec.Struct, rename=_NAMES):
    policy_name: str = ""
    default_cpu_set: str = ""
    entries: dict[str, dict[str, str]] = {}
    checksum: int = 0


class _OldCheckpoint(msgspec.Struct, rename=_NAMES):
    """Before Kubernetes 1.18: container id -> CPUs."""

    policy_name: str = ""
    default_cpu_set: str = ""
    entries: dict[str, str] = {}
    checksum: int = 0


def encode(policy: str, state: CpuState) -> bytes:
    """Return the file's content."""
    entries = {
        uid: {name: str(cpus) for name, cpus in sorted(containers.items())}
        for uid, containers in sorted(state.assignments.items())
    }
    checkpoint = _Checkpoint(policy, str(state.default), entries)
    content: dict[str, object] = {
        "policyName": policy,
        "defaultCpuSet": checkpoint.default_cpu_set,
        "entries": entries,
    }
    if not entries:
        del content["entries"]
    content["checksum"] = _checksum_of("CPUManagerCheckpoint", checkpoint)
    return msgspec.json.encode(content)


def load(
    file: StateFile, policy: str, container_ids: Mapping[str, tuple[str, str]]
) -> tuple[CpuState | None, bool]:
    """Read the file (None: there is none), and say whether it has today's layout. Raises StateFileError.

    `container_ids` finds pod UID and container name by container id, for files in the old layout.
    """
    data = file.read()
    if data is None:
        return None, True
    try:
        current = _decode_current(data)
        checkpoint = current if current and _is_sound(current) else _decode_old(data, current, container_ids)
        if checkpoint.policy_name != policy:
            raise ValueError(
                f'configured policy "{policy}" differs from '
                f'state checkpoint policy "{checkpoint.policy_name}"'
            )
        return _state(checkpoint), checkpoint is current
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise file.error(str(error)) from None


def _decode_current(data: bytes) -> _Checkpoint | None:
    try:
        return msgspec.json.decode(data, type=_Checkpoint)
    except msgspec.DecodeError:
        return None


def _decode_old(
    data: bytes, current: _Checkpoint | None, container_ids: Mapping[str, tuple[str, str]]
) -> _Checkpoint:
    try:
        old = msgspec.json.decode(data, type=_OldCheckpoint)
    except msgspec.ValidationError as error:
        # Of the current layout, so what is wrong is the checksum.
        raise ValueError("checkpoint is corrupted") if current else error from None
    if old.checksum not in (0, _checksum_of("CPUManagerCheckpoint", old)):
        raise ValueError("checkpoint is corrupted")
    entries: dict[str, dict[str, str]] = {}
    for container_id, cpus in old.entries.items():
        if container_id not in container_ids:
            raise ValueError(
                "failed to migrate checkpoint from v1 to v2: "
                f"containerID '{container_id}' not found in initial containers list"
            )
        uid, name = container_ids[container_id]
        entries.setdefault(uid, {})[name] = cpus
    return _Checkpoint(old.policy_name, old.default_cpu_set, entries)


def _is_sound(checkpoint: _Checkpoint) -> bool:
    """Checksum 0 is accepted unchecked, and the struct's name of one Kubernetes release too."""
    return checkpoint.checksum == 0 or checkpoint.checksum in (
        _checksum_of("CPUManagerCheckpoint", checkpoint),
        _checksum_of("CPUManagerCheckpointV2", checkpoint),
    )


def _state(checkpoint: _Checkpoint) -> CpuState:
    text = checkpoint.default_cpu_set
    try:
        default = CpuSet.parse(text)
    except CpuSetError as error:
        raise ValueError(f'could not parse default cpu set "{text}": {error}') from None
    assignments: dict[str, dict[str, CpuSet]] = {}
    for uid, containers in checkpoint.entries.items():
        for name, text in containers.items():
            try:
                assignments.setdefault(uid, {})[name] = CpuSet.parse(text)
            except CpuSetError as error:
                raise ValueError(
                    f'could not parse cpuset "{text}" for container "{name}" in pod "{uid}": {error}'
                ) from None
    return CpuState(default, assignments)


def _checksum_of(struct: str, checkpoint: _Checkpoint | _OldCheckpoint) -> int:
    if isinstance(checkpoint, _OldCheckpoint):
        kind, entries = "map[string]string", checkpoint.entries
    else:
        kind = "map[string]map[string]string"
        entries = {uid: go_map(containers) for uid, containers in checkpoint.entries.items()}
    return checksum(
        f"(*state.{struct}){{PolicyName:(string){checkpoint.policy_name} "
        f"DefaultCPUSet:(string){checkpoint.default_cpu_set} Entries:({kind}){go_map(entries)} "
        "Checksum:(checksum.Checksum)0}"
    )
