"""Where each client keeps its servers, on each platform, and what stands there for the gateway."""

from pathlib import Path

import pytest

from thoughtgate.config.clients.entries import (
    Connection,
    Endpoint,
    connection,
    endpoint,
    entry_for,
    pipe,
)
from thoughtgate.config.clients.places import CLIENTS, Machine, place, project_place, traces
from thoughtgate.core.errors import ConfigError

HOME = Path("/srv/ana")
PIPE = pipe(("/bin/thoughtgate",), "work", "/etc/t.toml", {"THOUGHTGATE_HOME": "/srv/t"})
URL = Endpoint(url="http://127.0.0.1:8765/mcp/work")
ARGS = ["serve", "--stdio", "--domain", "work", "--config", "/etc/t.toml"]
BY_PIPE = {"command": "/bin/thoughtgate", "args": ARGS, "env": {"THOUGHTGATE_HOME": "/srv/t"}}


def machine(platform: str, **environ: str) -> Machine:
    return Machine(platform=platform, home=HOME, environ=environ)


@pytest.mark.parametrize(
    ("client", "linux", "mac"),
    [
        ("claude-code", ".claude.json", ".claude.json"),
        (
            "claude-desktop",
            ".config/Claude/claude_desktop_config.json",
            "Library/Application Support/Claude/claude_desktop_config.json",
        ),
        (
            "vscode",
            ".config/Code/User/mcp.json",
            "Library/Application Support/Code/User/mcp.json",
        ),
        ("cursor", ".cursor/mcp.json", ".cursor/mcp.json"),
        ("codex", ".codex/config.toml", ".codex/config.toml"),
        ("zed", ".config/zed/settings.json", ".config/zed/settings.json"),
        ("windsurf", ".codeium/windsurf/mcp_config.json", ".codeium/windsurf/mcp_config.json"),
    ],
)
def test_the_user_s_file_is_where_the_client_looks(client: str, linux: str, mac: str) -> None:
    assert place(CLIENTS[client], machine("linux")) == HOME / linux
    assert place(CLIENTS[client], machine("darwin")) == HOME / mac


@pytest.mark.parametrize(
    ("client", "variable", "path"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", "/x/.claude.json"),
        ("codex", "CODEX_HOME", "/x/config.toml"),
        ("claude-desktop", "XDG_CONFIG_HOME", "/x/Claude/claude_desktop_config.json"),
        ("vscode", "XDG_CONFIG_HOME", "/x/Code/User/mcp.json"),
        ("zed", "XDG_CONFIG_HOME", "/x/zed/settings.json"),
    ],
)
def test_the_variables_that_the_client_heeds_move_its_file(
    client: str, variable: str, path: str
) -> None:
    chosen = CLIENTS[client]
    assert place(chosen, machine("linux", **{variable: "/x"})) == Path(path)
    for unusable in ("", " ", "relative"):
        assert place(chosen, machine("linux", **{variable: unusable})).is_relative_to(HOME)


def test_a_mac_heeds_no_variable_of_other_desktops() -> None:
    for name in ("claude-desktop", "vscode", "zed"):
        moved = machine("darwin", XDG_CONFIG_HOME="/x")
        assert place(CLIENTS[name], moved) == place(CLIENTS[name], machine("darwin"))


