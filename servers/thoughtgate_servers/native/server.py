"""A tool server that grows by decorated functions, and its command line.

Never starts anything by itself: `main` runs it as a program, `serving` within another.
"""

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any, TypeVar

import click

from thoughtgate_servers.carriers import Carrier, address, transport_options
from thoughtgate_servers.native.call import Call
from thoughtgate_servers.native.signature import BadSignature, Signature, signature_of
from thoughtgate_servers.serving import serve_table
from thoughtgate_servers.table import Effect, Reply, Request, Table, Tool

F = TypeVar("F", bound=Callable[..., Any])


class ToolServer:
    """A named set of tools; `instructions` tell a model how they are used together."""

    def __init__(self, name: str, *, version: str = "0", instructions: str = "") -> None:
        self.name = name
        self._version = version
        self._instructions = instructions
        self._tools: dict[str, Tool] = {}
        self.table = Table(())

    def tool(
        self,
        *,
        name: str = "",
        read_only: bool = False,
        idempotent: bool = False,
        destructive: bool = False,
        open_world: bool = False,
    ) -> Callable[[F], F]:
        """Make the decorated function a tool; its docstring is what a model reads.

        A function that is no coroutine runs on a thread. While the server runs, callers that watch
        it are told of each new tool.

        Raises:
            BadSignature: The function cannot be one, or its name is taken.
        """
        effect = Effect.IDEMPOTENT if idempotent else Effect.WRITE

        def added(function: F) -> F:
            known_as = name or function.__name__
            if known_as in self._tools:
                raise BadSignature(function=known_as, why="there is a tool of this name")
            signature = signature_of(function)
            self._tools[known_as] = Tool(
                name=known_as,
                title=known_as.replace("_", " ").capitalize(),
                description=inspect.getdoc(function) or "",
                input_schema=signature.input_schema,
                output_schema=signature.output_schema,
                run=_runner(function, signature),
                effect=Effect.READ if read_only else effect,
                destructive=destructive,
                open_world=open_world,
            )
            self.table.change(list(self._tools.values()))
            return function

        return added

    def remove(self, name: str) -> None:
        """Take a tool away; callers that watch the server are told."""
        del self._tools[name]
        self.table.change(list(self._tools.values()))

    def main(self, arguments: list[str] | None = None) -> None:
        """Run as a program, over stdio unless the command line says --http or --grpc."""

        @click.command(help=f"Serve the tools of {self.name}.")
        @transport_options
        def command(carrier: Carrier) -> None:
            serve_table(
                self.table,
                name=self.name,
                instructions=self._instructions,
                carrier=carrier,
                release=self._version,
            )

        command(args=arguments)

    @asynccontextmanager
    async def serving(self, where: str = "127.0.0.1:0") -> AsyncIterator[str]:
        """Serve gRPC at HOST:PORT, loopback only, for as long as the block runs; give the URL."""
        address(where, "serving")
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        carrying = import_module("thoughtgate_servers.grpc.carrying")
        identity = carrying.Identity(
            name=self.name, version=self._version, instructions=self._instructions
        )
        async with carrying.served(self.table, identity, where) as url:
            yield url


def _runner(function: Callable[..., Any], signature: Signature) -> Callable[[Request], Any]:
    async def run(request: Request) -> Reply:
        call = Call(request)
        given = signature.bound(request.arguments, call)
        try:
            if inspect.iscoroutinefunction(function):
                return signature.reply(await function(**given))
            return signature.reply(await asyncio.to_thread(function, **given))
        finally:
            call.end()

    return run
