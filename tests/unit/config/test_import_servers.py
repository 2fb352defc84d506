"""Servers of other clients' files become ours, or are refused with everything that is wrong."""

import json
from typing import Any

import pytest

from tests.support.imports import only_one, problems, read
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import HttpTransport, StdioTransport

WORK = "/people/ada/atlas"
NPX = {"command": "npx", "args": ["-y", "pkg"]}
DEEP = {"mcp": {"servers": {"s": NPX}}}
CODEX = "/people/ada/.codex/config.toml"


def claude(table: object, name: str = "s") -> str:
    return json.dumps({"mcpServers": {name: table}})


def codex(lines: str) -> str:
    return f"model = 'x'\n[mcp_servers.s]\n{lines}\n[other]\n"


def stdio(*argv: str, cwd: str = WORK, **env: str) -> StdioTransport:
    return StdioTransport(argv=argv, env=env, cwd=cwd)


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"s": {"command": "npx", "args": ["-y", "pkg"]}}}',
        '\n// mine\n{"servers": {"s": {"command": "npx", "args": ["-y", "pkg",],},}}',
        '{"context_servers": {"s": {"source": "custom", "command": "npx", "args": ["-y", "pkg"]}}}',
        '{"context_servers": {"s": {"command": {"path": "npx", "args": ["-y", "pkg"]}}}}',
        '/* mine */ {"s": {"command": "npx", "args": ["-y", "pkg"]}}',
        '{"mcpServers": {"s": {"command": ["npx", "-y", "pkg"]}}}',
        '{"mcpServers": {"s": {"type": "local", "command": "npx", "args": ["-y", "pkg"]}}}',
        json.dumps(DEEP),
        json.dumps({"folders": [], "settings": DEEP}),
        codex("command = 'npx'\nargs = ['-y', 'pkg']"),
        "mcp_servers.s = { command = 'npx', args = ['-y', 'pkg'] }",
    ],
)
def test_every_client_s_file_is_known_by_its_shape(text: str) -> None:
    entry = only_one(text)
    assert (entry.name, entry.found.transport) == ("s", stdio("npx", "-y", "pkg"))


@pytest.mark.parametrize(
    ("table", "transport"),
    [
        ({"command": "x", "env": {"A": "${TOKEN}", "N": 1, "B": True, "Z": None}},
         stdio("x", A="t0k-hush", N="1", B="true")),
        ({"command": "~/bin/x", "args": ["~/a", 8080, 1.5]},
         stdio("/people/ada/bin/x", "~/a", "8080", "1.5")),
        ({"command": {"path": "x", "args": ["a"], "env": {"A": "1"}}}, stdio("x", "a", A="1")),
        ({"command": "hugo", "args": ["serve"]}, stdio("hugo", "serve")),
        ({"command": "thoughtgate", "args": ["version"]}, stdio("thoughtgate", "version")),
        ({"command": "./x", "cwd": "sub"}, stdio("./x", cwd=f"{WORK}/sub")),
        ({"command": "x", "cwd": "${workspaceFolder}/a"}, stdio("x", cwd=f"{WORK}/a")),
        ({"command": "x", "cwd": "~/a"}, stdio("x", cwd="/people/ada/a")),
        ({"command": "/Applications/My App/x"}, stdio("/Applications/My App/x")),
        ({"command": "x", "envFile": "${workspaceFolder}/.env", "env": {"MORE": "own"}},
         stdio("x", TOKEN="from-file", MORE="own")),
        ({"command": "x", "args": ["--at=${REGION:-us}", "$HOME"]}, stdio("x", "--at=eu", "$HOME")),
        ({"url": "https://h/mcp"}, HttpTransport(url="https://h/mcp")),
        ({"serverUrl": "https://h/mcp"}, HttpTransport(url="https://h/mcp")),
        ({"httpUrl": "https://h/sse"}, HttpTransport(url="https://h/sse")),
        ({"type": "http", "url": "https://h/sse"}, HttpTransport(url="https://h/sse")),
        ({"type": "streamable-http", "url": "https://h"}, HttpTransport(url="https://h")),
        ({"type": "streamableHttp", "url": "https://h"}, HttpTransport(url="https://h")),
        ({"transport": "sse", "url": "https://h/x"}, HttpTransport(url="https://h/x", sse=True)),
        ({"type": "SSE", "url": "https://h/x"}, HttpTransport(url="https://h/x", sse=True)),
        ({"url": "https://h/v1/sse/?k=v"}, HttpTransport(url="https://h/v1/sse/?k=v", sse=True)),
        ({"url": "https://${REGION}.h/?k=${env:TOKEN}", "headers": {"X-A": "Bearer ${TOKEN}"}},
         HttpTransport(url="https://eu.h/?k=t0k-hush", headers={"X-A": "Bearer t0k-hush"})),
    ],
)  # fmt: skip
def test_a_server_is_taken_as_its_client_means_it(table: object, transport: object) -> None:
    assert only_one(claude(table)).found.transport == transport


