"""Calls of stateless clients that take more than one request (MCP 2026-07-28, multi round-trip).

Never believes a `requestState`: what comes back must open, be ours, be fresh, and belong to this
principal, domain and request.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from msgspec.structs import replace as changed

from thoughtgate.core.calls import Question, Result, Retry
from thoughtgate.core.json import JsonObject, digest
from thoughtgate.core.workers import ALONE, Crew
from thoughtgate.surface.desk import Asker, Desk
from thoughtgate.surface.holders import marked, unmarked
from thoughtgate.surface.parked import ParkingLimits, ParkingLot, Talk
from thoughtgate.surface.relay import Line
from thoughtgate.surface.seals import Seal
from thoughtgate.wire.input_required import (
    read_input_required,
    read_retry,
    with_state,
    write_input_required,
)
from thoughtgate.wire.messages import BadMessage
from thoughtgate.wire.methods import invalid_params

PURPOSE: Final = "requestState"

LIFETIME: Final = 3600.0
"""Seconds in which the state of a server is taken back; a person may take a while."""

_ASKABLE: Final = ("elicitation", "sampling", "roots")
_OF_A_ROUND: Final = frozenset({"_meta", "inputResponses", "requestState"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """One request of a call."""

    asker: Asker
    line: Line
    method: str
    params: JsonObject

    def bound(self) -> str:
        """Return what its states are bound to: who asks, where, and for what with what."""
        request = {key: value for key, value in self.params.items() if key not in _OF_A_ROUND}
        return digest([self.asker.principal.id, self.asker.domain, self.method, request])


class Rounds:
    """Carries out the calls of stateless clients, each over as many requests as it takes."""

    def __init__(
        self,
        desk: Desk,
        seal_key: bytes,
        *,
        crew: Crew = ALONE,
        limits: ParkingLimits | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._desk = desk
        self._seal = Seal(seal_key, PURPOSE)
        self._crew = crew
        self._limits = limits or ParkingLimits()
        self._lot = ParkingLot(self._limits)
        self._clock = clock

    @property
    def parked(self) -> int:
        """Return how many calls wait for their clients."""
        return len(self._lot)

    async def call(self, method: str, params: JsonObject, asker: Asker, line: Line) -> Result:
        """Return a result, which may be one that asks the client for something.

        Raises:
            BadMessage: The retry's state is not ours, or not of this request.
            GateError: Why there is no result.
        """
        retry = read_retry(params)
        able = asker.session.capabilities  # mostly nothing
        askable = bool(able) and any(able.get(name) is not None for name in _ASKABLE)
        if retry is None and not askable:
            result = await self._desk.call(method, params, asker, line)
            if result.final:
                return result
            return self._passed_up(
                result, _Round(asker=asker, line=line, method=method, params=params)
            )
        round_ = _Round(asker=asker, line=line, method=method, params=params)
        opened = self._opened(retry, round_)
        if "parked" in opened:
            return await self._resumed(str(opened["parked"]), retry, round_)
        if retry is not None:
            asker = changed(asker, retry=replace(retry, state=opened.get("state")))
        talk = Talk(asker.session.capabilities)
        own = changed(line, emit=talk.emit, asks=talk)
        talk.begin(self._desk.call(method, params, asker, own))
        return await self._turn(talk, round_)

    def close(self) -> None:
        """Give up every call that waits for its client."""
        self._lot.close()

    async def _resumed(self, id_: str, retry: Retry | None, round_: _Round) -> Result:
        talk = self._lot.take(id_, round_.asker.principal.id)
        if talk is None:
            raise _stale(why="it was answered already, or was given up")
        talk.answer({} if retry is None else retry.answers)
        return await self._turn(talk, round_)

    async def _turn(self, talk: Talk, round_: _Round) -> Result:
        reached = await talk.turn(round_.line.emit)
        if isinstance(reached, Result):
            return self._passed_up(reached, round_)
        return self._parked(talk, reached, round_)

    def _parked(self, talk: Talk, asked: Mapping[str, Question], round_: _Round) -> Result:
        id_ = self._lot.park(talk, round_.asker.principal.id)
        sealed = self._sealed({"parked": id_}, round_, self._limits.seconds)
        state = marked(sealed, self._crew)
        return Result(raw=write_input_required(asked, state), final=False)

    def _passed_up(self, result: Result, round_: _Round) -> Result:
        """Return a server's own question with its state sealed, any other result as it is."""
        if result.final:
            return result
        state = read_input_required(result.raw).state
        if state is None:
            return result
        sealed = self._sealed({"state": state}, round_, LIFETIME)
        return replace(result, raw=with_state(result.raw, sealed))

    def _sealed(self, value: JsonObject, round_: _Round, seconds: float) -> str:
        until = self._clock() + seconds
        return self._seal.seal({**value, "bound": round_.bound(), "until": until})

    def _opened(self, retry: Retry | None, round_: _Round) -> JsonObject:
        """Return what a state of ours holds; empty for a request without one."""
        if retry is None or retry.state is None:
            return {}
        opened = self._seal.open(unmarked(retry.state)[1])
        if opened is None:
            raise _stale(why="it is not one that was given here")
        if opened["bound"] != round_.bound():
            raise _stale(why="it belongs to another request")
        if opened["until"] < self._clock():
            raise _stale(why="it has expired")
        return opened


def _stale(*, why: str) -> BadMessage:
    return invalid_params(message=f'"requestState" cannot be used: {why}; send the request anew')
