"""Hierarchical elastic quotas as Koordinator has them: groups lend what they do not use, and get it back.

`Quotas` holds the groups, the pods counted in them and the nodes that they share; `prefilter` admits a pod,
`revoke` and `preempt` say which pods must go, `webhook` which objects may exist; `profile` makes trees.
"""
