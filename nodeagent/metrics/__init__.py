"""Prometheus collectors under kubelet's and cAdvisor's metric names."""
