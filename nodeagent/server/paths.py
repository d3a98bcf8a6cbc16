"""Paths that are our own, for those who ask."""

DECISIONS = "/nodeagent/v1/decisions"
