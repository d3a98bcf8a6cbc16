"""Is a container's environment as the API server would take it? (core/v1 validation)"""

from collections.abc import Iterable

from nodeagent.api import names
from nodeagent.api.errors import invalid, not_supported, required
from nodeagent.api.pod import EnvFromSource, EnvVar, EnvVarSource, ObjectFieldSelector, ResourceFieldSelector
from nodeagent.api.quantity import ZERO
from nodeagent.api.validation.checks import Errors, each, no_nul

ENVIRONMENT_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
RESOURCE_FIELDS = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
HUGE_PAGES_FIELDS = ("limits.hugepages-", "requests.hugepages-")
BYTE_DIVISORS = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"


def environment_errors(variables: Iterable[EnvVar], path: str) -> Errors:
    for index, variable in enumerate(variables):
        place = f"{path}[{index}]"
        if not variable.name:
            yield required(f"{place}.name")
        else:
            yield from each(names.environment_name(variable.name), f"{place}.name", variable.name)
        yield from no_nul(variable.value or "", f"{place}.value")
        if variable.value_from is not None:
            yield from _source_errors(variable, variable.value_from, f"{place}.valueFrom")


def _source_errors(variable: EnvVar, source: EnvVarSource, path: str) -> Errors:
    if source.field_ref is not None:
        yield from field_selector_errors(source.field_ref, ENVIRONMENT_FIELDS, f"{path}.fieldRef")
    if source.resource_field_ref is not None:
        yield from resource_selector_errors(source.resource_field_ref, f"{path}.resourceFieldRef")
    keys = {"configMapKeyRef": source.config_map_key_ref, "secretKeyRef": source.secret_key_ref}
    for name, reference in keys.items():
        if reference is not None:
            yield from each(
                names.subdomain(reference.name or ""), f"{path}.{name}.name", reference.name or ""
            )
            if not reference.key:
                yield required(f"{path}.{name}.key")
            else:
                yield from each(names.config_key(reference.key), f"{path}.{name}.key", reference.key)
    sources = (source.field_ref, source.resource_field_ref, *keys.values(), source.file_key_ref)
    count = sum(part is not None for part in sources)
    if count == 0:
        one_of = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        yield invalid(path, "", f"must specify one of: {one_of}")
    elif variable.value:
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif count > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def field_selector_errors(selector: ObjectFieldSelector, fields: Iterable[str], path: str) -> Errors:
    """Check a downward API reference to a field of the pod, `metadata.labels['key']` included."""
    if not selector.field_path:
        yield required(f"{path}.fieldPath")
        return
    name, bracket, rest = selector.field_path.partition("['")
    if bracket and rest.endswith("']"):
        key = rest.removesuffix("']")
        if name == "metadata.annotations":
            yield from each(names.qualified_name(key.lower()), path, key)
        elif name == "metadata.labels":
            yield from each(names.qualified_name(key), path, key)
        else:
            yield invalid(path, name, "does not support subscript")
    elif selector.field_path not in fields:
        yield not_supported(f"{path}.fieldPath", selector.field_path, fields)


def resource_selector_errors(selector: ResourceFieldSelector, path: str) -> Errors:
    """Check a downward API reference to a request or a limit of a container."""
    resource = selector.resource
    if not resource:
        yield required(f"{path}.resource")
    elif resource not in RESOURCE_FIELDS and not resource.startswith(HUGE_PAGES_FIELDS):
        yield not_supported(f"{path}.resource", resource, RESOURCE_FIELDS)
    divisor = selector.divisor or ZERO
    allowed = "1m and 1" if resource.endswith(".cpu") else BYTE_DIVISORS
    if divisor.sign and str(divisor) not in allowed.replace(" and ", ", ").split(", "):
        kind = resource.partition(".")[2]
        detail = f"only divisor's values {allowed} are supported with the {kind} resource"
        yield invalid(f"{path}.divisor", resource, detail)


def environment_from_errors(sources: Iterable[EnvFromSource], path: str) -> Errors:
    for index, source in enumerate(sources):
        place = f"{path}[{index}]"
        if source.prefix:
            yield from each(names.environment_name(source.prefix), f"{place}.prefix", source.prefix)
        references = {"configMapRef": source.config_map_ref, "secretRef": source.secret_ref}
        given = {name: part for name, part in references.items() if part is not None}
        for name, reference in given.items():
            if not reference.name:
                yield required(f"{place}.{name}.name")
            else:
                yield from each(names.subdomain(reference.name), f"{place}.{name}.name", reference.name)
        if not given:
            yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield invalid(path, "", "may not have more than one field specified at a time")
