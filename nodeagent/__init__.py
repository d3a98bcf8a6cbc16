"""nodeagent: a mini-kubelet for one Linux node on cgroup v2."""

__version__ = "0.1.0"
