"""A result that asks for input (`input_required`, MCP 2026-07-28), and the retry that answers it.

Never decides who answers: in the stateless era the client is asked by this very result, in the
handshake era each of its requests becomes one on the client's stream.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from thoughtgate.core.calls import Question, Retry
from thoughtgate.core.json import JsonObject
from thoughtgate.wire.methods import invalid_params
from thoughtgate.wire.strict import dumps

INPUT_REQUIRED: Final = "input_required"

MAX_REQUESTS: Final = 16
"""Requests of one result; a person answers them."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_value = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequired:
    """What a server wants to know before it goes on; `state` is opaque and to be sent back."""

    questions: Mapping[str, Question]
    state: str | None


def read_input_required(raw: bytes, server: str = "") -> InputRequired:
    """Return the requests of an `input_required` result.

    Raises:
        BadMessage: They are no requests, or too many.
    """
    value = _value(raw)
    asked, state = value.get("inputRequests", {}), value.get("requestState")
    if type(asked) is not dict or len(asked) > MAX_REQUESTS:
        raise invalid_params(message=f'"inputRequests" must be an object of up to {MAX_REQUESTS}')
    if state is not None and type(state) is not str:
        raise invalid_params(message='"requestState" must be a string')
    return InputRequired(
        questions={key: _question(key, one, server) for key, one in asked.items()}, state=state
    )


def write_input_required(questions: Mapping[str, Question], state: str) -> bytes:
    """Return an `input_required` result of our own, without what the era adds."""
    asked = {key: {"method": one.method, "params": one.params} for key, one in questions.items()}
    return dumps({"resultType": INPUT_REQUIRED, "inputRequests": asked, "requestState": state})


def with_state(raw: bytes, state: str) -> bytes:
    """Return an `input_required` result with another `requestState`, all else as it came."""
    members = _members(raw)
    members["requestState"] = msgspec.Raw(dumps(state))
    return dumps(members)


def read_retry(params: JsonObject) -> Retry | None:
    """Return the answers that a request carries, None when it is no retry.

    Raises:
        BadMessage: `inputResponses` or `requestState` is of the wrong type.
    """
    answers, state = params.get("inputResponses"), params.get("requestState")
    if answers is None and state is None:
        return None
    if answers is not None and type(answers) is not dict:
        raise invalid_params(message='"inputResponses" must be an object')
    if state is not None and type(state) is not str:
        raise invalid_params(message='"requestState" must be a string')
    return Retry(answers=answers or {}, state=state)


def write_retry(retry: Retry) -> dict[str, Any]:
    """Return the members that a retry adds to the params of the request."""
    members: dict[str, Any] = {"inputResponses": retry.answers}
    if retry.state is not None:
        members["requestState"] = retry.state
    return members


def _question(key: str, asked: object, server: str) -> Question:
    method = asked.get("method") if isinstance(asked, dict) else None
    params = asked.get("params", {}) if isinstance(asked, dict) else None
    if type(method) is not str or type(params) is not dict:
        raise invalid_params(message=f'input request "{key[:40]}" must be a request')
    return Question(method=method, params=params, server=server)
