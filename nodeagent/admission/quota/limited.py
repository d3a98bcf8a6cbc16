"""Limited resources: what may only be used where a quota covers it (an AdmissionConfiguration)."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from nodeagent.admission.quota.evaluator import Evaluator
from nodeagent.admission.quota.scopes import Requirement, requirements_of
from nodeagent.admission.request import GroupResource, HasMetadata
from nodeagent.api.admission_configuration import (
    AdmissionConfiguration,
    LimitedResource,
    ResourceQuotaConfiguration,
)
from nodeagent.api.errors import FieldError, forbidden, not_supported, required
from nodeagent.api.policy import ResourceQuota
from nodeagent.api.quantity import ResourceList
from nodeagent.api.typed import InvalidObject, from_builtins

PLUGIN = "ResourceQuota"
API_VERSION = "apiserver.config.k8s.io/v1"
KIND = "ResourceQuotaConfiguration"


def limited_resources(
    configuration: AdmissionConfiguration,
) -> tuple[tuple[LimitedResource, ...], tuple[FieldError, ...]]:
    """Return what a configuration limits, and what is wrong with it; one of the two is empty."""
    found: list[LimitedResource] = []
    errors: list[FieldError] = []
    for index, plugin in enumerate(configuration.plugins):
        path = f"plugins[{index}]"
        if plugin.name != PLUGIN:
            errors.append(not_supported(f"{path}.name", plugin.name, (PLUGIN,)))
        elif plugin.path:
            errors.append(forbidden(f"{path}.path", "write the configuration itself here"))
        else:
            try:
                found += _read(plugin.configuration, f"{path}.configuration")
            except InvalidObject as invalid:
                errors += invalid.errors
    return (() if errors else tuple(found)), tuple(errors)


def validate_configuration(configuration: ResourceQuotaConfiguration) -> tuple[FieldError, ...]:
    """Return everything that is wrong with a ResourceQuotaConfiguration."""
    return tuple(
        required(f"limitedResources[{index}].resource")
        for index, limited in enumerate(configuration.limited_resources)
        if not limited.resource
    )


def uncovered_resources(
    limited: Iterable[LimitedResource], usage: ResourceList, covered: Collection[str]
) -> list[str]:
    """Return the names in `usage` that need a quota and are in none of those `covered`, sorted."""
    fragments = [fragment for entry in limited for fragment in entry.match_contains]
    return sorted(
        name
        for name, amount in usage.items()
        if amount.sign > 0 and name not in covered and any(fragment in name for fragment in fragments)
    )


def uncovered_scopes(
    limited: Iterable[LimitedResource],
    evaluator: Evaluator[Any],
    item: HasMetadata,
    quotas: Iterable[ResourceQuota],
) -> list[Requirement]:
    """Return the scopes that select the object and need a quota, where no quota selects it by that scope."""
    wanted = [scope for entry in limited for scope in entry.match_scopes if evaluator.selected(item, scope)]
    if not wanted:
        return []
    covered = {
        requirement.scope_name
        for quota in quotas
        for requirement in requirements_of(quota)
        if evaluator.selected(item, requirement)
    }
    return [scope for scope in wanted if scope.scope_name not in covered]


def of_resource(limited: Iterable[LimitedResource], resource: GroupResource) -> list[LimitedResource]:
    """Return the entries that are about one kind of object."""
    return [entry for entry in limited if GroupResource(entry.resource, entry.api_group or "") == resource]


def _read(document: dict[str, Any], path: str) -> Iterator[LimitedResource]:
    stated = (document.get("apiVersion"), document.get("kind"))
    if stated != (API_VERSION, KIND):
        raise InvalidObject((not_supported(f"{path}.kind", stated[1], (f"{KIND} ({API_VERSION})",)),))
    content = {name: value for name, value in document.items() if name not in ("apiVersion", "kind")}
    configuration = from_builtins(content, ResourceQuotaConfiguration, path)
    errors = validate_configuration(configuration)
    if errors:
        raise InvalidObject(tuple(_below(path, error) for error in errors))
    yield from configuration.limited_resources


def _below(path: str, error: FieldError) -> FieldError:
    return FieldError(f"{path}.{error.path}", error.kind, error.value, error.detail)
