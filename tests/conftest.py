"""What holds for every test: generated data is judged by outcome, never by the clock.

Never a fixture: those stand beside the tests that use them.
"""

import gc

from hypothesis import HealthCheck, settings

settings.register_profile(
    "thoughtgate", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("thoughtgate")

# what is imported and collected stays until the end: nothing to look through, now or in any test
gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()
