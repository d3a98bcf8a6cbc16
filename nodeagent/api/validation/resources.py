"""Are requests and limits as the API server would take them? (core/v1 validation)"""

from collections.abc import Collection, Iterable

from nodeagent.api.errors import ErrorKind, FieldError, duplicate, forbidden, invalid, not_supported, required
from nodeagent.api.pod import Pod, ResourceClaim, ResourceRequirements
from nodeagent.api.resource_names import (
    allows_overcommit,
    amount_errors,
    container_resource_name_errors,
    huge_pages_errors,
    is_huge_pages,
    resource_name_errors,
)
from nodeagent.api.resources import (
    CPU,
    HUGEPAGES_PREFIX,
    MEMORY,
    Resources,
    aggregate_requests,
    amount,
    is_pod_level_resource,
)
from nodeagent.api.validation.checks import Errors

POD_LEVEL_RESOURCES = (CPU, HUGEPAGES_PREFIX, MEMORY)


def container_resources_errors(resources: ResourceRequirements, claims: Collection[str], path: str) -> Errors:
    """Check a container's resources; `claims` are the names in `spec.resourceClaims`."""
    for part, amounts in (("limits", resources.limits), ("requests", resources.requests)):
        for name, quantity in amounts.items():
            yield from container_resource_name_errors(name, f"{path}.{part}[{name}]")
            yield from amount_errors(name, quantity, f"{path}.{part}[{name}]")
        yield from huge_pages_errors(amounts, f"{path}.{part}")
    yield from _request_errors(resources, path)
    yield from _claim_errors(resources.claims, claims, f"{path}.claims")


def overhead_errors(overhead: Resources, path: str) -> Errors:
    """Check `spec.overhead`."""
    for name, quantity in overhead.items():
        yield from container_resource_name_errors(name, f"{path}[{name}]")
        yield from amount_errors(name, quantity, f"{path}[{name}]")
    yield from huge_pages_errors(overhead, path)


def pod_resources_errors(pod: Pod) -> Errors:
    """Check `spec.resources`, by itself and against the containers'."""
    resources = pod.spec.resources
    if resources is None:
        return
    path = "spec.resources"
    if resources.claims:
        yield forbidden(f"{path}.claims", "claims cannot be set for Resources at pod-level")
    for part, amounts in (("limits", resources.limits), ("requests", resources.requests)):
        for name, quantity in amounts.items():
            place = f"{path}.{part}[{name}]"
            faults = list(resource_name_errors(name, place))
            yield from faults
            if not faults and not is_pod_level_resource(name):
                yield not_supported(place, name, POD_LEVEL_RESOURCES)
            yield from amount_errors(name, quantity, place)
        yield from huge_pages_errors(amounts, f"{path}.{part}")
    yield from _request_errors(resources, path)
    for name, total in aggregate_requests(pod).items():
        stated = amount(resources.requests, name)
        if is_pod_level_resource(name) and total > stated:
            detail = f"must be greater than or equal to aggregate container requests of {total}"
            yield invalid(f"{path}.requests[{name}]", str(stated), detail)
    for index, container in enumerate(pod.spec.containers):
        for name, limit in container.resources.limits.items():
            if name in resources.limits and limit > resources.limits[name]:
                detail = f"must be less than or equal to pod limits of {resources.limits[name]}"
                yield invalid(f"spec.containers[{index}].resources.limits[{name}]", str(limit), detail)


def _request_errors(resources: ResourceRequirements, path: str) -> Errors:
    """Check requests against limits."""
    limits = resources.limits
    for name, request in resources.requests.items():
        limit = limits.get(name)
        if limit is None:
            if not allows_overcommit(name):
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif not allows_overcommit(name):
            if request != limit:
                yield invalid(f"{path}.requests", str(request), f"must be equal to {name} limit of {limit}")
        elif request > limit:
            detail = f"must be less than or equal to {name} limit of {limit}"
            yield invalid(f"{path}.requests", str(request), detail)
    mentioned = {*limits, *resources.requests}
    if any(map(is_huge_pages, mentioned)) and not mentioned & {CPU, MEMORY}:
        yield forbidden(path, "HugePages require cpu or memory")


def _claim_errors(claims: Iterable[ResourceClaim], known: Collection[str], path: str) -> Errors:
    taken: set[tuple[str, str | None]] = set()
    for index, claim in enumerate(claims):
        place = f"{path}[{index}]"
        if not claim.name:
            yield required(place)
            continue
        if (claim.name, claim.request) in taken or (claim.name, None) in taken:
            yield duplicate(place, claim.name)
        taken.add((claim.name, claim.request))
        if claim.name not in known:
            which = f": {', '.join(sorted(known))}" if known else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{which}"
            yield FieldError(place, ErrorKind.NOT_FOUND, claim.name, detail)
