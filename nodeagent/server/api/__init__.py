"""The Kubernetes REST API that kubectl speaks."""
