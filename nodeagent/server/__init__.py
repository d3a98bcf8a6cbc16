"""HTTP: kubelet's endpoints and the read-only Kubernetes API."""
