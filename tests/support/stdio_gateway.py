"""A process that serves a fake gateway over its standard input and output, and prints too much."""

import asyncio
import time

from tests.support.fake_gateway import FakeGateway, talk
from thoughtgate.sessions import Sessions
from thoughtgate.surface.mcp_stdio import serve_stdio
from thoughtgate.surface.settings import FaceSettings
from thoughtgate.surface.stdio_pipes import claimed_stdio


async def main() -> None:
    settings = FaceSettings(info={"name": "thoughtgate", "version": "1"})
    gateway = FakeGateway().add("echo").add("talk", talk)
    async with claimed_stdio() as pipe:
        print("this line must not reach the client")  # noqa: T201 - what the test is about
        await serve_stdio(gateway, Sessions(clock=time.monotonic), "default", pipe, settings)


if __name__ == "__main__":
    asyncio.run(main())
