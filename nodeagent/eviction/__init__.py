"""Node-pressure eviction: signals, thresholds, ranking, the loop."""
