"""May this object exist: priority, LimitRange, ResourceQuota, ElasticQuota."""
