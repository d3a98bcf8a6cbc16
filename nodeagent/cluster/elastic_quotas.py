"""ElasticQuotas by the API: which groups may exist and what may be put into them, in Koordinator's words."""

from collections.abc import Iterable

from nodeagent.admission.elastic_quota import names
from nodeagent.admission.elastic_quota.webhook import MUTATING, Answer, QuotaWebhook, WebhookSettings
from nodeagent.admission.policies import Policies
from nodeagent.admission.request import Operation, Request
from nodeagent.api.elastic_quota import ElasticQuota
from nodeagent.api.pod import Pod
from nodeagent.cluster.errors import ApiError


def admit_group(request: Request[ElasticQuota], policies: Policies, pods: Iterable[Pod]) -> ElasticQuota:
    """Return a group with its defaults; raises ApiError 403."""
    if request.subresource:
        return request.object
    webhook = _webhook(policies, pods)
    is_new = request.operation is Operation.CREATE
    answer = webhook.create(request.object) if is_new else webhook.update(request.object)
    _raise("quota", answer)
    return answer.quota or request.object


def check_deletion(name: str, policies: Policies, pods: Iterable[Pod]) -> None:
    """Raise ApiError 403 if a group has to stay."""
    _raise("quota", _webhook(policies, pods).delete(name))


def check_pod(pod: Pod, policies: Policies) -> None:
    """Raise ApiError 403 if a pod may not be put into its group."""
    if policies.elastic_quotas:
        _raise("pod", _webhook(policies, ()).create_pod(pod))


def _webhook(policies: Policies, pods: Iterable[Pod]) -> QuotaWebhook:
    webhook = QuotaWebhook(WebhookSettings())
    webhook.groups = {each.metadata.name: each for each in policies.elastic_quotas}
    webhook.pods = {names.pod_key(pod): pod for pod in pods}
    return webhook


def _raise(what: str, answer: Answer) -> None:
    if not answer.allowed:
        name = f"{'m' if answer.stage == MUTATING else 'v'}{what}.kb.io"
        message = f'admission webhook "{name}" denied the request: {answer.message}'
        raise ApiError(403, "", message)
