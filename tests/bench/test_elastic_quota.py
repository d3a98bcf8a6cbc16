"""Elastic quotas against Koordinator's own core (`pytest -m bench -s tests/bench/test_elastic_quota.py`).

Trees of N leaf groups with one pending pod each, two resources; the total is 1.2 times what is guaranteed.
Koordinator's figures were taken with Go on two shared cores: compare their order, not their digits.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median

import pytest

from nodeagent.admission.elastic_quota.quotas import Quotas, QuotaSettings
from tests.unit.elastic_quotas import quota, quota_node, quota_pod

pytestmark = pytest.mark.bench


@dataclass(frozen=True, slots=True)
class Shape:
    """A tree, and Koordinator's seconds: building, refreshing all leaves, and one after a pod was added."""

    leaves: int
    leaves_per_parent: int
    build: float
    refresh_all: float
    refresh_one: float

    @property
    def is_flat(self) -> bool:
        return self.leaves == self.leaves_per_parent


SHAPES = (
    Shape(100, 10, 0.0146, 0.00243, 10.2e-6),
    Shape(1000, 40, 0.671, 0.0709, 33.2e-6),
    Shape(10_000, 100, 97.2, 1.99, 106e-6),
    Shape(100, 100, 0.00756, 0.0163, 72.8e-6),
    Shape(1000, 1000, 0.411, 2.46, 2155e-6),
    Shape(10_000, 10_000, 153.9, 1032.0, 65_644e-6),
)


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def build(shape: Shape, chance: random.Random) -> Quotas:
    quotas = Quotas(QuotaSettings(), lambda: datetime.now(UTC))
    per = shape.leaves_per_parent
    for number in range(0 if shape.is_flat else shape.leaves // per):
        name = f"parent-{number}"
        quotas.put_quota(quota(name, (per, 2 * per), (10 * per, 20 * per), is_parent=True))
    for number in range(shape.leaves):
        most = (chance.randint(4, 10), chance.randint(8, 20))
        parent = "" if shape.is_flat else f"parent-{number // per}"
        quotas.put_quota(quota(f"leaf-{number}", (1, 2), most, parent=parent))
    for number in range(shape.leaves):
        asked = (chance.randint(0, 6), chance.randint(0, 12))
        quotas.put_pod(quota_pod(f"pod-{number}", f"leaf-{number}", *asked))
    return quotas


@pytest.mark.parametrize("shape", SHAPES, ids=lambda each: f"{each.leaves}-by-{each.leaves_per_parent}")
def test_refreshing(shape: Shape) -> None:
    chance = random.Random(7)
    built: list[Quotas] = []
    took = seconds(lambda: built.append(build(shape, chance)))
    (quotas,) = built

    def share(factor: float) -> None:
        whole = int(factor * shape.leaves)
        quotas.put_node(quota_node("node", whole, 2 * whole))

    everything, one = [], []
    for factor in (1.2, 1.3, 1.25, 1.2):
        share(factor)
        everything.append(seconds(quotas.refresh_all))
    for number in range(20):
        leaf = f"leaf-{chance.randrange(shape.leaves)}"
        quotas.put_pod(quota_pod(f"more-{number}", leaf, 1, 1))
        one.append(seconds(lambda leaf=leaf: quotas.refresh(leaf)))
    print(f"\n{shape.leaves} leaves, {shape.leaves_per_parent} a parent")
    rows = (
        ("building", took, shape.build),
        ("refreshing all", median(everything), shape.refresh_all),
        ("refreshing one", median(one), shape.refresh_one),
    )
    for what, ours, theirs in rows:
        print(f"  {what:<16}{1e3 * ours:10.3f} ms   Go {1e3 * theirs:12.3f} ms   {ours / theirs:8.4f} of it")
