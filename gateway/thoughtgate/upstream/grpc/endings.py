"""The first status that an RPC ended in, which is the server's.

Never asks anything of the RPC that it would have to wait for. Where a server ends an RPC that is
still written to, grpcio puts an INTERNAL of its own in the place of the server's status once a
write fails; only who looks in between learns what the server said.
"""

from collections.abc import Coroutine
from typing import Any

import grpc


class Ending:
    """Takes the first status of an RPC in which the client streams."""

    def __init__(self, call: Any) -> None:
        self._first: grpc.aio.AioRpcError | None = None
        call.add_done_callback(self._note)

    def truly(self, error: grpc.aio.AioRpcError) -> grpc.aio.AioRpcError:
        """Return what the server said, for what grpcio says."""
        return self._first or error

    def _note(self, call: Any) -> None:
        code = _known(call.code())
        if self._first is None and isinstance(code, grpc.StatusCode):
            self._first = grpc.aio.AioRpcError(
                code,
                initial_metadata=grpc.aio.Metadata(),
                trailing_metadata=_known(call.trailing_metadata()) or grpc.aio.Metadata(),
                details=_known(call.details()),
            )


def _known(asked: Coroutine[Any, Any, Any]) -> Any:
    """Return what a coroutine returns that need not wait, None when it would."""
    try:
        asked.send(None)
    except StopIteration as answer:
        return answer.value
    finally:
        asked.close()
    return None
