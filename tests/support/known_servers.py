"""Popular tool servers as people write them into their clients' settings, and a harmless call each.

Never anything that needs a network: where every tool does, the server is only listed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.support.peers import npm_versions, pypi_versions

NPM, PYPI = "npm", "PyPI"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One server: `name` in the settings, and what one of its tools must answer.

    `{page}` and `{project}` in arguments stand for a page and the project's folder on this machine.
    `carrier` is how it is served over HTTP, at the URL that `url_variable` names; empty over stdio.
    """

    name: str
    home: str
    package: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    carrier: str = ""
    tools: tuple[str, ...]
    call: str = ""
    arguments: Mapping[str, object] = field(default_factory=dict)
    answers: str = ""

    @property
    def registered(self) -> str:
        """Return its name in the registry."""
        return self.name.lower().replace(" ", "-")

    @property
    def version(self) -> str:
        """Return the version that is installed."""
        versions = npm_versions() if self.home == NPM else pypi_versions()
        return versions[self.package]

    @property
    def transport(self) -> str:
        """Return what it is reached by, as people call it."""
        return {"": "stdio", "streamableHttp": "HTTP", "sse": "HTTP+SSE"}[self.carrier]

    @property
    def url_variable(self) -> str:
        """Return the variable that names its URL."""
        return f"EVERYTHING_{self.carrier.upper()}"

    def settings(self) -> dict[str, object]:
        """Return its entry in a client's settings."""
        if self.carrier:
            kind = "sse" if self.carrier == "sse" else "http"
            return {"type": kind, "url": f"${{env:{self.url_variable}}}"}
        env = {"env": dict(self.env)} if self.env else {}
        if self.home == NPM:
            return {"command": "npx", "args": ["-y", self.package, *self.args], **env}
        return {"command": "uvx", "args": [self.package, *self.args], **env}


MCP = "@modelcontextprotocol"

KNOWN = (
    Known(
        name="everything", home=NPM, package=f"{MCP}/server-everything",
        tools=("echo", "get-sum"), call="echo", arguments={"message": "héllo"},
        answers="Echo: héllo",
    ),
    Known(
        name="everything-http", home=NPM, package=f"{MCP}/server-everything",
        carrier="streamableHttp", tools=("echo", "get-sum"), call="get-sum",
        arguments={"a": 2, "b": 40}, answers="The sum of 2 and 40 is 42.",
    ),
    Known(
        name="everything-sse", home=NPM, package=f"{MCP}/server-everything", carrier="sse",
        tools=("echo", "get-sum"), call="echo", arguments={"message": "as in 2024"},
        answers="Echo: as in 2024",
    ),
    Known(
        name="filesystem", home=NPM, package=f"{MCP}/server-filesystem",
        args=("${workspaceFolder}",), tools=("read_text_file", "list_directory"),
        call="list_allowed_directories", answers="Allowed directories:",
    ),
    Known(
        name="memory", home=NPM, package=f"{MCP}/server-memory",
        env={"MEMORY_FILE_PATH": "${workspaceFolder}/memory.jsonl"},
        tools=("create_entities", "read_graph"), call="read_graph", answers='"entities"',
    ),
    Known(
        name="Sequential Thinking", home=NPM, package=f"{MCP}/server-sequential-thinking",
        tools=("sequentialthinking",), call="sequentialthinking",
        arguments={"thought": "one", "thoughtNumber": 1, "totalThoughts": 1,
                   "nextThoughtNeeded": False},
        answers='"thoughtNumber": 1',
    ),
    Known(
        name="github", home=NPM, package=f"{MCP}/server-github",
        env={"GITHUB_PERSONAL_ACCESS_TOKEN": "${GITHUB_TOKEN:-none}"},
        tools=("search_repositories", "create_issue"),
    ),
    Known(
        name="playwright", home=NPM, package="@playwright/mcp", args=("--headless",),
        tools=("browser_navigate", "browser_snapshot"),
    ),
    Known(
        name="context7", home=NPM, package="@upstash/context7-mcp",
        tools=("resolve-library-id",),
    ),
    Known(
        name="time", home=PYPI, package="mcp-server-time",
        args=("--local-timezone", "${TZ:-Europe/Berlin}"),
        tools=("get_current_time", "convert_time"), call="convert_time",
        arguments={"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
        answers="21:00:00+09:00",
    ),
    Known(
        name="git", home=PYPI, package="mcp-server-git",
        args=("--repository", "${workspaceFolder}/repository"), tools=("git_status", "git_log"),
        call="git_status", arguments={"repo_path": "{project}/repository"},
        answers="working tree clean",
    ),
    Known(
        name="fetch", home=PYPI, package="mcp-server-fetch",
        args=("--ignore-robots-txt", "--allow-private-ips"),
        tools=("fetch",), call="fetch", arguments={"url": "{page}"}, answers="a page of plain text",
    ),
    Known(
        name="sqlite", home=PYPI, package="mcp-server-sqlite",
        args=("--db-path", "${workspaceFolder}/notes.db"), tools=("read_query", "list_tables"),
        call="list_tables", answers="[]",
    ),
    Known(
        name="calculator", home=PYPI, package="mcp-server-calculator",
        tools=("calculate",), call="calculate", arguments={"expression": "6 * 7"}, answers="42",
    ),
    Known(
        name="DuckDuckGo Search", home=PYPI, package="duckduckgo-mcp-server",
        tools=("search", "fetch_content"),
    ),
)  # fmt: skip
"""The servers that are imported, started, listed and called by the tests."""


def settings_text() -> str:
    """Return the settings of somebody who uses all of them, with a comment and a last comma."""
    entries = ",\n".join(
        f"    {json.dumps(known.name)}: {json.dumps(known.settings(), ensure_ascii=False)}"
        for known in KNOWN
    )
    return f'{{\n  // every server that I use\n  "mcpServers": {{\n{entries},\n  }},\n}}\n'
