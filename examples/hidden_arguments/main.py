"""A domain with fixed arguments: what clients see, what they may send, and what the server gets.

Never leaves anything behind: the gateway is ended, its folder is temporary.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from thoughtgate_client import connect

CONFIG = """
[gateway]
list_wait = 30
[servers.files]
command = {command}
trusted = true

[domains.peek]
include = ["files/read_file"]

[domains.peek.tools."files/read_file"]
rename = "first_words"
description = "The first bytes of a file."
fixed = {{ max_bytes = 9, encoding = "utf-8" }}
"""


@contextmanager
def gateway(folder: Path) -> Iterator[str]:
    """Run a gateway over files in `folder`; give the address of its default endpoint."""
    command = [sys.executable, "-m", "thoughtgate_servers.files", "--root", str(folder)]
    config = folder / "thoughtgate.toml"
    config.write_text(CONFIG.format(command=json.dumps(command)), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "thoughtgate", "--config", str(config), "serve", "--port", "0"],
        env={**os.environ, "THOUGHTGATE_HOME": str(folder / "state")},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        heard = map(re.compile("listening on (.+)").match, process.stderr)
        yield next(match[1] for match in heard if match)
    finally:
        process.terminate()
        process.communicate(timeout=15)


async def main() -> None:
    """Show the tool, call it, and try to send what is hidden."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "letter.txt").write_text("Dear Ada, the rest is private.", encoding="utf-8")
        with gateway(folder) as url:
            async with connect(f"{url}/peek") as gate:
                [tool] = await gate.tools()
                print(tool.name, sorted(tool.input_schema["properties"]))
                assert tool.name == "first_words"
                assert sorted(tool.input_schema["properties"]) == ["offset", "path"]

                result = await gate.call("first_words", {"path": "letter.txt"})
                print(result.structured["content"])
                assert result.structured["content"] == "Dear Ada,"

                more = await gate.try_call("first_words", {"path": "letter.txt", "max_bytes": 99})
                print(more.text)
                assert more.is_error
                assert more.structured["problems"][0]["pointer"] == "/max_bytes"


if __name__ == "__main__":
    asyncio.run(main())
