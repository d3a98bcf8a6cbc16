"""Plays the event sequences of the elastic quota files, and compares what comes of them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from nodeagent.admission.elastic_quota.amounts import in_units, masked
from nodeagent.admission.elastic_quota.names import pod_key
from nodeagent.admission.elastic_quota.preempt import select_victims
from nodeagent.admission.elastic_quota.prefilter import prefilter
from nodeagent.admission.elastic_quota.quotas import Quotas, QuotaSettings
from nodeagent.admission.elastic_quota.report import debug_body, status_change
from nodeagent.admission.elastic_quota.revoke import Overuse
from nodeagent.api.decode import from_builtins
from nodeagent.api.duration import parse_duration
from nodeagent.api.elastic_quota import ElasticQuota
from nodeagent.api.meta import LabelSelector
from nodeagent.api.node import Node
from nodeagent.api.pod import Pod
from nodeagent.api.quantity import Quantity
from nodeagent.scheduling.fit import NodeView
from nodeagent.scheduling.preemption import DisruptionBudget

Case = dict[str, Any]

_GATES = {
    "ElasticQuotaGuaranteeUsage": ("guarantees", True),
    "DisableDefaultQuota": ("default_quota", False),
    "MultiQuotaTree": ("many_trees", True),
    "ElasticQuotaIgnorePodOverhead": ("counts_overhead", False),
    "ElasticQuotaIgnoreTerminatingPod": ("ignores_terminating", True),
    "ElasticQuotaImmediateIgnoreTerminatingPod": ("ignores_terminating_at_once", True),
}
_ARGUMENTS = {
    "enableRuntimeQuota": "runtime_quota",
    "enableMinQuotaScale": "min_quota_scale",
    "enableCheckParentQuota": "check_parents",
    "monitorAllQuotas": "revokes",
}
# What a webhook alone looks at.
_ELSEWHERE = frozenset(("SupportParentQuotaSubmitPod", "ElasticQuotaEnableUpdateResourceKey"))


def settings(case: Case) -> QuotaSettings:
    """The settings of a case."""
    arguments = case.get("args") or {}
    chosen: dict[str, Any] = {own: arguments[name] for name, own in _ARGUMENTS.items() if name in arguments}
    if "disableDefaultQuotaPreemption" in arguments:
        chosen["default_quota_preemption"] = not arguments["disableDefaultQuotaPreemption"]
    if "delayEvictTime" in arguments:
        chosen["delay_evict_seconds"] = parse_duration(arguments["delayEvictTime"])
    for gate in case.get("featureGates") or ():
        if gate not in _ELSEWHERE:
            name, value = _GATES[gate]
            chosen[name] = value
    return QuotaSettings(**chosen)


def amounts(document: Mapping[str, str]) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in document.items()}


class Player:
    """A cluster that is fed a case's events; each method is an operation and returns its result."""

    def __init__(self, case: Case) -> None:
        self.now = datetime.now(UTC)
        self.quotas = Quotas(settings(case), lambda: self.now)
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.seen: list[str] = []

    def play(self, operation: Case) -> Any:
        return getattr(self, operation["op"])(operation)

    def node_add(self, operation: Case) -> None:
        node = from_builtins(operation["node"], Node)
        self.nodes[node.metadata.name] = node
        self.quotas.put_node(node)

    node_update = node_put = node_add

    def node_delete(self, operation: Case) -> None:
        self.quotas.remove_node(operation["name"])

    node_remove = node_delete

    def quota_add(self, operation: Case) -> None:
        quota = from_builtins(operation["quota"], ElasticQuota)
        if quota.metadata.name not in self.seen:
            self.seen.append(quota.metadata.name)
        self.quotas.put_quota(quota)

    quota_update = quota_add

    def quota_delete(self, operation: Case) -> None:
        name = operation["name"] if "name" in operation else operation["quota"]
        self.quotas.remove_quota(name.rpartition("/")[2])

    def pod_add(self, operation: Case) -> None:
        pod = from_builtins(operation["pod"], Pod)
        self.pods[f"{pod.metadata.namespace}/{pod.metadata.name}"] = pod
        self.quotas.put_pod(pod)

    pod_update = pod_add

    def pod_delete(self, operation: Case) -> None:
        self.pods.pop(operation["pod"], None)
        self.quotas.remove_pod(operation["pod"])

    def refresh(self, operation: Case) -> Case:
        returned = {}
        for name in operation["quotas"]:
            self.quotas.refresh(name)
            group = self.quotas.group(name)
            assert group is not None
            returned[name] = in_units(masked(group.runtime or {}, group.max.keys()))
        return {"returned": returned}

    def refresh_all(self, operation: Case) -> None:
        self.quotas.refresh_all()

    def migrate_default(self, operation: Case) -> None:
        self.quotas.migrate_default()

    def schedule(self, operation: Case) -> Case:
        verdict = prefilter(self.quotas, self.pods[operation["pod"]])
        if verdict.code == "Success":
            self.quotas.reserve(operation["pod"])
        return {"code": verdict.code, "message": verdict.message}

    def unreserve(self, operation: Case) -> None:
        self.quotas.reserve(operation["pod"], is_assigned=False)

    def dump(self, operation: Case) -> Case:
        with_pods = operation.get("includePods", False)
        return {
            "quotas": {name: self._dumped(name, with_pods) for name in operation.get("only") or self.seen}
        }

    def _dumped(self, name: str, with_pods: bool) -> Case | None:
        group = self.quotas.group(name)
        if group is None:
            return None
        body = debug_body(group, self.quotas.tree_of(name).tree_id, with_pods=with_pods)
        del body["name"]
        return body

    def dump_totals(self, operation: Case) -> Case:
        trees = {}
        for tree_id, tree in self.quotas.trees.items():
            total = self.quotas.total(tree_id)
            trees[tree_id] = {"total": total, "totalExceptSystemAndDefaultUsed": tree.total}
        return {
            "trees": {
                tree: {name: in_units(each) for name, each in own.items()} for tree, own in trees.items()
            }
        }

    def status(self, operation: Case) -> Case:
        changes: Case = {}
        for name in operation["quotas"]:
            group = self.quotas.group(name)
            changed = None if group is None else status_change(group)
            if changed is not None:
                used = {key: str(each) for key, each in changed.status.used.items()}
                empty = not any(changed.status.used.values())
                annotations = dict(changed.metadata.annotations)
                changes[name] = {"annotations": annotations, "used": None if empty else used}
        return {"annotations": changes}

    def monitor_start(self, operation: Case) -> None:
        self.overuse = Overuse(self.quotas)
        self.seconds = 0.0
        self.overuse.look(self.seconds)

    def tick(self, operation: Case) -> Case:
        self.seconds += operation["advanceSeconds"]
        revoked = {
            quota: [pod_key(each.pod) for each in pods]
            for quota, pods in self.overuse.look(self.seconds).items()
        }
        for key in [key for pods in revoked.values() for key in pods if operation.get("apply")]:
            self.quotas.remove_pod(key)
        return {"revoked": revoked}

    def select_victims(self, operation: Case) -> Case:
        pod = self.pods[operation["pod"]]
        first = prefilter(self.quotas, pod)
        node = self.nodes[operation["node"]]
        running = [each for each in self.pods.values() if each.spec.node_name == node.metadata.name]
        view = NodeView(node.metadata.name, node.status.allocatable, node.metadata.labels, node.spec.taints)
        found = select_victims(
            self.quotas, pod, view, running, [_budget(each) for each in operation.get("pdbs") or ()]
        )
        return {
            "preFilter": {"code": first.code, "message": first.message},
            "victims": [pod_key(each) for each in found.victims],
            "pdbViolations": found.violations,
            "code": found.code,
            "message": found.message,
        }

    def debug(self, operation: Case) -> Case:
        group = self.quotas.group(operation["quota"])
        if group is None:
            return {"found": False}
        tree = self.quotas.tree_of(group.name).tree_id
        return {"found": True, "body": debug_body(group, tree, with_pods=operation["includePods"])}


def _budget(document: Case) -> DisruptionBudget:
    return DisruptionBudget(
        document["metadata"]["namespace"],
        from_builtins(document["spec"]["selector"], LabelSelector),
        document["status"]["disruptionsAllowed"],
        frozenset(document["status"].get("disruptedPods") or ()),
    )


def as_numbers(dumped: Case | None) -> Case | None:
    """A dumped group with amounts as numbers, without zeros and empty maps; runtime has the keys of max."""
    if dumped is None:
        return None
    limits = dumped.get("max") or {}
    shown: Case = {}
    for name, value in dumped.items():
        if name == "podCache":
            value = {
                key: {"isAssigned": pod["isAssigned"], "resource": _numbers(pod["resource"])}
                for key, pod in value.items()
            }
        elif isinstance(value, dict):
            value = _numbers({k: v for k, v in value.items() if name != "runtime" or k in limits})
        if value != {}:
            shown[name] = value
    return shown


def _numbers(written: Case) -> Case:
    numbers = {key: _number(key, value) for key, value in written.items()}
    return {key: number for key, number in numbers.items() if number}


def _number(key: str, value: object) -> int:
    if isinstance(value, int):
        return value
    quantity = Quantity.parse(str(value))
    return in_units({key: quantity})[key]
