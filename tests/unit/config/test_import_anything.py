"""Whatever stands in a file, it is read, or refused with reasons; never a crash, never a loss."""

import json
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.imports import read
from thoughtgate.config.imports import servers
from thoughtgate.core.errors import ConfigError
from thoughtgate.registry.values import check_name

KEYS = sorted(
    {
        "command", "args", "env", "env_vars", "envFile", "cwd", "url", "serverUrl", "httpUrl",
        "headers", "http_headers", "env_http_headers", "bearer_token_env_var", "type", "transport",
        "enabled", "disabled", "startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec",
        "source", "settings", "timeout", "oauth", "nonsense",
    }
)  # fmt: skip

TEXT = st.text(max_size=8) | st.sampled_from(
    ["x", "npx -y", "https://h/mcp", "http://[::1", "//h/sse", "${TOKEN}", "${NONE}", "${input:a}",
     "${input:b}", "${", "${}", "$${x}", "${a:-${b:-}}", "~/x", "sse", "stdio", "http", "TOKEN",
     "a\0", "\ud800", "bad.env"]
)  # fmt: skip
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
TABLES = st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=5)
INPUT_KEYS = ("id", "type", "default", "options", "description", "password")
INPUTS = st.lists(
    st.fixed_dictionaries({}, optional=dict.fromkeys(INPUT_KEYS, ANYTHING)) | ANYTHING,
    max_size=3,
)


@given(
    st.dictionaries(TEXT, TABLES | ANYTHING, max_size=3),
    INPUTS | ANYTHING,
    st.sampled_from(["mcpServers", "servers", "context_servers", "mcp_servers"]),
    st.booleans(),
)
def test_any_json_is_read_or_refused(entries: Any, inputs: Any, key: str, asking: bool) -> None:
    text = json.dumps({key: entries, "inputs": inputs, "projects": inputs})
    found = read(text, asking=asking)
    left_out = {note.server for note in found.notes if "this gateway itself" in note.text}
    told = {problem.server for problem in found.problems} | left_out
    assert {entry.was for entry in found.entries} | told >= set(entries)
    for entry in found.entries:
        check_name("server", entry.name)
    assert not any("t0k-hush" in str(remark) for remark in (*found.problems, *found.notes))


@given(st.text(max_size=40) | st.text(alphabet='{}[]":,/*\\ \n\t=a1', max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ConfigError):
        read(text)


def test_every_key_that_is_read_is_among_those_tried() -> None:
    known = vars(servers)
    assert known["_OF_A_COMMAND"] | known["_OF_A_URL"] | known["_OF_BOTH"] <= set(KEYS)
