"""Popular servers of npm and PyPI, imported from a client's settings as people write them.

Each is started by `npx` or `uvx`, listed, called, and called again by a gateway started anew.
"""

import asyncio
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent

from tests.support.fake_page import page
from tests.support.gate import START, Home, gated, home
from tests.support.known_servers import KNOWN, Known, settings_text
from tests.support.peer_process import everything_over
from tests.support.peers import MODULES, home_environment
from tests.support.waiting import within

pytestmark = [pytest.mark.peers, pytest.mark.timeout(180)]

CALLED = [known for known in KNOWN if known.call]


def name_of(known: Known) -> str:
    return known.registered


@dataclass(frozen=True, kw_only=True)
class House:
    """A project with a client's settings, the home of who uses it, and a page to fetch."""

    home: Home
    project: Path
    page: str

    @property
    def settings(self) -> Path:
        return self.project / ".mcp.json"

    def arguments(self, known: Known) -> dict[str, object]:
        """Return the arguments of a call with the places of this house in them."""
        places = {"{project}": str(self.project), "{page}": self.page}
        filled = dict(known.arguments)
        for name, value in filled.items():
            for place, here in places.items():
                value = value.replace(place, here) if isinstance(value, str) else value
            filled[name] = value
        return filled


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    project = tmp_path_factory.mktemp("project").resolve()
    (project / "node_modules").symlink_to(MODULES)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(project / "repository")]
    subprocess.run(["git", "init", "-q", str(project / "repository")], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    with ExitStack() as around:
        url = around.enter_context(page("a page of plain text\n"))
        urls = {
            known.url_variable: around.enter_context(everything_over(known.carrier))
            for known in KNOWN
            if known.carrier
        }
        place = home(tmp_path_factory.mktemp("home"), **home_environment(), **urls)
        yield House(home=place, project=project, page=url)


@pytest.fixture(scope="module")
def imported(house: House) -> str:
    """Import the settings, as in a terminal, and return what was printed."""
    house.settings.write_text(settings_text(), encoding="utf-8")
    done = house.home.run("server", "import", house.settings)
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass(frozen=True, kw_only=True)
class Visit:
    """What one run of the gateway showed: its tools, and the answer of each server."""

    names: frozenset[str]
    answers: Mapping[str, CallToolResult]


@pytest.fixture(scope="module")
def visits(house: House, imported: str) -> tuple[Visit, Visit]:
    """Serve what was imported, list and call it; then the same by a gateway started anew."""
    return asyncio.run(visited(house)), asyncio.run(visited(house))


async def visited(house: House) -> Visit:
    async with gated(house.home) as gateway, Client(gateway.url(), mode="auto") as client:
        names = await listed(client)
        answers = {
            known.name: await within(
                client.call_tool(f"{known.registered}__{known.call}", house.arguments(known)), START
            )
            for known in CALLED
        }
    return Visit(names=names, answers=answers)


async def listed(client: Client) -> frozenset[str]:
    """Return the names of all tools, once every server had the time to start."""
    names: set[str] = set()
    cursor = None
    while True:
        part = await within(client.list_tools(cursor=cursor), 2 * START)
        names |= {tool.name for tool in part.tools}
        cursor = part.next_cursor
        if cursor is None:
            return frozenset(names)


def words(result: CallToolResult) -> str:
    assert not result.is_error, result
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def test_every_server_is_imported_as_its_settings_say(imported: str) -> None:
    lines = {line.split()[0]: line for line in imported.splitlines()[1:]}
    assert set(lines) == {known.registered for known in KNOWN}
    for known in KNOWN:
        assert (known.package in lines[known.registered]) is not bool(known.carrier)
        assert lines[known.registered].endswith("added")


@pytest.mark.parametrize("known", KNOWN, ids=name_of)
def test_the_tools_of_a_server_are_listed(visits: tuple[Visit, Visit], known: Known) -> None:
    first, again = visits
    own = {name for name in first.names if name.startswith(f"{known.registered}__")}
    assert {f"{known.registered}__{tool}" for tool in known.tools} <= own
    assert {name for name in again.names if name.startswith(f"{known.registered}__")} == own


@pytest.mark.parametrize("known", CALLED, ids=name_of)
def test_a_tool_of_a_server_answers_before_and_after_a_restart(
    visits: tuple[Visit, Visit], known: Known
) -> None:
    for visit in visits:
        assert known.answers in words(visit.answers[known.name])


def test_importing_the_same_settings_again_changes_nothing(house: House, imported: str) -> None:
    said = house.home.said("server", "import", house.settings, "--replace")
    assert {row["done"] for row in said["servers"]} == {"unchanged"}
