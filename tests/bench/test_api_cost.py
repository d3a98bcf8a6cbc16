"""What the API costs: run with `pytest -m bench -s tests/bench/test_api_cost.py`."""

import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from nodeagent.clock import SystemClock
from nodeagent.cluster.cluster import Cluster
from nodeagent.cluster.kinds import LIMIT_RANGE, POD, PRIORITY_CLASS, RESOURCE_QUOTA
from nodeagent.store import Store

pytestmark = pytest.mark.bench

GOAL_PER_SECOND = 1500
PODS = 1000

MEASURED = """
import sys
from pathlib import Path
from nodeagent.clock import SystemClock
from nodeagent.cluster.cluster import Cluster
from nodeagent.sources.cluster_pods import ClusterPods
from nodeagent.store import Store
import nodeagent.server.api.app
def pss():
    return int(next(l for l in open("/proc/self/smaps_rollup") if l.startswith("Pss:")).split()[1])
store = Store(Path(sys.argv[1]))
print(pss())
pods = ClusterPods(Cluster(store.resources, SystemClock()), "n1")
print(pss())
"""


def filled(path: Path) -> float:
    """Admit a thousand pods under a LimitRange, two quotas and a class; return pods a second of CPU time."""
    store = Store(path)
    cluster = Cluster(store.resources, SystemClock())
    cluster.begin()
    cluster.create(PRIORITY_CLASS, "", {"metadata": {"name": "high"}, "value": 1000})
    item = {
        "type": "Container",
        "default": {"cpu": "1", "memory": "1Gi"},
        "max": {"cpu": "2", "memory": "2Gi"},
    }
    cluster.create(LIMIT_RANGE, "default", {"metadata": {"name": "l"}, "spec": {"limits": [item]}})
    hard = {"pods": "10k", "requests.cpu": "10k", "requests.memory": "10Ti", "limits.cpu": "10k"}
    for name in ("compute", "other"):
        cluster.create(RESOURCE_QUOTA, "default", {"metadata": {"name": name}, "spec": {"hard": hard}})
    containers = [{"name": f"c{n}", "image": "x", "command": ["sleep", "1"]} for n in range(2)]
    spec = {"containers": containers, "priorityClassName": "high"}
    bodies = [msgspec.json.encode({"metadata": {"name": f"p{n}"}, "spec": spec}) for n in range(PODS)]
    began = time.process_time()
    for body in bodies:
        msgspec.json.encode(cluster.create(POD, "default", msgspec.json.decode(body)))
    seconds = time.process_time() - began
    store.close()
    return PODS / seconds


def test_admissions_a_second_and_memory_of_a_thousand_pods(tmp_path: Path) -> None:
    per_second = filled(tmp_path / "nodeagent.db")
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "nodeagent.db")]
    empty, full = map(int, subprocess.run(command, capture_output=True, check=True, text=True).stdout.split())
    print(f"\n{per_second:.0f} admissions a second of CPU time (goal: {GOAL_PER_SECOND})")
    print(f"{PODS} pods held: {(full - empty) / 1024:.1f} MB on {empty / 1024:.1f} MB")
