"""A model that the connected client lends us: MCP sampling, of the handshake era.

Never asks a client for what it did not declare.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from thoughtgate.core.calls import Listener, Question
from thoughtgate.core.errors import CallerReplied, Malformed, ModelError, NotAsked
from thoughtgate.core.json import JsonObject
from thoughtgate.core.models import ModelRequest, ModelResponse
from thoughtgate.models.patience import Later, usable
from thoughtgate.models.sampling_shapes import request_params, response
from thoughtgate.models.several import Several
from thoughtgate.wire.methods import SAMPLE
from thoughtgate.wire.requests import offers
from thoughtgate.wire.strict import parse


@dataclass(frozen=True, slots=True, kw_only=True)
class Lender:
    """The client: how to ask it, what it declared, and who shall be told to ask."""

    listener: Listener
    capabilities: JsonObject = field(default_factory=dict)
    asker: str = ""

    def lends(self) -> bool:
        """Say whether the client lends a model at all."""
        return offers(self.capabilities, SAMPLE, {})

    def takes_tools(self) -> bool:
        """Say whether its model may be given tools."""
        return offers(self.capabilities, SAMPLE, {"tools": []})


class Sampling:
    """Asks the client of one session. What its model used is never told, so it is unknown."""

    def __init__(self, lender: Lender) -> None:
        self._lender = lender
        self._several = Several(self._once, native=False)

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Return the reply, or as many as `request.n` says.

        Raises:
            ModelError: The client does not lend a model, its user declined, or what it sent is
                no reply.
        """
        return await self._several.complete(request)

    async def _once(self, request: ModelRequest) -> ModelResponse:
        self._check(request)
        question = Question(
            method=SAMPLE, params=request_params(request), server=self._lender.asker
        )
        try:
            answer = await self._lender.listener.ask(question)
            with usable():
                return response(_object(answer))
        except NotAsked:
            raise ModelError(message="the client did not answer for its model") from None
        except CallerReplied as error:
            raise ModelError(
                message=f"the client declined to ask its model: error {error.rpc_code}",
                data={"callerCode": error.rpc_code},
            ) from None
        except Later as later:
            raise ModelError(message=f"the client {later.what}") from None
        except Malformed as error:
            raise ModelError(message=f"the client sent broken JSON: {error.message}") from None

    def _check(self, request: ModelRequest) -> None:
        if not self._lender.lends():
            raise ModelError(message="the client lends no model: it did not declare sampling")
        if request.tools and not self._lender.takes_tools():
            raise ModelError(
                message="the client's model takes no tools: it did not declare sampling.tools; "
                "put the tools into the text"
            )


def _object(answer: bytes) -> JsonObject:
    value = parse(answer)
    if not isinstance(value, Mapping):
        raise Malformed(message="the answer is not an object")
    return value
