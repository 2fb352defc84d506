"""A server of the SDK that asks its client: by requests in the old era, by results in the new one.

`python -m tests.support.bridge_server` serves HTTP and writes its URL; with `stdio FILE` it serves
one client, and processes of the same FILE share their diary.
"""

import asyncio
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

from tests.conformance.asking import Context, Stage, asked, elicitation, modern, roots, sampling
from tests.support.sdk_server import serve_app

Reply = types.CallToolResult | types.InputRequiredResult

NOTE: Final = "note://shared"
FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"colour": {"type": "string", "default": "red"}},
    "required": ["colour"],
}
ONE: Final[list[Stage]] = [{"colour": elicitation("which colour?", FORM)}]
TWO: Final[list[Stage]] = [
    {"first": elicitation("first?", FORM)},
    {"second": elicitation("second?", FORM)},
]
THREE: Final[list[Stage]] = [
    {"colour": elicitation("which colour?", FORM), "words": sampling("say"), "folders": roots()}
]


class Diary:
    """What calls went through; in a file when several processes share one."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._words: list[str] = []

    @contextmanager
    def waiting(self) -> Iterator[None]:
        self._note("begun")
        try:
            yield
        except BaseException:
            self._note("cancelled")
            raise
        finally:
            self._note("over")

    def read(self) -> dict[str, int]:
        words = self._words
        if self._file is not None and self._file.exists():
            words = self._file.read_text().split()
        return {
            "waiting": words.count("begun") - words.count("over"),
            "cancelled": words.count("cancelled"),
        }

    def _note(self, word: str) -> None:
        self._words.append(word)
        if self._file is not None:
            with self._file.open("a") as file:
                file.write(word + "\n")


class BridgePeer:
    """A server whose tools ask, wait, remember, and tell of what became of them."""

    def __init__(self, diary: Path | None = None) -> None:
        self.diary = Diary(diary)
        self.note = "blank"
        self.memory: dict[str, str] = {}
        self.followers: set[str] = set()
        self.bus = InMemorySubscriptionBus()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # logging is deprecated, and served nevertheless
            self.server: Server[Any] = Server(
                "bridge",
                version="1",
                on_list_tools=self.list_tools,
                on_call_tool=self.call_tool,
                on_list_prompts=self.list_prompts,
                on_get_prompt=self.get_prompt,
                on_list_resources=self.list_resources,
                on_read_resource=self.read_resource,
                on_subscribe_resource=self.subscribe,
                on_unsubscribe_resource=self.unsubscribe,
                on_completion=self.complete,
                on_subscriptions_listen=ListenHandler(self.bus),
            )

    async def list_tools(self, ctx: Context, params: Any) -> types.ListToolsResult:
        names = [name.removeprefix("tool_") for name in dir(self) if name.startswith("tool_")]
        tools = [types.Tool(name=name, input_schema={"type": "object"}) for name in names]
        return types.ListToolsResult(tools=tools)

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Reply:
        reply = await getattr(self, f"tool_{params.name}")(ctx, params)
        if isinstance(reply, types.InputRequiredResult):
            return reply
        return types.CallToolResult(content=[], structured_content=reply)

    async def _asks(self, ctx: Context, params: Any, stages: list[Stage]) -> Any:
        answers = await asked(ctx, params, stages, stateful=len(stages) > 1)
        if isinstance(answers, types.InputRequiredResult):
            return answers
        return {
            key: answer.model_dump(by_alias=True, mode="json", exclude_none=True)
            for key, answer in answers.items()
        }

    async def tool_survey(self, ctx: Context, params: Any) -> Any:
        return await self._asks(ctx, params, ONE)

    async def tool_rounds(self, ctx: Context, params: Any) -> Any:
        return await self._asks(ctx, params, TWO)

    async def tool_trio(self, ctx: Context, params: Any) -> Any:
        return await self._asks(ctx, params, THREE)

    async def tool_hold(self, ctx: Context, params: Any) -> Any:
        """Ask, and count while the question is open (old era) or the call waits after it."""
        with self.diary.waiting():
            reply = await self._asks(ctx, params, ONE)
            if not isinstance(reply, types.InputRequiredResult):
                await anyio.sleep_forever()
        return reply

    async def tool_wait(self, ctx: Context, params: Any) -> Any:
        with self.diary.waiting():
            await anyio.sleep_forever()

    async def tool_state(self, ctx: Context, params: Any) -> Any:
        return self.diary.read()

    async def tool_remember(self, ctx: Context, params: Any) -> Any:
        """Return what this session said last, and keep what it says now."""
        key = session_of(ctx)
        before = self.memory.get(key, "")
        self.memory[key] = str((params.arguments or {}).get("text", ""))
        return {"before": before}

    async def tool_write(self, ctx: Context, params: Any) -> Any:
        self.note = str((params.arguments or {}).get("text", ""))
        await self.bus.publish(ResourceUpdated(uri=NOTE))
        if session_of(ctx) in self.followers and not modern(ctx):
            await ctx.session.send_resource_updated(NOTE)
        return {"written": True}

    async def list_prompts(self, ctx: Context, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name="greet")])

    async def get_prompt(self, ctx: Context, params: Any) -> Any:
        reply = await self._asks(ctx, params, ONE)
        if isinstance(reply, types.InputRequiredResult):
            return reply
        words = types.TextContent(text=reply["colour"]["content"]["colour"])
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=words)])

    async def list_resources(self, ctx: Context, params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[types.Resource(name="note", uri=NOTE)])

    async def read_resource(self, ctx: Context, params: Any) -> types.ReadResourceResult:
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=params.uri, text=self.note)]
        )

    async def subscribe(self, ctx: Context, params: Any) -> types.EmptyResult:
        self.followers.add(session_of(ctx))
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: Any) -> types.EmptyResult:
        self.followers.discard(session_of(ctx))
        return types.EmptyResult()

    async def complete(self, ctx: Context, params: Any) -> types.CompleteResult:
        return types.CompleteResult(
            completion=types.Completion(values=[params.argument.value + "!"], total=1)
        )


def session_of(ctx: Context) -> str:
    """Return the id of the session over HTTP; over a pipe there is only one."""
    return "" if ctx.request is None else ctx.request.headers.get("mcp-session-id", "")


async def serve_stdio(diary: str) -> None:
    server = BridgePeer(Path(diary)).server
    options = server.create_initialization_options(NotificationOptions(resources_changed=True))
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


if __name__ == "__main__":
    if sys.argv[1:2] == ["stdio"]:
        anyio.run(serve_stdio, sys.argv[2])
    else:
        asyncio.run(serve_app(BridgePeer().server.streamable_http_app()))
