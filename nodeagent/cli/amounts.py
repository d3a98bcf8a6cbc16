"""Amounts of resources in words, and comparisons of them as sentences."""

from nodeagent.api.resources import CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, MEMORY
from nodeagent.cli.table import size
from nodeagent.scheduling.fit import Comparison


def amount_text(resource: str, amount: int) -> str:
    """An amount as people write it: cpu in millicores, memory in binary units, the rest as counts."""
    if resource == CPU:
        return f"{amount}m"
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith(HUGEPAGES_PREFIX):
        return size(amount)
    return str(amount)


def comparison_sentence(comparison: Comparison) -> str:
    """What was asked for beside what was left."""
    resource = comparison.resource
    requested, left, capacity = (
        amount_text(resource, amount)
        for amount in (comparison.requested, comparison.capacity - comparison.used, comparison.capacity)
    )
    if comparison.fits:
        return f"{resource} {requested} fits into the {left} left of {capacity}"
    shortage = amount_text(resource, comparison.shortage)
    return f"{resource} {requested} is more than the {left} left of {capacity}, by {shortage}"
