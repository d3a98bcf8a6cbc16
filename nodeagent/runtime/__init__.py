"""Containers: the keeper process that starts, watches and outlives, and its client."""
