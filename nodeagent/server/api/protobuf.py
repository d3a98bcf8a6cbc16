"""Objects in Kubernetes' protobuf form, as kubectl's `create` commands send them; answers are JSON.

An envelope `k8s\\0`, then runtime.Unknown with the kind and the object. Only the fields that kubectl's
commands write are known: any other is refused, never dropped.
"""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from nodeagent.cluster.codec import Json
from nodeagent.cluster.errors import ApiError, bad_request

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_DEEPEST = 32

# Message -> its fields: "number name" is a text, "number name:type" something else; [type] repeats.
_MESSAGES: Mapping[str, str] = {
    "Unknown": "1 typeMeta:TypeMeta, 2 raw:bytes, 3 contentEncoding, 4 contentType",
    "TypeMeta": "1 apiVersion, 2 kind",
    "Time": "1 seconds:int, 2 nanos:int",
    "ObjectMeta": "1 name, 2 generateName, 3 namespace, 4 selfLink, 5 uid, 6 resourceVersion, "
    "7 generation:int, 8 creationTimestamp:Time, 10 deletionGracePeriodSeconds:int, 11 labels:{text}, "
    "12 annotations:{text}, 13 ownerReferences:[OwnerReference], 14 finalizers:[text]",
    "OwnerReference": "1 kind, 3 name, 4 uid, 5 apiVersion, 6 controller:bool, 7 blockOwnerDeletion:bool",
    "Namespace": "1 metadata:ObjectMeta, 2 spec:NamespaceSpec, 3 status:NamespaceStatus",
    "NamespaceSpec": "1 finalizers:[text]",
    "NamespaceStatus": "1 phase",
    "ResourceQuota": "1 metadata:ObjectMeta, 2 spec:ResourceQuotaSpec, 3 status:ResourceQuotaStatus",
    "ResourceQuotaSpec": "1 hard:{Quantity}, 2 scopes:[text]",
    "ResourceQuotaStatus": "1 hard:{Quantity}, 2 used:{Quantity}",
    "PriorityClass": "1 metadata:ObjectMeta, 2 value:int, 3 globalDefault:bool, 4 description, "
    "5 preemptionPolicy",
    "ConfigMap": "1 metadata:ObjectMeta, 2 data:{text}, 3 binaryData:{bytes}, 4 immutable:bool",
    "Secret": "1 metadata:ObjectMeta, 2 data:{bytes}, 3 type, 4 stringData:{text}, 5 immutable:bool",
    "ServiceAccount": "1 metadata:ObjectMeta",
    "Service": "1 metadata:ObjectMeta, 2 spec:ServiceSpec, 3 status:ServiceStatus",
    "ServiceSpec": "1 ports:[ServicePort], 2 selector:{text}, 3 clusterIP, 4 type, 5 externalIPs:[text], "
    "7 sessionAffinity, 8 loadBalancerIP, 10 externalName, 11 externalTrafficPolicy, "
    "12 healthCheckNodePort:int, 13 publishNotReadyAddresses:bool, 18 clusterIPs:[text]",
    "ServicePort": "1 name, 2 protocol, 3 port:int, 4 targetPort:IntOrString, 5 nodePort:int",
    "ServiceStatus": "1 loadBalancer:LoadBalancerStatus",
    "LoadBalancerStatus": "",
    "Deployment": "1 metadata:ObjectMeta, 2 spec:DeploymentSpec, 3 status:DeploymentStatus",
    "DeploymentSpec": "1 replicas:int, 2 selector:LabelSelector, 3 template:PodTemplateSpec, "
    "4 strategy:DeploymentStrategy, 5 minReadySeconds:int, 6 revisionHistoryLimit:int, 7 paused:bool, "
    "9 progressDeadlineSeconds:int",
    "DeploymentStrategy": "1 type",
    "DeploymentStatus": "1 observedGeneration:int, 2 replicas:int, 3 updatedReplicas:int, "
    "4 availableReplicas:int, 5 unavailableReplicas:int, 7 readyReplicas:int",
    "Job": "1 metadata:ObjectMeta, 2 spec:JobSpec, 3 status:JobStatus",
    "JobSpec": "1 parallelism:int, 2 completions:int, 3 activeDeadlineSeconds:int, 4 selector:LabelSelector, "
    "5 manualSelector:bool, 6 template:PodTemplateSpec, 7 backoffLimit:int, 8 ttlSecondsAfterFinished:int",
    "JobStatus": "4 active:int, 5 succeeded:int, 6 failed:int, 7 completedIndexes",
    "CronJob": "1 metadata:ObjectMeta, 2 spec:CronJobSpec, 3 status:CronJobStatus",
    "CronJobSpec": "1 schedule, 2 startingDeadlineSeconds:int, 3 concurrencyPolicy, 4 suspend:bool, "
    "5 jobTemplate:JobTemplateSpec, 6 successfulJobsHistoryLimit:int, 7 failedJobsHistoryLimit:int",
    "CronJobStatus": "",
    "JobTemplateSpec": "1 metadata:ObjectMeta, 2 spec:JobSpec",
    "LabelSelector": "1 matchLabels:{text}",
    "PodTemplateSpec": "1 metadata:ObjectMeta, 2 spec:PodSpec",
    "PodSpec": "2 containers:[Container], 3 restartPolicy, 4 terminationGracePeriodSeconds:int, "
    "5 activeDeadlineSeconds:int, 6 dnsPolicy, 7 nodeSelector:{text}, 8 serviceAccountName, "
    "9 serviceAccount, 10 nodeName, 11 hostNetwork:bool, 12 hostPID:bool, 13 hostIPC:bool, 16 hostname, "
    "17 subdomain, 19 schedulerName, 24 priorityClassName",
    "Container": "1 name, 2 image, 3 command:[text], 4 args:[text], 5 workingDir, 6 ports:[ContainerPort], "
    "7 env:[EnvVar], 8 resources:ResourceRequirements, 13 terminationMessagePath, 14 imagePullPolicy, "
    "16 stdin:bool, 17 stdinOnce:bool, 18 tty:bool, 20 terminationMessagePolicy",
    "ContainerPort": "1 name, 2 hostPort:int, 3 containerPort:int, 4 protocol, 5 hostIP",
    "EnvVar": "1 name, 2 value",
    "ResourceRequirements": "1 limits:{Quantity}, 2 requests:{Quantity}",
    "Eviction": "1 metadata:ObjectMeta, 2 deleteOptions:DeleteOptions",
    "DeleteOptions": "1 gracePeriodSeconds:int, 2 preconditions:Preconditions, 3 orphanDependents:bool, "
    "4 propagationPolicy, 5 dryRun:[text]",
    "Preconditions": "1 uid, 2 resourceVersion",
}


