"""A tool server of one's own behind the gateway: written in Python, spoken to over gRPC.

Never leaves anything behind: server and gateway are ended, their folder is temporary.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from thoughtgate_client import connect

HERE = Path(__file__).resolve().parent
CONFIG = """
[gateway]
list_wait = 30
[servers.weather]
url = {url}
trusted = true
"""


@contextmanager
def running(command: list[str], env: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Run a program and give the address that it says it listens on."""
    process = subprocess.Popen(
        [sys.executable, *command], env=dict(env), stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        heard = map(re.compile(".*listening on (.+)").match, process.stderr)
        yield next(match[1] for match in heard if match)
    finally:
        process.terminate()
        process.communicate(timeout=15)


async def ask(url: str) -> None:
    """List the tool, call it, and see what it says to a town that it does not know."""
    async with connect(url) as gate:
        [tool] = await gate.tools()
        print(tool.name, json.dumps(tool.input_schema["properties"]["unit"]))
        assert tool.input_schema["properties"]["town"]["description"] == "Where."

        result = await gate.call(tool.name, {"town": "Oslo"})
        print(result.structured)
        assert result.structured == {"result": [-3, 1, 6]}

        lost = await gate.try_call(tool.name, {"town": "Atlantis"})
        print(lost.text)
        assert lost.is_error
        assert "Oslo, Rome" in lost.text


def main() -> None:
    """Start the server, put the gateway in front of it, and ask."""
    with (
        TemporaryDirectory() as name,
        running([str(HERE / "weather.py"), "--grpc", "127.0.0.1:0"]) as server,
    ):
        config = Path(name) / "thoughtgate.toml"
        config.write_text(CONFIG.format(url=json.dumps(server)), encoding="utf-8")
        env = {**os.environ, "THOUGHTGATE_HOME": str(Path(name) / "state")}
        serve = ["-m", "thoughtgate", "--config", str(config), "serve", "--port", "0"]
        with running(serve, env) as url:
            asyncio.run(ask(url))


if __name__ == "__main__":
    main()
