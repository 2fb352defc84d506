"""A tool server without a wire: answers calls from a script.

Never waits by itself; a script that shall wait gives a coroutine function.
"""

from collections.abc import Awaitable, Callable, Mapping

from thoughtgate.core.calls import Call, Result
from thoughtgate.core.errors import UpstreamReplied

Answer = Result | BaseException | Callable[[Call], Awaitable[Result]]
"""What to do with a call: return it, raise it, or await it."""

EMPTY = Result(raw=b'{"content":[]}')


class ScriptedSender:
    """Answers by the server's own tool name, and keeps the calls it was sent.

    `answers` without an entry for a tool answer with `otherwise`.
    """

    def __init__(
        self, answers: Mapping[str, Answer] | None = None, *, otherwise: Answer = EMPTY
    ) -> None:
        self.answers: dict[str, Answer] = dict(answers or {})
        self.otherwise = otherwise
        self.sent: list[Call] = []

    async def send(self, call: Call) -> Result:
        """Answer one call as the script says."""
        self.sent.append(call)
        answer = self.answers.get(call.found.name, self.otherwise)
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, Result) else await answer(call)


def unknown_there(name: str) -> UpstreamReplied:
    """Return the error of a server that has no such tool."""
    return UpstreamReplied(rpc_code=-32602, rpc_message=f"Unknown tool: {name}")