def test_a_codex_file_keeps_secrets_in_variables_and_times_in_seconds() -> None:
    text = codex(
        "url = 'https://h/mcp'\nbearer_token_env_var = 'TOKEN'\nhttp_headers = {X-A = 'a'}\n"
        "env_http_headers = {X-B = 'REGION'}\nstartup_timeout_sec = 20\ntool_timeout_sec = 0.5"
    )
    found = only_one(text, file=CODEX).found
    headers = {"X-A": "a", "X-B": "eu", "Authorization": "Bearer t0k-hush"}
    assert found.transport == HttpTransport(url="https://h/mcp", headers=headers)
    assert (found.start_timeout, found.call_timeout, found.enabled) == (20, 0.5, None)


def test_a_codex_file_hands_variables_on_that_are_set() -> None:
    text = codex(
        "command = 'x'\nenv = {A = '1'}\nenv_vars = ['TOKEN', 'NONE', {name = 'REGION'}]\n"
        "startup_timeout_ms = 1500"
    )
    found = read(text, file=CODEX)
    assert found.entries[0].found.transport == stdio(
        "x", cwd="/people/ada", TOKEN="t0k-hush", REGION="eu", A="1"
    )
    assert found.entries[0].found.start_timeout == 1.5
    assert [str(note) for note in found.notes] == [
        "s: mcp_servers.s.env_vars[1]: the variable NONE is not set; left out"
    ]


def test_a_codex_file_hands_on_only_what_it_names() -> None:
    found = problems(codex("command = 'x'\nenv_vars = ['TOKEN', 1, {}]"), file=CODEX)
    assert found == [
        f"s: mcp_servers.s.env_vars[{at}]: must be the name of a variable" for at in (1, 2)
    ]


