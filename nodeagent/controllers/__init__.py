"""Small controllers for one node: Deployments and their kin become pods, which go with their owners.

Each decision is a pure function from the objects that there are to what should be created, changed and
deleted; `loop` carries it out over the API, as any client would, so that quotas count and refuse.
"""