@pytest.mark.parametrize(
    ("client", "path"),
    [
        ("claude-code", ".mcp.json"),
        ("vscode", ".vscode/mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("codex", ".codex/config.toml"),
        ("zed", ".zed/settings.json"),
    ],
)
def test_a_project_s_file_is_where_the_client_looks(client: str, path: str) -> None:
    assert project_place(CLIENTS[client], Path("/p")) == Path("/p") / path


@pytest.mark.parametrize("client", ["claude-desktop", "windsurf"])
def test_a_client_without_projects_says_so(client: str) -> None:
    with pytest.raises(ConfigError, match="--project"):
        project_place(CLIENTS[client], Path("/p"))


def test_a_client_was_used_when_its_folder_is_there() -> None:
    assert traces(CLIENTS["cursor"], machine("linux")) == (HOME / ".cursor",)
    assert HOME not in traces(CLIENTS["claude-code"], machine("linux"))


@pytest.mark.parametrize(
    ("client", "by_pipe", "by_url"),
    [
        ("claude-code", {"type": "stdio", **BY_PIPE}, {"type": "http", "url": URL.url}),
        ("vscode", {"type": "stdio", **BY_PIPE}, {"type": "http", "url": URL.url}),
        ("cursor", {"type": "stdio", **BY_PIPE}, {"url": URL.url}),
        ("codex", BY_PIPE, {"url": URL.url}),
        ("zed", BY_PIPE, {"url": URL.url}),
        ("windsurf", BY_PIPE, {"serverUrl": URL.url}),
        ("claude-desktop", BY_PIPE, None),
    ],
)
def test_an_entry_is_spelled_as_the_client_wants_it(
    client: str, by_pipe: dict[str, object], by_url: dict[str, object] | None
) -> None:
    chosen = CLIENTS[client]
    assert entry_for(chosen, PIPE) == by_pipe
    if by_url is None:
        with pytest.raises(ConfigError, match="commands only"):
            entry_for(chosen, URL)
    else:
        assert entry_for(chosen, URL) == by_url


@pytest.mark.parametrize(
    ("host", "domain", "url"),
    [
        ("127.0.0.1", "default", "http://127.0.0.1:8765/mcp"),
        ("localhost", "work", "http://localhost:8765/mcp/work"),
        ("::1", "default", "http://[::1]:8765/mcp"),
    ],
)
def test_an_endpoint_is_the_url_of_its_domain(host: str, domain: str, url: str) -> None:
    assert endpoint(host, 8765, domain) == Endpoint(url=url)


GATE = "/bin/thoughtgate"


@pytest.mark.parametrize(
    ("name", "entry", "how", "domain"),
    [
        ("x", {"command": GATE, "args": ["serve", "--stdio"]}, "stdio", "default"),
        ("x", {"command": GATE, "args": ["serve", "--stdio", "--domain=a"]}, "stdio", "a"),
        ("x", {"command": "python", "args": ["-m", "thoughtgate", *ARGS]}, "stdio", "work"),
        ("x", {"command": "uvx", "args": ["thoughtgate", *ARGS]}, "stdio", "work"),
        ("x", {"command": {"path": GATE, "args": ARGS}}, "stdio", "work"),
        ("x", {"url": "http://localhost:8765/mcp/a"}, "http", "a"),
        ("thoughtgate", {"serverUrl": "https://gate.example/mcp"}, "http", "default"),
        ("thoughtgate-work", {"url": "https://gate.example/else"}, "http", ""),
    ],
)
def test_an_entry_of_ours_is_recognised(name: str, entry: object, how: str, domain: str) -> None:
    found = connection(name, entry, 8765)
    assert found is not None
    assert (found.name, found.how, found.domain) == (name, how, domain)
    assert isinstance(found, Connection)


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("thoughtgate", {"command": "npx", "args": ["other"]}),
        ("thoughtgate", {"command": GATE, "args": ["server", "list"]}),
        ("x", {"url": "http://localhost:3845/mcp"}),
        ("x", {"url": "https://mcp.example.com:8765/mcp"}),
        ("x", {"url": "http://localhost:8765/other"}),
        ("x", {"url": "http://localhost:99999999/mcp"}),
        ("x", {"url": "http://[/mcp"}),
        ("x", {"command": 5, "args": None}),
        ("thoughtgate", {"settings": {}}),
        ("thoughtgate", "text"),
        ("thoughtgate", None),
    ],
)  # fmt: skip
def test_another_server_s_entry_is_left_alone(name: str, entry: object) -> None:
    assert connection(name, entry, 8765) is None
