"""What holds for every test."""

from hypothesis import HealthCheck, settings

# A busy machine makes an example slow, not wrong.
settings.register_profile("nodeagent", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("nodeagent")
