"""Commands never come over the network, however they are spelled."""

import json
from typing import Any

import pytest

from thoughtgate.core.errors import Malformed, Refused
from thoughtgate.surface.admin_commands import refuse_commands
from thoughtgate.wire.strict import parse

URL = {"url": "https://tools.example/mcp"}

SPELLINGS: list[Any] = [
    {"command": ["sh"]},
    {"command": "sh -c id"},
    {"Command": ["sh"]},
    {"COMMAND": None},
    {"commands": {}},
    {"argv": ["sh"]},
    {"args": []},
    {"env": {"A": "b"}},
    {"ENV": {}},
    {"cwd": "/"},
    {"work_dir": "/"},
    {"working-directory": "/"},
    {"com_mand": ["sh"]},
    {" command ": ["sh"]},
    {"exec": "sh"},
    {"type": "stdio"},
    {"type": "STDIO"},
    {"kind": "stdio"},
    {"transport": "stdio"},
    {"transport": {"argv": ["sh"]}},
    {"transport": {"type": "stdio"}},
    {"stdio": {"command": "sh"}},
    {"servers": [{"command": "sh"}]},
    {"mcpServers": {"x": {"command": "sh"}}},
    {"url": "stdio:sh"},
    {"url": " STDIO://sh"},
    {"url": "file:///bin/sh"},
    {"url": "exec:sh"},
    {"url": "npx:server"},
    {"tags": [{"command": "sh"}]},
]


@pytest.mark.parametrize("body", SPELLINGS, ids=json.dumps)
def test_a_command_in_any_spelling_is_refused(body: Any) -> None:
    for spelled in (body, {**URL, **body}, [body]):
        with pytest.raises(Refused) as caught:
            refuse_commands(spelled)
        assert caught.value.code == "refused"
        assert "local command line" in caught.value.message


def test_an_escaped_command_is_a_command() -> None:
    with pytest.raises(Refused):
        refuse_commands(parse(rb'{"url":"https://a","\u0063ommand":["sh"]}'))


def test_a_hidden_second_key_is_no_json_of_ours() -> None:
    with pytest.raises(Malformed):
        parse(b'{"url":"https://a","command":["sh"],"command":null}')


FINE: list[Any] = [
    URL,
    {**URL, "headers": {"Env": "prod", "X-Command": "a", "command": "b"}},
    {**URL, "tags": ["command", "stdio"]},
    {"url": "https://tools.example/stdio/command"},
    "command",
    None,
    3,
]


@pytest.mark.parametrize("body", FINE, ids=json.dumps)
def test_what_is_no_command_is_not_taken_for_one(body: Any) -> None:
    refuse_commands(body)
