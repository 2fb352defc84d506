"""The clients that can be connected, and where each keeps its list of servers.

Never touches a file: a place is computed from the platform, the home folder and the variables.
The formats are those that the clients' own manuals describe:
code.claude.com/docs/en/mcp (`CLAUDE_CONFIG_DIR` moves the file),
modelcontextprotocol.io/docs/develop/connect-local-servers (Claude Desktop: a command only),
code.visualstudio.com/docs/agents/reference/mcp-configuration, cursor.com/docs/mcp,
developers.openai.com/codex/mcp (`CODEX_HOME` moves the folder), zed.dev/docs/ai/mcp and
docs.windsurf.com/windsurf/cascade/mcp.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from thoughtgate.core.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A program that connects to MCP servers, and how it wants them written down.

    `servers` is the key of the object that holds them; `typed` are the kinds of entries that name
    their `type`; `url_key` is empty when the client's file knows no servers by URL. `project` is
    the file below a project's folder, empty when there is none. `then` says how a change takes
    effect, `look` where the server is seen after that.
    """

    name: str
    title: str
    servers: str = "mcpServers"
    form: Literal["json", "toml"] = "json"
    typed: frozenset[str] = frozenset()
    url_key: str = "url"
    project: str = ""
    then: str = ""
    look: str = ""


CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        Client(
            name="claude-code",
            title="Claude Code",
            typed=frozenset({"stdio", "http"}),
            project=".mcp.json",
            then="start Claude Code anew",
            look="/mcp shows the server",
        ),
        Client(
            name="claude-desktop",
            title="Claude Desktop",
            url_key="",
            then="quit Claude Desktop and open it again",
            look="its developer settings list the server",
        ),
        Client(
            name="vscode",
            title="VS Code",
            servers="servers",
            typed=frozenset({"stdio", "http"}),
            project=".vscode/mcp.json",
            then="VS Code takes it up at once",
            look="a chat asks whether to trust the server",
        ),
        Client(
            name="cursor",
            title="Cursor",
            typed=frozenset({"stdio"}),
            project=".cursor/mcp.json",
            then="restart Cursor",
            look="its settings list the server",
        ),
        Client(
            name="codex",
            title="Codex",
            servers="mcp_servers",
            form="toml",
            project=".codex/config.toml",
            then="start Codex anew",
            look="/mcp shows the server",
        ),
        Client(
            name="zed",
            title="Zed",
            servers="context_servers",
            project=".zed/settings.json",
            then="Zed takes it up at once",
            look="the settings of its agent panel show the server",
        ),
        Client(
            name="windsurf",
            title="Windsurf",
            url_key="serverUrl",
            then="restart Windsurf",
            look="the panel of Cascade lists the server",
        ),
    )
}
"""Every client by the name that the command line knows it by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a place depends on: the platform (as of `sys.platform`), the home, the variables."""

    platform: str
    home: Path
    environ: Mapping[str, str]

    @property
    def support(self) -> Path:
        """Return the folder that holds the folders of desktop programs."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.folder("XDG_CONFIG_HOME", ".config")

    def folder(self, variable: str, usual: str) -> Path:
        """Return the folder that a variable names, or the usual one in the home."""
        named = Path(self.environ.get(variable, "").strip())
        return named if named.is_absolute() else self.home / usual


def place(client: Client, machine: Machine) -> Path:
    """Return the file in which a client keeps the servers of the user."""
    return _folder(client, machine) / _USUAL[client.name]


def project_place(client: Client, project: Path) -> Path:
    """Return the file in which a client keeps the servers of a project.

    Raises:
        ConfigError: The client has no such file.
    """
    if not client.project:
        raise ConfigError(
            message=f"{client.title} has no servers of a project; leave out --project"
        )
    return project / client.project


def traces(client: Client, machine: Machine) -> tuple[Path, ...]:
    """Return the files or folders of which one is there when the client was ever used."""
    if client.name == "claude-code":
        return (place(client, machine), machine.folder("CLAUDE_CONFIG_DIR", ".claude"))
    return (place(client, machine).parent,)


_USUAL = {
    "claude-code": ".claude.json",
    "claude-desktop": "claude_desktop_config.json",
    "vscode": "mcp.json",
    "cursor": "mcp.json",
    "codex": "config.toml",
    "zed": "settings.json",
    "windsurf": "mcp_config.json",
}


def _folder(client: Client, machine: Machine) -> Path:
    """Return the folder of a client's file."""
    zed = machine.home / ".config" if machine.platform == "darwin" else machine.support
    folders = {
        "claude-code": machine.folder("CLAUDE_CONFIG_DIR", ""),
        "claude-desktop": machine.support / "Claude",
        "vscode": machine.support / "Code" / "User",
        "cursor": machine.home / ".cursor",
        "codex": machine.folder("CODEX_HOME", ".codex"),
        "zed": zed / "zed",
        "windsurf": machine.home / ".codeium" / "windsurf",
    }
    return folders[client.name]
