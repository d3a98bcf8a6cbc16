"""Does the pod fit this node; whom must it preempt."""
