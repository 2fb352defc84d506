"""Popular servers of npm and PyPI, imported from a client's settings as people write them.

Each is started by `npx` or `uvx`, listed, called, and called again by a gateway started anew.
"""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent

from tests.support.fake_page import page
from tests.support.gate import START, Gate, Home, gate, home
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


@contextmanager
def served(house: House) -> Iterator[Gate]:
    with gate(house.home) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(house: House, imported: str) -> Iterator[Gate]:
    with served(house) as running:
        yield running


async def listed(gateway: Gate) -> set[str]:
    """Return the names of all tools, once every server had the time to start."""
    async with Client(gateway.url(), mode="auto") as client:
        names: set[str] = set()
        cursor = None
        while True:
            part = await within(client.list_tools(cursor=cursor), 2 * START)
            names |= {tool.name for tool in part.tools}
            cursor = part.next_cursor
            if cursor is None:
                return names


def words(result: CallToolResult) -> str:
    assert not result.is_error, result
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def answer(gateway: Gate, house: House, known: Known) -> str:
    async with Client(gateway.url(), mode="auto") as client:
        tool = f"{known.registered}__{known.call}"
        return words(await within(client.call_tool(tool, house.arguments(known)), START))


def test_every_server_is_imported_as_its_settings_say(imported: str) -> None:
    lines = {line.split()[0]: line for line in imported.splitlines()[1:]}
    assert set(lines) == {known.registered for known in KNOWN}
    for known in KNOWN:
        assert (known.package in lines[known.registered]) is not bool(known.carrier)
        assert lines[known.registered].endswith("added")


@pytest.mark.parametrize("known", KNOWN, ids=name_of)
async def test_the_tools_of_a_server_are_listed(gateway: Gate, known: Known) -> None:
    names = await listed(gateway)
    assert {f"{known.registered}__{tool}" for tool in known.tools} <= names


@pytest.mark.parametrize("known", CALLED, ids=name_of)
async def test_a_tool_of_a_server_answers(gateway: Gate, house: House, known: Known) -> None:
    assert known.answers in await answer(gateway, house, known)


async def test_everything_is_the_same_after_a_restart(gateway: Gate, house: House) -> None:
    before = await listed(gateway)
    assert gateway.stop() == 0
    with served(house) as again:
        assert await listed(again) == before
        for known in CALLED:
            assert known.answers in await answer(again, house, known), known.name


def test_importing_the_same_settings_again_changes_nothing(house: House, imported: str) -> None:
    said = house.home.said("server", "import", house.settings, "--replace")
    assert {row["done"] for row in said["servers"]} == {"unchanged"}
