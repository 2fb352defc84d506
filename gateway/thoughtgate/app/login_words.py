"""How logins at servers stand, in words for people.

Never needs the key: nothing of a login itself is looked at.
"""

import time
from collections.abc import Mapping
from datetime import UTC, datetime

from thoughtgate.config.files import Loaded
from thoughtgate.registry.logins import LoginState, place_of
from thoughtgate.registry.store import Registry

NEEDS_LOGIN = "needs login"


def login_words(loaded: Loaded, registry: Registry) -> Mapping[str, str]:
    """Return how the logins stand, by server; one for another place than the file's is none."""
    configured, now = loaded.settings.servers, time.time()
    return {
        name: words_of(state, now)
        for name, state in registry.login_states().items()
        if name not in configured or place_of(configured[name].url) == state.place
    }


def words_of(state: LoginState, now: float) -> str:
    """Return how one login stands."""
    over = state.valid_until is not None and state.valid_until <= now
    if state.refused or (over and not state.renewable):
        return NEEDS_LOGIN
    if state.valid_until is None or over:
        return "logged in"
    until = datetime.fromtimestamp(state.valid_until, UTC).astimezone()
    renewed = ", renewed by itself" if state.renewable else ""
    return f"logged in until {until:%Y-%m-%d %H:%M}{renewed}"
