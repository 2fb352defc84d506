"""Each connect block of README and of the page about clients: it is what the command writes, and
the SDK's client lists the tools through it.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.support.gate import START, Gate, Home, gate, home, python_server
from tests.support.pages import Block, blocks
from tests.support.source import ROOT
from tests.support.waiting import within
from thoughtgate.config.clients.places import CLIENTS

PAGE = ROOT / "docs" / "how-to" / "connect-a-client.md"
README = ROOT / "README.md"
SCRIPT = Path(sys.executable).with_name("thoughtgate")
SHOWN = "/opt/thoughtgate/.venv/bin/thoughtgate"
COMMAND = re.compile(r"thoughtgate (client connect ([a-z-]+)(?: --[a-z]+)*)")


def entries_of(block: Block) -> dict[str, Any]:
    """Return the servers of a block, under whatever key its client wants."""
    text = "\n".join(block.lines)
    whole = tomllib.loads(text) if block.language == "toml" else json.loads(text)
    keys = {client.servers for client in CLIENTS.values()}
    [key] = keys & whole.keys()
    servers: dict[str, Any] = whole[key]
    return servers


def connect_blocks(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.language in ("json", "toml")]


BLOCKS = [*connect_blocks(README), *connect_blocks(PAGE)]
ENTRIES = [entry for block in BLOCKS for entry in entries_of(block).values()]
PAIRS = [
    (" ".join(before.lines), after)
    for before, after in zip(blocks(PAGE), blocks(PAGE)[1:], strict=False)
    if before.language == "sh" and after.language in ("json", "toml")
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Home:
    settings = python_server("peer", "thoughtgate.testing.fake_server")
    return home(tmp_path_factory.mktemp("home"), settings)


@pytest.fixture(scope="module")
def gateway(place: Home) -> Iterator[Gate]:
    with gate(place) as running:
        yield running


def test_there_is_a_block_for_every_client_and_one_in_the_readme() -> None:
    shown = {match[2] for text, _ in PAIRS if (match := COMMAND.fullmatch(text))}
    assert shown == set(CLIENTS)
    assert len(PAIRS) == len(connect_blocks(PAGE))
    assert len(connect_blocks(README)) == 1


@pytest.mark.parametrize(("text", "block"), PAIRS, ids=[text for text, _ in PAIRS])
def test_a_block_is_what_its_command_writes(text: str, block: Block, tmp_path: Path) -> None:
    command = COMMAND.fullmatch(text)
    assert command
    file = tmp_path / "config"
    bare = Home(folder=tmp_path, extra={"THOUGHTGATE_HOME": "", "THOUGHTGATE_CONFIG": ""})
    done = bare.invoke(*command[1].split(), "--path", file, "--yes")
    assert done.exit_code == 0, done.output
    written = file.read_text("utf-8").replace(str(SCRIPT), SHOWN)
    said = Block(language=block.language, lines=tuple(written.splitlines()), before="")
    assert entries_of(said) == entries_of(block)


@pytest.mark.parametrize("entry", ENTRIES, ids=map(json.dumps, ENTRIES))
async def test_the_tools_are_listed_through_a_block(
    place: Home, gateway: Gate, entry: dict[str, Any]
) -> None:
    async with Client(_target(place, gateway, entry)) as client:
        listed = await within(client.list_tools(), START)
    assert "peer__echo" in {tool.name for tool in listed.tools}


def _target(place: Home, gateway: Gate, entry: dict[str, Any]) -> StdioServerParameters | str:
    """Return what the block says, with this installation and this gateway in their places."""
    if "command" in entry:
        assert Path(entry["command"]).name == "thoughtgate"
        return StdioServerParameters(command=str(SCRIPT), args=entry["args"], env=place.environment)
    url: str = entry.get("url") or entry["serverUrl"]
    assert url.startswith("http://127.0.0.1:8765/mcp")
    return url.replace("http://127.0.0.1:8765/mcp", gateway.url())
