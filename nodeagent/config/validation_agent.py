"""What is wrong with the agent's own settings, together: the device list."""

from collections import Counter
from collections.abc import Iterator

from nodeagent.api.errors import FieldError
from nodeagent.api.names import qualified_name
from nodeagent.config.schema import AgentConfiguration, DeviceItem
from nodeagent.config.setting import absolute_path, quoted
from nodeagent.config.validation import INVALID_CONFIGURATION


def check_agent_rules(agent: AgentConfiguration) -> Iterator[FieldError]:
    """Faults of fields together."""
    for path, value, message in _devices(agent):
        yield FieldError(path, INVALID_CONFIGURATION, value, f"{path}: {message}")


def _devices(agent: AgentConfiguration) -> Iterator[tuple[str, object, str]]:
    names = Counter(kind.name for kind in agent.devices)
    for number, kind in enumerate(agent.devices):
        path = f"devices[{number}]"
        domain = kind.name.partition("/")[0] if "/" in kind.name else ""
        if not domain or any(qualified_name(kind.name)) or domain.endswith("kubernetes.io"):
            yield (
                f"{path}.name",
                kind.name,
                f"{quoted(kind.name)} must be an extended resource of a domain of its own, "
                "such as example.com/gpu",
            )
        elif names[kind.name] > 1:
            yield f"{path}.name", kind.name, f"{quoted(kind.name)} is listed more than once; list it once"
        ids = Counter(device.id for device in kind.devices)
        for place, device in enumerate(kind.devices):
            yield from _device(device, f"{path}.devices[{place}]", ids[device.id])


def _device(device: DeviceItem, path: str, times: int) -> Iterator[tuple[str, object, str]]:
    if not device.id or times > 1:
        yield f"{path}.id", device.id, f"{quoted(device.id)} must be a name that no other device has"
    for node in device.device_nodes:
        if not node.startswith("/dev/") or absolute_path("", node) is not None:
            yield f"{path}.deviceNodes", node, f"{quoted(node)} must be a path below /dev"
    for number, mount in enumerate(device.mounts):
        for name, value in (("hostPath", mount.host_path), ("containerPath", mount.container_path)):
            problem = "must not be empty" if not value else absolute_path(name, value)
            if problem:
                yield f"{path}.mounts[{number}].{name}", value, f"{name} {quoted(value)}: {problem}"