def decode(data: bytes) -> Json:
    """Return the object in a body as JSON; raises ApiError 400 or 415."""
    if not data.startswith(_MAGIC):
        raise bad_request("the object provided is unrecognized: it is not Kubernetes' protobuf form")
    try:
        envelope = _message("Unknown", data[len(_MAGIC) :], 0)
        kind = envelope.get("typeMeta", {}).get("kind", "")
        if kind not in _MESSAGES:
            message = f"a {kind[:100]!r} is not taken in protobuf form: send JSON"
            raise ApiError(415, "UnsupportedMediaType", message)
        content = _message(kind, base64.b64decode(envelope.get("raw", "")), 0)
    except (IndexError, UnicodeDecodeError) as error:
        raise bad_request("the object provided is unrecognized: the protobuf form is damaged") from error
    return {**envelope["typeMeta"], **content}


def _message(name: str, data: bytes, depth: int) -> Json:
    if depth > _DEEPEST:
        raise bad_request(f"objects may be nested at most {_DEEPEST} levels deep")
    fields = dict(_fields(name))
    result: Json = {}
    for number, value in _parts(data):
        if number not in fields:
            message = f"field {number} of {name} is not taken in protobuf form: send JSON"
            raise ApiError(415, "UnsupportedMediaType", message)
        field, type = fields[number]
        if type.startswith("["):
            result.setdefault(field, []).append(_value(type[1:-1], value, depth))
        elif type.startswith("{"):
            entry = dict(_parts(_bytes(value)))
            key = _bytes(entry.get(1, b"")).decode()
            result.setdefault(field, {})[key] = _value(type[1:-1], entry.get(2, b""), depth)
        elif (decoded := _value(type, value, depth)) not in ("", None):
            result[field] = decoded
    return result


def _value(type: str, value: int | bytes, depth: int) -> Any:
    match type:
        case "int" if isinstance(value, int):
            return value - (1 << 64) if value >> 63 else value
        case "bool":
            return bool(value)
        case "text":
            return _bytes(value).decode()
        case "bytes":
            return base64.b64encode(_bytes(value)).decode()
        case "Quantity":
            return _bytes(dict(_parts(_bytes(value))).get(1, b"0")).decode()
        case "Time":
            # Written by clients only as the time that there is none.
            return None
        case "IntOrString":
            parts = dict(_parts(_bytes(value)))
            return _bytes(parts.get(3, b"")).decode() if parts.get(1) else parts.get(2, 0)
    return _message(type, _bytes(value), depth + 1)


def _fields(name: str) -> Iterator[tuple[int, tuple[str, str]]]:
    for text in filter(None, _MESSAGES[name].split(", ")):
        number, _, field = text.partition(" ")
        field, _, type = field.partition(":")
        yield int(number), (field, type or "text")


def _parts(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield field numbers and values; raises IndexError where the data end too early."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        match tag & 7:
            case 0:
                value, position = _varint(data, position)
                yield tag >> 3, value
                continue
            case 2:
                length, position = _varint(data, position)
            case 1:
                length = 8
            case 5:
                length = 4
            case _:
                raise IndexError("a group, or nothing that protobuf knows")
        if position + length > len(data):
            raise IndexError("the data end within a field")
        yield tag >> 3, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = 0
    for index in range(10):
        byte = data[position + index]
        result |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return result & ((1 << 64) - 1), position + index + 1
    raise IndexError("a number without an end")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise IndexError("a number where there should be a text")
    return value
