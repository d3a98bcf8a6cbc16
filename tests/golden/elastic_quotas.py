"""Plays the event sequences of the elastic quota files, and compares what comes of them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from nodeagent.admission.elastic_quota.amounts import in_units, masked
from nodeagent.admission.elastic_quota.names import TREE_ID, pod_key
from nodeagent.admission.elastic_quota.preempt import select_victims
from nodeagent.admission.elastic_quota.prefilter import prefilter
from nodeagent.admission.elastic_quota.profile import bound_to_pool, pool, root_quota, tree_id
from nodeagent.admission.elastic_quota.quotas import Quotas, QuotaSettings
from nodeagent.admission.elastic_quota.report import debug_body, status_change
from nodeagent.admission.elastic_quota.revoke import Overuse
from nodeagent.admission.elastic_quota.webhook import Answer, QuotaWebhook, WebhookSettings
from nodeagent.api.decode import from_builtins, to_builtins
from nodeagent.api.duration import parse_duration
from nodeagent.api.elastic_quota import ElasticQuota, ElasticQuotaProfile
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
        self.profiles: dict[str, ElasticQuotaProfile] = {}
        self.pods: dict[str, Pod] = {}
        self.seen: list[str] = []
        gates = case.get("featureGates") or ()
        self.webhook = QuotaWebhook(
            WebhookSettings(
                guarantees="ElasticQuotaGuaranteeUsage" in gates,
                keys_may_differ="ElasticQuotaEnableUpdateResourceKey" in gates,
                parents_take_pods="SupportParentQuotaSubmitPod" in gates,
                default_quota="DisableDefaultQuota" not in gates,
            )
        )

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
        self._put_quota(from_builtins(operation["quota"], ElasticQuota))

    quota_update = quota_add

    def _put_quota(self, quota: ElasticQuota) -> None:
        if quota.metadata.name not in self.seen:
            self.seen.append(quota.metadata.name)
        self.quotas.put_quota(quota)

    def quota_delete(self, operation: Case) -> None:
        name = operation["name"] if "name" in operation else operation["quota"]
        self.quotas.remove_quota(name.rpartition("/")[2])

    def pod_add(self, operation: Case) -> None:
        self._count(from_builtins(operation["pod"], Pod))

    pod_update = pod_add

    def _count(self, pod: Pod) -> None:
        self.pods[pod_key(pod)] = pod
        self.quotas.put_pod(pod)

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
        for name, tree in self.quotas.trees.items():
            total = self.quotas.total(name)
            trees[name] = {"total": total, "totalExceptSystemAndDefaultUsed": tree.total}
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
        self.overuse = Overuse(self.quotas.settings.delay_evict_seconds)
        self.seconds = 0.0
        self.overuse.look(self.quotas, self.seconds)

    def tick(self, operation: Case) -> Case:
        self.seconds += operation["advanceSeconds"]
        revoked = {
            quota: [pod_key(each.pod) for each in pods]
            for quota, pods in self.overuse.look(self.quotas, self.seconds).items()
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

    def create(self, operation: Case) -> Case:
        return self._stored(
            self.webhook.create(from_builtins(operation["quota"], ElasticQuota)), created=True
        )

    def update(self, operation: Case) -> Case:
        return self._stored(self.webhook.update(from_builtins(operation["quota"], ElasticQuota)))

    def delete(self, operation: Case) -> Case:
        name = operation["quota"].rpartition("/")[2]
        answer = self.webhook.delete(name)
        if answer.allowed:
            del self.webhook.groups[name]
            self.quotas.remove_quota(name)
        return _answered(answer)

    def _stored(self, answer: Answer, *, created: bool = False) -> Case:
        result = _answered(answer)
        if answer.quota is not None:
            meta = answer.quota.metadata
            self.webhook.groups[meta.name] = answer.quota
            self._put_quota(answer.quota)
            if created:
                shown = {"labels": dict(meta.labels), "annotations": dict(meta.annotations)}
                result["object"] = {name: each for name, each in shown.items() if each}
        return result

    def pod_create(self, operation: Case) -> Case:
        pod = from_builtins(operation["pod"], Pod)
        bound = self._bound_to_pool(pod)
        answer = self.webhook.create_pod(bound)
        if answer.allowed:
            self.webhook.pods[pod_key(bound)] = bound
            self._count(bound)
        return {**_answered(answer), "affinityInjected": bound is not pod, **_terms(bound)}

    def _bound_to_pool(self, pod: Pod) -> Pod:
        quota = self.webhook.groups.get(self.webhook.quota_of(pod))
        tree = quota.metadata.labels.get(TREE_ID, "") if quota is not None else ""
        for profile in self.profiles.values():
            if self.quotas.settings.many_trees and tree and profile.metadata.labels.get(TREE_ID) == tree:
                return bound_to_pool(pod, profile)
        return pod

    def profile_put(self, operation: Case) -> None:
        profile = from_builtins(operation["profile"], ElasticQuotaProfile)
        self.profiles[f"{profile.metadata.namespace}/{profile.metadata.name}"] = profile

    def reconcile(self, operation: Case) -> Case:
        profile = self.profiles.get(operation["profile"])
        if profile is None:
            return {"requeue": False, "requeueAfterSeconds": 0}
        tree = tree_id(profile)
        labels = {**profile.metadata.labels, TREE_ID: tree}
        profile = replace(profile, metadata=replace(profile.metadata, labels=labels))
        self.profiles[operation["profile"]] = profile
        stored = self.webhook.groups.get(profile.spec.quota_name)
        quota = root_quota(profile, pool(profile, self.nodes.values()), stored)
        answer = self.webhook.update(quota) if stored is not None else self.webhook.create(quota)
        self._stored(answer)
        result: Case = {"treeID": tree, "requeue": False, "requeueAfterSeconds": 10 if answer.allowed else 2}
        written = self.webhook.groups.get(profile.spec.quota_name)
        if written is not None:
            document = to_builtins(written)
            result["quota"] = {name: document[name] for name in ("metadata", "spec")}
        return result

    def pod_store(self, operation: Case) -> None:
        pod = from_builtins(operation["pod"], Pod)
        self.webhook.pods[pod_key(pod)] = pod

    def pod_remove(self, operation: Case) -> None:
        pod = operation["pod"]
        key = pod if isinstance(pod, str) else f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        self.webhook.pods.pop(key, None)

    def topology(self, operation: Case) -> Case:
        return {"topology": self.webhook.view()}

    def debug(self, operation: Case) -> Case:
        group = self.quotas.group(operation["quota"])
        if group is None:
            return {"found": False}
        tree = self.quotas.tree_of(group.name).tree_id
        return {"found": True, "body": debug_body(group, tree, with_pods=operation["includePods"])}


class WebhookPlayer(Player):
    """The same for cases in which pods go through the webhook alone."""

    def pod_update(self, operation: Case) -> Case:
        answer = self.webhook.update_pod(from_builtins(operation["pod"], Pod))
        if answer.allowed:
            self.pod_store(operation)
        return _answered(answer)


def _terms(pod: Pod) -> Case:
    """The terms of the required node affinity, expressions by key; nothing where there are none."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    if required is None:
        return {}
    terms = [to_builtins(each) for each in required.node_selector_terms]
    for term in terms:
        term["matchExpressions"] = sorted(term.get("matchExpressions", []), key=lambda each: str(each["key"]))
    return {"requiredNodeSelectorTerms": terms}


def _answered(answer: Answer) -> Case:
    if answer.allowed:
        return {"allowed": True}
    return {"allowed": False, "stage": answer.stage, "message": answer.message}


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
