"""What holds for every test: generated data is judged by outcome, never by the clock.

Never a fixture: those stand beside the tests that use them.
"""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "thoughtgate", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("thoughtgate")
