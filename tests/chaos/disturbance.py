"""What is done to servers and to the registry while clients call.

Never touches the healthy servers, and changes nothing that it does not put right again.
"""

import asyncio
import os
import random
import signal
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.client import Diary
from tests.chaos.fleet import Fleet, Kind
from tests.chaos.pace import rest
from tests.support.admin import AdminClient, Answer

SIDE = "side"
"""A domain of the run, which changes all the time."""

CHURN = "churn"
"""A server of the run that comes and goes."""

Work = Callable[[], Awaitable[None]]


@dataclass(slots=True)
class Disturbance:
    """Does things at random; `done` counts them. No worker is killed after `kill_until`."""

    fleet: Fleet
    admin: AdminClient
    random: random.Random
    diary: Diary
    kill_until: float
    done: dict[str, int] = field(default_factory=dict)

    async def run(self) -> None:
        """Disturb until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._again(0.8, self._trouble))
            group.create_task(self._again(2.0, self._harm))
            group.create_task(self._again(0.8, self._operate))
            group.create_task(self._again(20.0, self._command))
            group.create_task(self.fleet.keep())
            if self.fleet.workers():
                group.create_task(self._again(25.0, self._kill_worker))

    async def settle(self) -> None:
        """Put everything right again."""
        await self.fleet.calm()
        for kind in self.fleet.troubled:
            await self._ask("POST", f"/servers/{kind.name}/enable")
        await self._ask("DELETE", f"/servers/{CHURN}", If_Match="*")
        await self._ask("PUT", f"/domains/{SIDE}", {"include": ["*"]}, If_Match="*")
        await asyncio.gather(*(self._restart(kind) for kind in self.fleet.troubled))

    async def _again(self, pause: float, work: Work) -> None:
        while True:
            await rest(self.random.uniform(0.2, 2.0) * pause)
            await work()

    async def _trouble(self) -> None:
        self._count("fault plans")
        self.fleet.trouble(self._any())

    async def _harm(self) -> None:
        if self.random.random() < 0.5:
            self._count("SIGKILL")
            await self.fleet.kill(self._any())
        else:
            self._count("SIGSTOP")
            await self.fleet.halt(self._any())

    async def _kill_worker(self) -> None:
        """Kill one worker of several, when all are there and the run goes on long enough."""
        pids = self.fleet.workers()
        if len(pids) > 1 and self.diary.now() < self.kill_until:
            self._count("workers killed")
            self.diary.kills.append(self.diary.now())
            os.kill(self.random.choice(pids), signal.SIGKILL)

    async def _operate(self) -> None:
        works = (self._pause, self._restart_any, self._edit, self._dress, self._come, self._look)
        await self.random.choice(works)()

    async def _pause(self) -> None:
        """Disable a server for a moment."""
        self._count("servers disabled")
        name = self._any().name
        await self._ask("POST", f"/servers/{name}/disable")
        await rest(self.random.random() * 2)
        await self._ask("POST", f"/servers/{name}/enable")

    async def _restart_any(self) -> None:
        self._count("servers restarted")
        await self._restart(self._any())

    async def _restart(self, kind: Kind) -> None:
        await self._ask("POST", f"/servers/{kind.name}/restart")

    async def _edit(self) -> None:
        """Change the settings of a server over HTTP: its connections are opened anew."""
        kind = self.random.choice([kind for kind in self.fleet.troubled if kind.http])
        self._count("servers edited")
        settings = {
            "url": self.fleet.webs[kind.name].url,
            "trusted": True,
            "call_timeout": self.random.choice([2.0, 3.0, 4.0]),
            "start_timeout": 10.0,
        }
        await self._ask("PUT", f"/servers/{kind.name}", settings, If_Match="*")

    async def _dress(self) -> None:
        """Change what the domain of the run shows."""
        self._count("domains edited")
        kinds = self.random.sample(self.fleet.troubled, 3)
        include = ["calm-*/*", *(f"{kind.name}/*" for kind in kinds)]
        rules = {"include": include, "instructions": f"edit {self.random.random()}"}
        await self._ask("PUT", f"/domains/{SIDE}", rules, If_Match="*")

    async def _come(self) -> None:
        """Add a server, or take it away again."""
        self._count("servers added and removed")
        web = self.random.choice(list(self.fleet.webs.values()))
        await self._ask("PUT", f"/servers/{CHURN}", {"url": web.url}, If_None_Match="*")
        await rest(self.random.random() * 3)
        await self._ask("DELETE", f"/servers/{CHURN}", If_Match="*")

    async def _look(self) -> None:
        """Ask for what operators ask."""
        self._count("looks of operators")
        for path in ("/status", "/servers", f"/domains/{SIDE}/tools", "/audit?limit=50"):
            await self._ask("GET", path)
        await asyncio.to_thread(self._ready)

    def _ready(self) -> None:
        """Ask whether the gateway is ready: it must be, since healthy servers answer."""
        try:
            with urllib.request.urlopen(f"{self.admin.url[: -len('/mcp')]}/readyz", timeout=30):
                pass
        except OSError as error:
            self.diary.wonder(f"/readyz: {error!r}")

    async def _command(self) -> None:
        """Change the registry with the command line, as a process beside the gateway."""
        self._count("commands")
        place, name = self.fleet.home, "pipe-new"
        for verb in ("disable", "enable"):
            await asyncio.to_thread(place.run, "server", verb, name)

    async def _ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer | None:
        """Ask the admin API; a conflict or a missing thing is the nature of chaos."""
        try:
            answer = await asyncio.to_thread(self.admin.ask, method, path, body, **headers)
        except OSError as error:
            self.diary.wonder(f"{method} {path}: {error!r}")
            return None
        if answer.status >= 500 and answer.body.get("code", "").startswith("internal"):
            self.diary.wonder(f"{method} {path}: {answer.status} {answer.body}")
        return answer

    def _any(self) -> Kind:
        return self.random.choice(self.fleet.troubled)

    def _count(self, what: str) -> None:
        self.done[what] = self.done.get(what, 0) + 1
