"""The elastic quotas of this node: who may still come, who must give back, and how it stands."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from nodeagent.admission.elastic_quota.group import CountedPod
from nodeagent.admission.elastic_quota.preempt import select_victims
from nodeagent.admission.elastic_quota.prefilter import Verdict, prefilter
from nodeagent.admission.elastic_quota.quotas import Quotas, QuotaSettings
from nodeagent.admission.elastic_quota.revoke import Overuse
from nodeagent.api.duration import parse_duration
from nodeagent.api.elastic_quota import ElasticQuota
from nodeagent.api.meta import ObjectMeta
from nodeagent.api.node import Node, NodeStatus
from nodeagent.api.pod import Pod
from nodeagent.clock import Clock
from nodeagent.config.schema import ElasticQuotaArgs
from nodeagent.scheduling.fit import NodeView


@dataclass(frozen=True, slots=True)
class QuotaPod:
    """A pod of the node: has it the resources that it asks for, and is it about to give them back?"""

    pod: Pod
    holds_resources: bool
    is_leaving: bool = False


def quota_settings(args: ElasticQuotaArgs) -> QuotaSettings:
    """Take the settings from a checked configuration."""
    return QuotaSettings(
        runtime_quota=args.enable_runtime_quota,
        min_quota_scale=args.enable_min_quota_scale,
        check_parents=args.enable_check_parent_quota,
        revokes=args.monitor_all_quotas,
        delay_evict_seconds=parse_duration(args.delay_evict_time),
    )


class TeamQuotas:
    """Works everything out from the objects and pods that there are just now.

    `groups` is set as the objects change; without any, nothing is counted and nobody refused.
    """

    def __init__(
        self,
        settings: QuotaSettings,
        node: Callable[[], NodeView],
        pods: Callable[[], Iterable[QuotaPod]],
        clock: Clock,
    ) -> None:
        self.groups: Sequence[ElasticQuota] = ()
        self.settings = settings
        self._node = node
        self._pods = pods
        self._clock = clock
        self._overuse = Overuse(settings.delay_evict_seconds)

    def current(
        self, newcomer: Pod | None = None, leaving: Iterable[Pod] = (), kept: Iterable[Pod] = ()
    ) -> Quotas:
        """Return all groups with what each may use.

        `newcomer` counts as a pod that asks, those that are `leaving` as if they had nothing any more, and
        those for which room is `kept` as if they had it.
        """
        gone = {pod.metadata.uid for pod in leaving}
        quotas = Quotas(self.settings, self._clock.now)
        view = self._node()
        quotas.put_node(
            Node(metadata=ObjectMeta(name=view.name), status=NodeStatus(allocatable=dict(view.allocatable)))
        )
        for group in self.groups:
            quotas.put_quota(group)
        for each in self._pods():
            is_here = each.holds_resources and each.pod.metadata.uid not in gone
            quotas.put_pod(_here(each.pod, view.name) if is_here else _waiting(each.pod))
        for pod in kept:
            quotas.put_pod(_here(pod, view.name))
        if newcomer is not None:
            quotas.put_pod(_waiting(newcomer))
        quotas.refresh_all()
        return quotas

    def judge(self, pod: Pod, kept: Sequence[Pod] = ()) -> Verdict | None:
        """Say whether the pod's group may use what it asks for; None where there are no quotas."""
        return prefilter(self.current(pod, kept=kept), _waiting(pod)) if self.groups else None

    def counts(self, pod: Pod) -> bool:
        """Say whether some group counts the pod."""
        return bool(self.groups) and self.current().group_for(_waiting(pod)) is not None

    def has_room_without(self, pod: Pod, leaving: Sequence[Pod], kept: Sequence[Pod]) -> bool:
        """Say whether the pod's group has room for it once others are gone."""
        return prefilter(self.current(pod, leaving, kept), _waiting(pod)).admits

    def displaced_by(
        self, pod: Pod, staying: Sequence[Pod], leaving: Sequence[Pod], kept: Sequence[Pod]
    ) -> Sequence[Pod]:
        """Return the pods of its own group whose end lets the pod in; nobody, where that would not do."""
        quotas = self.current(pod, leaving, kept)
        victims = select_victims(quotas, _waiting(pod), self._node(), [*staying, *kept]).victims
        return victims if victims and self.has_room_without(pod, [*leaving, *victims], kept) else ()

    def to_revoke(self) -> dict[str, tuple[CountedPod, ...]]:
        """Return by group the pods that must give back what their group was only lent."""
        if not self.groups or not self.settings.revokes:
            return {}
        leaving = [each.pod for each in self._pods() if each.is_leaving]
        return self._overuse.look(self.current(leaving=leaving), self._clock.monotonic())


def _here(pod: Pod, node_name: str) -> Pod:
    # An evicted pod has failed, and has what it holds until its processes are gone.
    spec, status = replace(pod.spec, node_name=node_name), replace(pod.status, phase="Running")
    return replace(pod, spec=spec, status=status)


def _waiting(pod: Pod) -> Pod:
    # A pod of a manifest names its node before it has anything of it.
    return replace(pod, spec=replace(pod.spec, node_name=None))