@pytest.mark.parametrize(
    ("table", "enabled"),
    [
        ({}, None),
        ({"enabled": True}, True),
        ({"enabled": False}, False),
        ({"disabled": True}, False),
        ({"disabled": False}, True),
        ({"disabled": False, "enabled": True}, True),
    ],
)
def test_a_server_may_be_switched_off_in_two_ways(
    table: dict[str, Any], enabled: bool | None
) -> None:
    assert only_one(claude({**NPX, **table})).found.enabled is enabled


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("npx", [": must be a table"]),
        ({}, [": neither a command nor a URL"]),
        ({"source": "extension"}, [": an extension of the editor holds"]),
        ({"settings": {"a": 1}}, [": an extension of the editor holds"]),
        ({"command": "x", "url": "https://h"}, ["/url: both a command and a URL"]),
        ({"url": "https://h", "serverUrl": "https://h"}, ["/serverUrl: given as url too"]),
        ({"type": "ws", "url": "https://h"}, ["/type: not a transport that is spoken here"]),
        ({"type": "stdio", "url": "https://h"}, ["/type: stdio needs a command"]),
        ({"type": "http", "command": "x"}, ["/type: http needs a URL"]),
        ({"type": 1, "command": "x"}, ["/type: must be text"]),
        ({"command": 1}, ["/command: must be text"]),
        ({"command": ""}, ["/command: empty"]),
        ({"command": []}, ["/command: empty"]),
        ({"command": "npx -y pkg"}, ["/command: a whole command line"]),
        ({"command": "x", "args": "-y pkg"}, ["/args: must be a list of texts"]),
        ({"command": "x", "args": ["a", ["b"], {}]},
         ["/args/1: must be text", "/args/2: must be text"]),
        ({"command": "x", "args": ["a\0b"]}, ["/args/0: holds a character"]),
        ({"command": "x", "args": ["\ud800"]}, ["/args/0: holds a character"]),
        ({"command": "x", "env": ["A=1"]}, ["/env: must be a table"]),
        ({"command": "x", "env": {"A": {}}}, ["/env/A: must be text"]),
        ({"command": "x", "env": {"A=B": "1"}}, ["/env/A=B: not a name"]),
        ({"command": "x", "env": {"A": "${NONE}"}}, ["/env/A: the variable NONE is not set"]),
        ({"command": "${NONE}", "args": ["${ALSO}"], "cwd": "${file}"},
         ["/command: the variable NONE", "/args/0: the variable ALSO", "/cwd: ${file} is known"]),
        ({"command": "x", "envFile": "none"}, ["/envFile: there is no such file"]),
        ({"command": "x", "envFile": "bad.env"}, ["/envFile: line 1 is not NAME=value"]),
        ({"url": "ftp://h"}, ["/url: must begin with http://"]),
        ({"url": "unix:///s.sock"}, ["/url: must begin with http://"]),
        ({"url": "https://h /"}, ["/url: must begin with http://"]),
        ({"url": "http://[::1"}, ["/url: must begin with http://"]),
        ({"url": "https://h", "headers": {"X A": "1"}}, ["/headers/X A: not a name"]),
        ({"url": "https://h", "headers": {"A": "1\r\nB: 2"}}, ["/headers/A: holds a line end"]),
        ({"url": "https://h", "headers": {"A": "1", "a": "2"}}, ["/headers/a: a second header"]),
        ({**NPX, "enabled": "yes"}, ["/enabled: must be true or false"]),
        ({**NPX, "enabled": True, "disabled": True}, ["/disabled: contradicts enabled"]),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named_by_server_and_key(table: object, said: list[str]) -> None:
    found = problems(claude(table))
    assert len(found) == len(said)
    for problem, part in zip(found, said, strict=True):
        assert problem.startswith(f"s: /mcpServers/s{part}"), problem
        assert "t0k" not in problem


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("bearer_token_env_var = 'NONE'", "bearer_token_env_var: the variable NONE is not set"),
        ("env_http_headers = {X-A = 'NONE'}", "env_http_headers.X-A: the variable NONE is not"),
        ("env_http_headers = {X-A = 1}", "env_http_headers.X-A: must be the name of a variable"),
        ("tool_timeout_sec = 'x'", "tool_timeout_sec: must be a number"),
        ("tool_timeout_sec = 0", "tool_timeout_sec: must be between 0.1 and 86400 seconds"),
        ("startup_timeout_ms = 1e12", "startup_timeout_ms: must be between 0.1 and 86400 seconds"),
        ("http_headers = {A = 1979-05-27}", "http_headers.A: must be text"),
        ("http_headers = {'a b.c' = 'x'}", 'http_headers."a b.c": not a name that a header'),
    ],
)
def test_a_problem_in_toml_is_named_by_its_key(lines: str, said: str) -> None:
    (problem,) = problems(codex(f"url = 'https://h'\n{lines}"), file=CODEX)
    assert problem.startswith(f"s: mcp_servers.s.{said}")


def test_all_problems_of_all_servers_are_told_at_once() -> None:
    text = json.dumps({
        "mcpServers": {
            "a": {"command": "x", "env": {"A": "${ONE}", "B": "${TWO}"}},
            "b": {},
            "c d": NPX,
            "C/D": NPX,
            "thoughtgate": NPX,
        }
    })
    assert [problem.split(";")[0] for problem in problems(text)] == [
        "a: /mcpServers/a/env/A: the variable ONE is not set",
        "a: /mcpServers/a/env/B: the variable TWO is not set",
        "b: /mcpServers/b: neither a command nor a URL",
        "C/D: /mcpServers/C~1D: becomes c-d, as c d does",
        "thoughtgate: /mcpServers/thoughtgate: the name thoughtgate is the gateway's own",
    ]


