"""A pod's life: admission to the node, worker, phase and conditions, restarts, removal."""
