"""Which kinds of objects there are: one row a kind, and those that CustomResourceDefinitions add."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nodeagent.admission.request import GroupResource
from nodeagent.api.base import ApiObject
from nodeagent.api.elastic_quota import ElasticQuota
from nodeagent.api.event import Event
from nodeagent.api.node import Node
from nodeagent.api.persistent_volume_claim import PersistentVolumeClaim
from nodeagent.api.pod import Pod
from nodeagent.api.policy import LimitRange, PriorityClass, ResourceQuota
from nodeagent.api.service import Service

Column = tuple[str, str]
"""A column of a table: its title and the path of the field in it, as in `.spec.replicas`."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: its names, and the type that its objects are decoded to strictly (None: any JSON object)."""

    kind: str
    plural: str
    group: str = ""
    version: str = "v1"
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    object_type: type[ApiObject] | None = None
    has_status: bool = True
    columns: tuple[Column, ...] = ()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The resource with its group, as in messages and quotas: "pods", "deployments.apps"."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.plural, self.group)

    @property
    def qualified(self) -> str:
        """The kind as messages of validation name it: "Pod", "Deployment.apps"."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


POD = Kind("Pod", "pods", short_names=("po",), object_type=Pod)
NAMESPACE = Kind("Namespace", "namespaces", short_names=("ns",), namespaced=False)
NODE = Kind("Node", "nodes", short_names=("no",), namespaced=False, object_type=Node)
EVENT = Kind("Event", "events", short_names=("ev",), object_type=Event, has_status=False)
LIMIT_RANGE = Kind(
    "LimitRange", "limitranges", short_names=("limits",), object_type=LimitRange, has_status=False
)
RESOURCE_QUOTA = Kind("ResourceQuota", "resourcequotas", short_names=("quota",), object_type=ResourceQuota)
PRIORITY_CLASS = Kind(
    "PriorityClass",
    "priorityclasses",
    "scheduling.k8s.io",
    short_names=("pc",),
    namespaced=False,
    object_type=PriorityClass,
    has_status=False,
)
SERVICE = Kind("Service", "services", short_names=("svc",), object_type=Service)
PERSISTENT_VOLUME_CLAIM = Kind(
    "PersistentVolumeClaim", "persistentvolumeclaims", short_names=("pvc",), object_type=PersistentVolumeClaim
)
CONFIG_MAP = Kind("ConfigMap", "configmaps", short_names=("cm",), has_status=False)
SECRET = Kind("Secret", "secrets", has_status=False)
SERVICE_ACCOUNT = Kind("ServiceAccount", "serviceaccounts", short_names=("sa",), has_status=False)
REPLICATION_CONTROLLER = Kind("ReplicationController", "replicationcontrollers", short_names=("rc",))
DEPLOYMENT = Kind("Deployment", "deployments", "apps", short_names=("deploy",))
REPLICA_SET = Kind("ReplicaSet", "replicasets", "apps", short_names=("rs",))
STATEFUL_SET = Kind("StatefulSet", "statefulsets", "apps", short_names=("sts",))
JOB = Kind("Job", "jobs", "batch")
CRON_JOB = Kind("CronJob", "cronjobs", "batch", short_names=("cj",))
LEASE = Kind("Lease", "leases", "coordination.k8s.io", has_status=False)
ELASTIC_QUOTA = Kind(
    "ElasticQuota",
    "elasticquotas",
    "scheduling.sigs.k8s.io",
    "v1alpha1",
    short_names=("eq", "eqs"),
    object_type=ElasticQuota,
)
CUSTOM_RESOURCE_DEFINITION = Kind(
    "CustomResourceDefinition",
    "customresourcedefinitions",
    "apiextensions.k8s.io",
    short_names=("crd", "crds"),
    namespaced=False,
)

BUILT_IN: tuple[Kind, ...] = (
    NAMESPACE,
    NODE,
    POD,
    LIMIT_RANGE,
    RESOURCE_QUOTA,
    EVENT,
    CONFIG_MAP,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    PERSISTENT_VOLUME_CLAIM,
    REPLICATION_CONTROLLER,
    PRIORITY_CLASS,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    JOB,
    CRON_JOB,
    LEASE,
    ELASTIC_QUOTA,
    CUSTOM_RESOURCE_DEFINITION,
)


class Kinds:
    """The built-in kinds, and the installed ones."""

    def __init__(self) -> None:
        self._custom: dict[str, tuple[Kind, ...]] = {}

    def __iter__(self) -> Iterator[Kind]:
        yield from BUILT_IN
        for kinds in self._custom.values():
            yield from kinds

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind served under a path, None if there is none."""
        return next((k for k in self if (k.group, k.version, k.plural) == (group, version, plural)), None)

    def install(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        """Make the kinds of these CustomResourceDefinitions the installed ones."""
        self._custom = {each["metadata"]["name"]: tuple(_of_definition(each)) for each in definitions}


def _of_definition(definition: Mapping[str, Any]) -> Iterator[Kind]:
    """A definition that was stored has passed validation: what is read here is there."""
    spec = definition["spec"]
    names = spec["names"]
    for version in spec["versions"]:
        if version.get("served", True):
            columns = version.get("additionalPrinterColumns") or ()
            yield Kind(
                kind=names["kind"],
                plural=names["plural"],
                group=spec["group"],
                version=version["name"],
                short_names=tuple(names.get("shortNames") or ()),
                namespaced=spec["scope"] == "Namespaced",
                columns=tuple((column["name"], column["jsonPath"]) for column in columns),
            )
