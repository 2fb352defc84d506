"""The reference of the shipped tool servers, from their own command lines and tool tables.

Never starts a server: the tables are built over an empty folder.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from thoughtgate_servers import data, files, logs, notify, report
from thoughtgate_servers.data.limits import Limits
from thoughtgate_servers.data.tools import DataTools
from thoughtgate_servers.files.tools import FileTools
from thoughtgate_servers.logs.reading import DEFAULT_MAX_BYTES
from thoughtgate_servers.logs.tools import LogTools
from thoughtgate_servers.notify.outbox import Outbox
from thoughtgate_servers.notify.posting import Poster
from thoughtgate_servers.notify.targets import Targets
from thoughtgate_servers.notify.tools import NotifyTools
from thoughtgate_servers.report.tools import ReportTools
from thoughtgate_servers.sandbox import Sandbox
from thoughtgate_servers.table import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shipped:
    """One server: its command and its tools."""

    command: click.Command
    tools: Sequence[Tool]


def servers_page(notice: str) -> str:
    """Return the page; `notice` stands on top of it."""
    lines = [
        notice,
        "# Tool servers",
        "",
        "These tool servers come along. They speak MCP over stdio, or over HTTP with `--http`, to",
        "any client; with `--grpc` they speak the gateway's protocol of gRPC tool servers. CSV and",
        "Parquet files need DuckDB: `pip install 'thoughtgate[data]'`.",
        "",
    ]
    with TemporaryDirectory() as folder:
        for name, shipped in sorted(_shipped(Path(folder)).items()):
            lines += _server(name, shipped)
    return "\n".join(lines).rstrip() + "\n"


def _shipped(folder: Path) -> Mapping[str, _Shipped]:
    sandbox = Sandbox([folder])
    targets = Targets(named={}, allowed=())
    notifying = NotifyTools(
        targets=targets,
        outbox=Outbox(folder / "outbox"),
        poster=Poster(timeout=1.0, proxy=None),
    )
    asking = DataTools(sandbox=sandbox, out=sandbox, limits=Limits())
    return {
        "data": _Shipped(command=data.main, tools=asking.table()),
        "files": _Shipped(
            command=files.main, tools=FileTools(sandbox=sandbox, writable=True).table()
        ),
        "logs": _Shipped(
            command=logs.main, tools=LogTools(sandbox=sandbox, max_bytes=DEFAULT_MAX_BYTES).table()
        ),
        "notify": _Shipped(command=notify.main, tools=notifying.table()),
        "report": _Shipped(command=report.main, tools=ReportTools(sandbox=sandbox).table()),
    }


def _server(name: str, shipped: _Shipped) -> Iterator[str]:
    context = click.Context(
        shipped.command, info_name=f"thoughtgate-{name}", max_content_width=100, terminal_width=100
    )
    said = [line.rstrip() for line in shipped.command.get_help(context).splitlines()]
    yield from (f"## {name}", "", "```text", *said, "```", "")
    for tool in shipped.tools:
        yield from (f"### {name}: `{tool.name}`", "")
        yield from (tool.description, "", f"Effect: {tool.effect.value}.", "")
        yield from ("| argument | type | what it says |", "|---|---|---|")
        required = tool.input_schema.get("required", ())
        for argument, schema in tool.input_schema["properties"].items():
            needed = "required" if argument in required else "optional"
            about = _about(schema)
            yield f"| `{argument}` | {_type(schema)}, {needed} | {about} |"
        yield ""


def _about(schema: Mapping[str, Any]) -> str:
    said = [str(schema["description"])] if "description" in schema else []
    if "default" in schema:
        said.append(f"Default: `{json.dumps(schema['default'])}`.")
    return " ".join(said).replace("\n", " ").replace("|", "\\|")


def _type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{one}`" for one in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
