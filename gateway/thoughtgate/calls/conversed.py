"""The stage that lets a server ask its caller: `input_required` is answered, or passed up.

Never asks for what the caller has not offered to answer, and never without an end.
"""

import asyncio
from collections.abc import Mapping

from thoughtgate.calls.altered import altered
from thoughtgate.core.calls import Call, Question, Result, Retry
from thoughtgate.core.errors import Malformed, UpstreamGarbled
from thoughtgate.core.json import JsonValue
from thoughtgate.core.ports import Next
from thoughtgate.core.servers import Era
from thoughtgate.wire.input_required import read_input_required
from thoughtgate.wire.requests import offers
from thoughtgate.wire.strict import parse

MAX_ROUNDS = 16
"""How often one call may come back with more questions."""


async def conversed(call: Call, call_next: Next) -> Result:
    """Return the final result, or for a client of the stateless era also one that asks it.

    A client of the handshake era is asked on its stream, and the call is sent again with what it
    answers (MCP 2026-07-28, multi round-trip requests).

    Raises:
        UpstreamGarbled: The server asks for what this caller has not offered, or without end.
        CallerReplied: The caller answered with an error.
        NotAsked: The caller could not be asked.
    """
    result = await call_next(call)
    for _ in range(MAX_ROUNDS):
        if result.final:
            return result
        asked, state = _asked(call, result)
        if call.session.era is Era.STATELESS:
            return result
        answers = await _answers(call, asked)
        result = await call_next(altered(call, retry=Retry(answers=answers, state=state)))
    if result.final:
        return result
    raise UpstreamGarbled(
        message=f"server {call.found.server} asks for more input after {MAX_ROUNDS} answers"
    )


def _asked(call: Call, result: Result) -> tuple[Mapping[str, Question], str | None]:
    """Return the questions, each of which this caller has offered to answer, and the state."""
    server = call.found.server
    try:
        asked = read_input_required(result.raw, server)
    except Malformed as error:
        raise UpstreamGarbled(message=f"server {server}: {error.message}") from None
    for question in asked.questions.values():
        if not offers(call.session.capabilities, question.method, question.params):
            raise UpstreamGarbled(
                message=f"server {server} asks for {question.method[:60]},"
                " which this client has not offered to answer"
            )
    return asked.questions, asked.state


async def _answers(call: Call, questions: Mapping[str, Question]) -> dict[str, JsonValue]:
    """Ask everything side by side; the first failure takes the other questions back."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = {
                key: group.create_task(_answer(call, question))
                for key, question in questions.items()
            }
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return {key: task.result() for key, task in tasks.items()}


async def _answer(call: Call, question: Question) -> JsonValue:
    return parse(await call.listener.ask(question))
