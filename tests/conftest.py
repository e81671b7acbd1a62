"""One Hypothesis profile for all tests: the same examples on every run, no limit on the time of one."""

from hypothesis import HealthCheck, settings

settings.register_profile("skyband", deadline=None, derandomize=True,
                          suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])  # fmt: skip
settings.load_profile("skyband")
