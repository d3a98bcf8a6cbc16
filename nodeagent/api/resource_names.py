"""Which resources there are and what their amounts may be, in the API server's words."""

from collections.abc import Iterator

from nodeagent.api.errors import FieldError, invalid
from nodeagent.api.names import qualified_name
from nodeagent.api.quantity import Quantity, QuantityError, ResourceList
from nodeagent.api.resources import CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, MEMORY

STORAGE = "storage"
COUNTED_OBJECTS = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    }
)
QUOTA_RESOURCES = COUNTED_OBJECTS | {
    CPU,
    MEMORY,
    EPHEMERAL_STORAGE,
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
}
STANDARD_RESOURCES = QUOTA_RESOURCES | {STORAGE}


def is_huge_pages(name: str) -> bool:
    return name.startswith(HUGEPAGES_PREFIX)


def is_standard(name: str) -> bool:
    """Whether a name without '/' is one that Kubernetes defines."""
    return name in STANDARD_RESOURCES or name.startswith((HUGEPAGES_PREFIX, f"requests.{HUGEPAGES_PREFIX}"))


def is_native(name: str) -> bool:
    """Whether Kubernetes itself gives the name its meaning."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Whether the name is one that a device plugin or an operator advertises."""
    return not is_native(name) and not name.startswith("requests.") and not qualified_name(f"requests.{name}")


def allows_overcommit(name: str) -> bool:
    """Whether requests may be lower than limits."""
    return is_native(name) and not is_huge_pages(name)


def is_counted_whole(name: str) -> bool:
    return name in COUNTED_OBJECTS or is_extended(name)


def resource_name_errors(name: str, path: str) -> Iterator[FieldError]:
    """Check a name that any resource list may have."""
    faults = qualified_name(name)
    yield from (invalid(path, name, fault) for fault in faults)
    if not faults and "/" not in name and not is_standard(name):
        yield invalid(path, name, "must be a standard resource type or fully qualified")


def container_resource_name_errors(name: str, path: str) -> Iterator[FieldError]:
    """Check a name that containers may request."""
    yield from resource_name_errors(name, path)
    if "/" not in name:
        if name not in (CPU, MEMORY, EPHEMERAL_STORAGE) and not is_huge_pages(name):
            yield invalid(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def amount_errors(name: str, amount: Quantity, path: str) -> Iterator[FieldError]:
    """Check an amount of the resource `name`: not negative, and whole where it counts things."""
    if amount.sign < 0:
        yield invalid(path, str(amount), "must be greater than or equal to 0")
    if is_counted_whole(name) and amount.milli_value() % 1000 != 0:
        yield invalid(path, str(amount), "must be an integer")


def huge_pages_errors(resources: ResourceList, path: str) -> Iterator[FieldError]:
    """Check that amounts of huge pages are whole pages."""
    for name, amount in resources.items():
        if is_huge_pages(name) and not _is_whole_pages(name, amount):
            detail = f"{amount} is not positive integer multiple of {name}"
            yield invalid(f"{path}[{name}]", str(amount), detail)


def _is_whole_pages(name: str, amount: Quantity) -> bool:
    try:
        page = Quantity.parse(name.removeprefix(HUGEPAGES_PREFIX))
    except QuantityError:
        return False
    return page.sign > 0 and page.milli_value() % 1000 == 0 and amount.value() % page.value() == 0
