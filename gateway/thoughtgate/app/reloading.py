"""Reading the configuration file again while the gateway runs.

Never takes half of it: what cannot be used changes nothing.
"""

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from thoughtgate.app.keeper import Keeper
from thoughtgate.config.files import Loaded, load
from thoughtgate.config.settings import Settings
from thoughtgate.core.errors import GateError
from thoughtgate.surface.admin_values import Reloaded

_LIVE = ("servers", "domains")
"""The tables that take effect at once; all others when the gateway is started again."""


async def reload(keeper: Keeper, environ: Mapping[str, str]) -> Reloaded:
    """Read the configuration file again and take what can be taken without a restart.

    Raises:
        GateError: The file cannot be used, for all the reasons that it names; the old state stays.
    """
    before = keeper.loaded
    after = await asyncio.to_thread(load, before.file, environ)
    await keeper.adopt(_adopted(before, after))
    fixed = [name for name in Settings.__struct_fields__ if name not in _LIVE]
    return Reloaded(
        config=str(after.file) if after.file else None,
        servers=_changed(before.settings.servers, after.settings.servers),
        domains=_changed(before.settings.domains, after.settings.domains),
        restart=tuple(n for n in fixed if getattr(before.written, n) != getattr(after.written, n)),
    )


class Reloader:
    """Reloads for a signal: there is nobody to answer, so it is said what became of it."""

    def __init__(
        self, keeper: Keeper, environ: Mapping[str, str], say: Callable[[str], None]
    ) -> None:
        self._keeper = keeper
        self._environ = environ
        self._say = say
        self._task: asyncio.Task[None] | None = None
        self._again = False

    def begin(self) -> None:
        """Begin to reload; once more afterwards when one is under way."""
        self._again = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def aclose(self) -> None:
        """End a reload that is under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while self._again:
            self._again = False
            try:
                done = await reload(self._keeper, self._environ)
            except GateError as error:
                self._say(f"the configuration was not taken, the old state stays:\n{error.message}")
                continue
            self._say(f"the configuration was read again: {done.config or 'there is no file'}")
            for name in done.restart:
                self._say(f"[{name}] has changed: start the gateway again for that")


def _adopted(before: Loaded, after: Loaded) -> Loaded:
    """Return the new settings with what cannot change now as it was, file and state included."""
    live = {name: getattr(after.settings, name) for name in _LIVE}
    settings = msgspec.structs.replace(before.settings, **live)
    return msgspec.structs.replace(
        after, settings=settings, home=before.home, written=_kept(before, after)
    )


def _kept(before: Loaded, after: Loaded) -> Settings:
    live = {name: getattr(after.written, name) for name in _LIVE}
    return msgspec.structs.replace(before.written, **live)


def _changed(before: Mapping[str, object], after: Mapping[str, object]) -> tuple[str, ...]:
    names = sorted(before.keys() | after.keys())
    return tuple(name for name in names if before.get(name) != after.get(name))
