"""An elastic quota group explained: what it may use and why, who lends, who borrows, and who is in it."""

from collections.abc import Iterator, Mapping
from typing import Any

from nodeagent.api.quantity import ZERO, Quantity
from nodeagent.cli.client import AgentClient
from nodeagent.cli.common import CommandError
from nodeagent.cli.quota import lent_and_borrowed

INDENT = "  "


def read_quota(client: AgentClient, name: str) -> Mapping[str, Any]:
    """Ask for one group with its pods; raises CommandError."""
    groups = client.get("apis", "v1", "plugins", "ElasticQuota", "quotas", includePods="true")
    group = groups.get(name)
    if group is None:
        known = ", ".join(sorted(groups)) or "none"
        raise CommandError(f"explain quota/{name}: no such group; there are: {known}")
    return dict(group)


def quota_text(group: Mapping[str, Any]) -> str:
    """Everything as sentences."""
    return "\n".join(_lines(group))


def _lines(group: Mapping[str, Any]) -> Iterator[str]:
    lends = "lends what it leaves idle" if group["allowLentResource"] else "lends nothing"
    yield f"Elastic quota {group['name']} is below {group['parentName'] or 'nobody'} and {lends}."
    for resource in sorted({*group["max"], *group["used"]}):
        yield resource
        for sentence in _sentences(group, resource):
            yield INDENT + sentence
    yield from _pods(group.get("podCache", {}))


def _sentences(group: Mapping[str, Any], resource: str) -> Iterator[str]:
    def of(field: str) -> Quantity:
        return Quantity.parse(group[field][resource]) if resource in group[field] else ZERO

    if resource not in group["max"]:
        yield f"{of('used')} is used; the quota does not limit it"
        return
    least, usable, used, asked = of("autoScaleMin"), of("runtime"), of("used"), of("request")
    lent, borrowed = lent_and_borrowed(group, resource)
    scaled = "" if least == of("min") else f", scaled to {least}, since the parent has no more"
    yield f"{of('min')} is guaranteed{scaled}, {of('max')} the most it may ever use"
    yield f"{usable} may be used now, {asked} is asked for, {used} is used"
    if lent > ZERO:
        yield f"{lent} of what is guaranteed is lent to others until its pods ask for it"
    if borrowed > ZERO:
        yield f"{borrowed} is borrowed: others may call it back"
    if usable < used:
        yield f"{used - usable} too much is used: the least important pods end where revoking is on"
    elif asked > usable:
        yield f"{asked - usable} of what is asked for has to wait"


def _pods(pods: Mapping[str, Any]) -> Iterator[str]:
    yield "Pods" if pods else "It has no pods."
    for name, pod in sorted(pods.items()):
        amounts = ", ".join(f"{resource} {text}" for resource, text in sorted(pod["resource"].items()))
        yield f"{INDENT}{name}: {amounts or 'nothing asked for'}{'' if pod['isAssigned'] else ', waiting'}"
