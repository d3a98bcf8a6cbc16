"""Watches from outside, in the machine: witness.py RESULT THRESHOLD_BYTES CGROUP.

Writes to RESULT, once a second and when the cgroup is empty, the least memory that was available and the time
from the crossing of the threshold to the end of the cgroup's last process. It knows nothing of the agent.
"""

import json
import os
import sys
import time
from pathlib import Path

PERIOD_SECONDS = 0.02
LINGER_SECONDS = 1.0
FLAT = "/sys/fs/cgroup"


def read(fd: int) -> bytes:
    return os.pread(fd, 8192, 0)


def number(text: bytes, key: bytes) -> int:
    _, _, rest = text.partition(key)
    return int(rest.split(maxsplit=1)[0])


def main(result: Path, threshold: int, cgroup: str) -> None:
    Path("/proc/self/oom_score_adj").write_text("-1000")
    meminfo = os.open("/proc/meminfo", os.O_RDONLY)
    stat = os.open(f"{FLAT}/memory.stat", os.O_RDONLY)
    events = os.open(f"{FLAT}/{cgroup}/cgroup.events", os.O_RDONLY)
    crossed = dead = None
    least = 1 << 62
    told = 0.0
    while dead is None or time.monotonic() < dead + LINGER_SECONDS:
        figures, used = read(meminfo), read(stat)
        working_set = number(used, b"anon ") + number(used, b"\nfile ") - number(used, b"\ninactive_file ")
        kubelets = number(figures, b"MemTotal:") * 1024 - working_set
        available = min(kubelets, number(figures, b"MemAvailable:") * 1024)
        least = min(least, available)
        now = time.monotonic()
        if crossed is None and available < threshold:
            crossed = now
        if dead is None:
            try:
                is_empty = b"populated 0" in read(events)
            except OSError:
                is_empty = True
            dead = now if is_empty else None
        if dead == now or now > told + 1:
            told = now
            seconds = dead - crossed if dead and crossed else None
            found = {"least_bytes": least, "is_dead": dead is not None, "seconds": seconds}
            unready = result.with_suffix(".new")
            unready.write_text(json.dumps(found))
            unready.rename(result)
        time.sleep(PERIOD_SECONDS)


main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
