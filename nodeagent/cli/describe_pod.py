"""One pod in full, laid out as `kubectl describe pod` does."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from nodeagent.api.ages import age, moment
from nodeagent.api.event import Event
from nodeagent.api.pod import (
    Container,
    ContainerState,
    ContainerStateWaiting,
    ContainerStatus,
    EnvVar,
    Pod,
    Probe,
    Toleration,
)
from nodeagent.api.qos import pod_priority, qos_class
from nodeagent.api.quantity import Quantity
from nodeagent.cli.layout import Block, Entry, given, pairs, render
from nodeagent.cli.objects import last_seen
from nodeagent.cli.table import NONE, columns


def describe_pod(pod: Pod, events: Sequence[Event], cpus: str, now: datetime) -> str:
    """Everything an operator asks about a pod."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    head: list[Entry] = [
        ("Name", meta.name),
        ("Namespace", meta.namespace),
        ("Priority", str(pod_priority(pod))),
        *given(("Priority Class Name", spec.priority_class_name)),
        ("Node", f"{spec.node_name}/{status.host_ip or ''}" if spec.node_name else NONE),
        ("Start Time", _time(status.start_time)),
        ("Labels", pairs(meta.labels)),
        ("Annotations", pairs(meta.annotations, ": ")),
        ("Status", _phase(pod)),
        *given(("Reason", status.reason), ("Message", status.message)),
        ("IP", status.pod_ip or NONE),
    ]
    if spec.init_containers:
        head.append(("Init Containers", _containers(spec.init_containers, status.init_container_statuses)))
    head.append(("Containers", _containers(spec.containers, status.container_statuses)))
    tail: list[Entry] = [
        ("Volumes", [volume.name for volume in spec.volumes]),
        ("QoS Class", str(qos_class(pod))),
        ("CPUs", cpus),
        ("Node-Selectors", pairs(spec.node_selector)),
        ("Tolerations", [_toleration(toleration) for toleration in spec.tolerations]),
    ]
    return "\n".join([render(head), _conditions(pod), render(tail), describe_events(events, now)])


def describe_events(events: Sequence[Event], now: datetime) -> str:
    """The last part of every description."""
    if not events:
        return f"Events:  {NONE}"
    header = ["Type", "Reason", "Age", "From", "Message"]
    rows = [
        [
            event.type or "Normal",
            event.reason or NONE,
            _event_age(event, now),
            event.source.component or event.reporting_component or NONE,
            " ".join((event.message or "").split()),
        ]
        for event in events
    ]
    return "Events:\n" + columns(header, [["-" * len(name) for name in header], *rows], indent="  ")


def _event_age(event: Event, now: datetime) -> str:
    last = age(moment(last_seen(event)), now)
    if (event.count or 1) > 1:
        return f"{last} (x{event.count} over {age(moment(event.first_timestamp), now)})"
    return last


def _containers(containers: Sequence[Container], statuses: Sequence[ContainerStatus]) -> Block:
    by_name = {status.name: status for status in statuses}
    return Block((c.name, _container(c, by_name.get(c.name))) for c in containers)


def _container(container: Container, status: ContainerStatus | None) -> Block:
    ports = [f"{port.container_port}/{port.protocol or 'TCP'}" for port in container.ports]
    text = Block(given(("Container ID", status.container_id if status else None)))
    text += [
        ("Image", container.image or ""),
        ("Ports" if len(ports) > 1 else "Port", ", ".join(ports) or NONE),
    ]
    if container.command:
        text.append(("Command", list(container.command)))
    if container.args:
        text.append(("Args", list(container.args)))
    if status is not None:
        text += [*_state("State", status.state), *_state("Last State", status.last_state)]
        text += [("Ready", str(status.ready)), ("Restart Count", str(status.restart_count))]
    resources = container.resources
    text += [
        (title, _amounts(amounts))
        for title, amounts in (("Limits", resources.limits), ("Requests", resources.requests))
        if amounts
    ]
    text += _probes(container)
    text.append(("Environment", Block((variable.name, _environment(variable)) for variable in container.env)))
    mounts = [
        f"{mount.mount_path} from {mount.name} ({'ro' if mount.read_only else 'rw'})"
        for mount in container.volume_mounts
    ]
    return Block([*text, ("Mounts", mounts)])


