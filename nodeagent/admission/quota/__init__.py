"""ResourceQuota by its ideas: what an object uses, which quotas are for it, what is written."""
