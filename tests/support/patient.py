"""A gateway's place with something wrong in it, and what the doctor finds there."""

import json
import sys
from pathlib import Path

from tests.support.waiting import within
from thoughtgate.app.doctor.examining import examined
from thoughtgate.app.doctor.findings import Checked, Finding
from thoughtgate.app.stores import open_registry
from thoughtgate.config.files import load, survey
from thoughtgate.core.json import JsonObject

TINY = """
import json, sys
tools = json.loads(sys.argv[1])
for line in sys.stdin:
    message = json.loads(line)
    answers = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "tiny", "version": "1"}},
        "tools/list": {"tools": tools},
    }
    if "id" in message:
        known = answers.get(message["method"])
        body = {"result": known} if known else {"error": {"code": -32601, "message": "unknown"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}), flush=True)
"""
"""A tool server of the older era; its tools are its first argument."""


class Patient:
    """A folder with a configuration, a state folder and an environment of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.config = folder / "gate.toml"
        self.environ: dict[str, str] = {
            "THOUGHTGATE_HOME": str(self.state),
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        }
        self.write("")

    def write(self, text: str) -> None:
        """Write the configuration; its port is any."""
        self.config.write_text(f"[gateway]\nport = 0\n{text}", encoding="utf-8")

    def script(self, name: str, text: str, mode: int = 0o755) -> Path:
        """Save a program in the folder."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    def stdio(self, *argv: object, name: str = "it", **settings: object) -> str:
        """Return the lines that configure a command."""
        lines: dict[str, object] = {"command": list(map(str, argv)), **settings}
        return f"[servers.{name}]\n" + "".join(f"{k} = {_toml(v)}\n" for k, v in lines.items())

    def tiny(self, *tools: JsonObject, name: str = "it") -> str:
        """Return the lines that configure a healthy server with these tools."""
        program = self.script("tiny.py", TINY)
        return self.stdio(sys.executable, "-I", "-S", program, json.dumps(tools), name=name)

    def open(self) -> None:
        """Make the registry."""
        open_registry(load(self.config, self.environ)).close()

    async def look(self, *names: str) -> tuple[Checked, ...]:
        """Return what the doctor says."""
        surveyed = survey(self.config, self.environ)
        return await within(examined(surveyed, self.environ, names), 30.0)

    async def findings(self, *names: str) -> list[Finding]:
        """Return everything that is found."""
        return [finding for check in await self.look(*names) for finding in check.findings]

    async def finding(self, *names: str) -> Finding:
        """Return the one thing that is found."""
        found = await self.findings(*names)
        assert len(found) == 1, found
        return found[0]


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {json.dumps(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)