def _state(title: str, state: ContainerState) -> list[Entry]:
    if state.running:
        return [(title, "Running"), ("  Started", _time(state.running.started_at))]
    if state.terminated:
        ended = state.terminated
        return [
            (title, "Terminated"),
            *given(("  Reason", ended.reason), ("  Message", ended.message)),
            ("  Exit Code", str(ended.exit_code)),
            *given(("  Signal", str(ended.signal) if ended.signal else None)),
            ("  Started", _time(ended.started_at)),
            ("  Finished", _time(ended.finished_at)),
        ]
    if state.waiting or title == "State":
        waiting = state.waiting or ContainerStateWaiting()
        return [(title, "Waiting"), *given(("  Reason", waiting.reason), ("  Message", waiting.message))]
    return []


def _probes(container: Container) -> list[Entry]:
    probes = (
        ("Liveness", container.liveness_probe),
        ("Readiness", container.readiness_probe),
        ("Startup", container.startup_probe),
    )
    return [(title, _probe(probe)) for title, probe in probes if probe is not None]


def _amounts(amounts: Mapping[str, Quantity]) -> Block:
    return Block((name, str(amount)) for name, amount in sorted(amounts.items()))


def _environment(variable: EnvVar) -> str:
    source = variable.value_from
    if source is None:
        return variable.value or ""
    if source.field_ref:
        return f"({source.field_ref.api_version or 'v1'}:{source.field_ref.field_path})"
    if source.resource_field_ref:
        return f"({source.resource_field_ref.resource})"
    if source.secret_key_ref:
        return f"<set to the key '{source.secret_key_ref.key}' in secret '{source.secret_key_ref.name}'>"
    if source.config_map_key_ref:
        key = source.config_map_key_ref
        return f"<set to the key '{key.key}' of config map '{key.name}'>"
    return "<set from a source>"


def _probe(probe: Probe) -> str:
    if probe.exec:
        action = f"exec [{' '.join(probe.exec.command)}]"
    elif probe.http_get:
        get = probe.http_get
        action = f"http-get {(get.scheme or 'HTTP').lower()}://{get.host or ''}:{get.port}{get.path or '/'}"
    elif probe.tcp_socket:
        action = f"tcp-socket {probe.tcp_socket.host or ''}:{probe.tcp_socket.port}"
    else:
        action = "grpc" if probe.grpc else "unknown"
    return (
        f"{action} delay={probe.initial_delay_seconds or 0}s timeout={probe.timeout_seconds or 1}s "
        f"period={probe.period_seconds or 10}s #success={probe.success_threshold or 1} "
        f"#failure={probe.failure_threshold or 3}"
    )


def _toleration(toleration: Toleration) -> str:
    text = toleration.key or ""
    if toleration.value:
        text += f"={toleration.value}"
    if toleration.effect:
        text += f":{toleration.effect}"
    if toleration.operator == "Exists":
        text += " op=Exists" if text else "op=Exists"
    seconds = toleration.toleration_seconds
    return text + (f" for {seconds}s" if seconds is not None else "")


def _phase(pod: Pod) -> str:
    if pod.metadata.deletion_timestamp:
        return f"Terminating (since {_time(pod.metadata.deletion_timestamp)})"
    return pod.status.phase or "Unknown"


def _conditions(pod: Pod) -> str:
    if not pod.status.conditions:
        return f"Conditions:  {NONE}"
    rows = [[c.type, c.status, c.reason or "", c.message or ""] for c in pod.status.conditions]
    return "Conditions:\n" + columns(["Type", "Status", "Reason", "Message"], rows, indent="  ")


def _time(text: str | None) -> str:
    at = moment(text)
    return at.strftime("%a, %d %b %Y %H:%M:%S %z") if at else NONE