def test_a_key_that_is_given_twice_is_a_problem_where_it_matters() -> None:
    text = (
        '{"theme": 1, "theme": 2, "mcpServers": {"a": {"command": "x"}, "b": {"command": "x", '
        '"command": "y", "env": {"A": "1", "A": "2"}}, "a": {"command": "y"}}}'
    )
    told = "given more than once; keep one of them"
    assert problems(text) == [
        f"a: /mcpServers/a: {told}",
        f"b: /mcpServers/b/command: {told}",
        f"b: /mcpServers/b/env/A: {told}",
    ]
    with pytest.raises(ConfigError) as caught:
        read('{"mcpServers": {}, "mcpServers": {"a": {"command": "x"}}}')
    assert caught.value.message == f"mcpServers is {told}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "line 1, column 2: not valid JSON: "),
        ("[]", "not valid TOML"),
        ('{"a": 1}', "holds no servers; expected mcpServers, servers, context_servers or"),
        ('{"mcpServers": []}', "holds no servers"),
        ("a = 1", "holds no servers"),
        ('{"mcpServers": {}, "servers": {}}', "at mcpServers and servers; choose with --format"),
    ],
)
def test_a_file_that_holds_no_servers_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert said in caught.value.message


def test_the_format_chooses_among_several_lists() -> None:
    both = json.dumps({"mcpServers": {"a": NPX}, "servers": {"b": NPX}})
    assert only_one(both, format_name="cursor").name == "a"
    assert only_one(both, format_name="vscode").name == "b"
    with pytest.raises(ConfigError) as caught:
        read(both, format_name="zed")
    assert caught.value.message == "the file holds no servers; expected context_servers"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"disabledTools": ["x"]}, "disabledTools: which tools may be used is not imported"),
        ({"autoApprove": ["x"]}, "autoApprove: what may run without asking is not imported"),
        ({"oauth": {"clientId": "x"}}, "oauth: a login is not imported"),
        ({"sandboxEnabled": True}, "sandboxEnabled: the server runs without that sandbox"),
        ({"timeout": 60}, "timeout: seconds to some clients, milliseconds to others"),
        ({"headers": {"A": "1"}}, "headers: has no use for a command; left out"),
        ({"enviroment": {}}, "enviroment: unknown key; left out"),
        ({"arg": []}, "arg: unknown key; left out; did you mean args?"),
        ({"args": ["--api-key", "hush"]}, "args: may hold a secret"),
        ({"args": ["x", "postgresql://u:hush@h/db"]}, "args: may hold a secret"),
        ({"args": ["--header", "Authorization: Bearer hush-123456"]}, "args: may hold a secret"),
    ],
)
def test_what_is_left_out_and_may_matter_is_told(more: dict[str, object], said: str) -> None:
    found = read(claude({**NPX, **more}))
    assert found.problems == ()
    (note,) = map(str, found.notes)
    assert note.startswith(f"s: /mcpServers/s/{said}")
    assert "hush" not in note


def test_what_does_not_matter_is_not_told() -> None:
    table = {**NPX, "description": "x", "gallery": True, "version": "1", "dev": {}, "type": "stdio"}
    assert read(claude(table)).notes == ()


def test_the_older_transport_is_told_when_it_was_seen_by_the_url_alone() -> None:
    (note,) = read(claude({"url": "https://h/sse"})).notes
    assert "older HTTP+SSE transport" in note.text
    assert read(claude({"type": "sse", "url": "https://h/sse"})).notes == ()


def test_a_name_of_another_alphabet_is_turned_into_ours_and_told() -> None:
    found = read(claude(NPX, "My Server_2"))
    assert [(entry.name, entry.was) for entry in found.entries] == [("my-server-2", "My Server_2")]
    assert [str(note) for note in found.notes] == [
        "My Server_2: /mcpServers/My Server_2: is called my-server-2 here"
    ]


def test_servers_of_single_projects_are_told_and_left_alone() -> None:
    text = {"mcpServers": {"s": NPX}, "projects": {"/w/x": {"mcpServers": {"t": NPX}}, "/w/y": {}}}
    found = read(json.dumps(text))
    assert [entry.name for entry in found.entries] == ["s"]
    assert [str(note) for note in found.notes] == [
        "/projects/~1w~1x/mcpServers: servers of this project only; not imported"
    ]


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("gate", {"command": "/opt/x/bin/thoughtgate", "args": ["serve", "--stdio"]}),
        ("gate", {"command": "python3.12", "args": ["-m", "thoughtgate", "serve", "--stdio"]}),
        ("gate", {"command": "uvx", "args": ["thoughtgate", "serve", "--stdio"]}),
        ("gate", {"command": "uv", "args": ["run", "thoughtgate", "serve", "--stdio"]}),
        ("gate", {"command": "thoughtgate.exe", "args": ["serve", "--stdio"]}),
        ("thoughtgate", {"type": "http", "url": "http://127.0.0.1:8765/mcp"}),
        ("thoughtgate", {"type": "http", "url": "http://127.0.0.2:8765/mcp"}),
        ("Thoughtgate", {"url": "http://localhost:8765/mcp/notes"}),
    ],
)
def test_the_gateway_is_not_put_behind_itself(name: str, table: object) -> None:
    found = read(json.dumps({"mcpServers": {name: table, "s": NPX}}))
    assert found.problems == ()
    assert [entry.name for entry in found.entries] == ["s"]
    assert [str(note) for note in found.notes] == [f"{name}: is this gateway itself; not imported"]


def test_only_named_servers_are_read_and_the_others_may_be_wrong() -> None:
    text = json.dumps({"mcpServers": {"A b": NPX, "c": {}, "d": NPX}})
    assert [entry.name for entry in read(text, "A b", "d").entries] == ["a-b", "d"]
    assert [entry.name for entry in read(text, "a-b").entries] == ["a-b"]
    assert problems(text, "d", "e") == ["e: not in the file; its servers are A b, c, d"]


INPUTS = [
    {"type": "promptString", "id": "key", "description": "Your key", "password": True},
    {"type": "pickString", "id": "at", "options": ["eu", {"label": "US", "value": "us"}],
     "default": "eu"},
    {"type": "command", "id": "run", "command": "x.pick"},
    {"type": "promptString", "id": "unused"},
]  # fmt: skip


def asked(table: object) -> str:
    return json.dumps({"inputs": INPUTS, "servers": {"s": table}})


def test_inputs_are_asked_for_once_and_only_when_used() -> None:
    text = asked({
        "command": "x",
        "args": ["${input:key}"],
        "env": {"K": "${input:key}${input:at}"},
    })
    found = read(text, asking=True)
    assert found.problems == ()
    assert [(one.id, one.description, one.hidden, one.options) for one in found.wanted] == [
        ("key", "Your key", True, ()),
        ("at", "at", False, ("eu", "us")),
    ]
    again = read(text, asking=True, inputs={"key": "k", "at": "us"})
    assert again.wanted == ()
    assert again.entries[0].found.transport == stdio("x", "k", K="kus")


def test_a_value_that_will_be_asked_for_is_not_judged_before() -> None:
    assert read(asked({"url": "${input:key}"}), asking=True).problems == ()
    assert read(asked({"command": "${input:key}"}), asking=True).problems == ()
    (problem,) = read(asked({"url": "${input:key}"}), asking=True, inputs={"key": "x"}).problems
    assert problem.key == "/servers/s/url"


def test_without_anybody_to_ask_a_default_is_the_answer_and_the_rest_are_problems() -> None:
    assert problems(asked({"command": "x", "args": ["${input:at}", "${input:key}"]})) == [
        "s: /servers/s/args/1: the input key has no value; give it with --input key=VALUE"
    ]


def test_an_input_that_a_command_of_the_editor_answers_must_be_given() -> None:
    text = asked({"command": "x", "args": ["${input:run}"]})
    (problem,) = read(text, asking=True).problems
    assert problem.text == "the input run has no value; give it with --input run=VALUE"
    assert read(text, asking=True, inputs={"run": "r"}).problems == ()


def test_inputs_without_an_id_of_their_own_are_problems() -> None:
    text = json.dumps({"inputs": [{"id": "a"}, {}, 5, {"id": "a"}], "servers": {"s": NPX}})
    assert problems(text) == [
        "/inputs/1: has no id",
        "/inputs/2: has no id",
        "/inputs/3: given more than once; keep one of them",
    ]
