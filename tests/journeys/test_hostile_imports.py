"""Files of servers that somebody made to do harm: refused in one line and in no time."""

import json
from pathlib import Path

import pytest

from tests.support.gate import home

MANY = 20_000


def server(**more: object) -> str:
    return json.dumps({"mcpServers": {"a": {"command": "true", **more}}})


def twice(times: int) -> str:
    return ",".join(f'"k{number % (times // 2)}":"v"' for number in range(times))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("f.json", server(args=["${A_:-" * MANY + "x" + "}" * MANY]), "inside one another"),
        ("f.json", server(args=["${A_:-" * 300 + "x" + "}" * 300]), "inside one another"),
        ("f.json", server(args=["${BIG}" * 1_000]), "longer than 1048576 characters"),
        ("f.json", server(args=["${file:/x\0y}"]), "no file can have such a name"),
        ("f.json", server(args=["${file:/dev/zero}"]), "larger than 4 MiB"),
        ("f.json", server(startup_timeout_sec=10**400), "between 0.1 and 86400 seconds"),
        ("f.toml", f"[mcp_servers.a]\ncommand='x'\ntool_timeout_sec={10**400}", "86400 seconds"),
        ("f.json", f'{{"mcpServers":{{"a":{{"env":{{{twice(MANY)}}}}}}}}}', "more than once"),
        ("f.json", server() + ' "' + '\\"' * MANY, "not valid JSON"),
        ("f.json", server() + " /*" * MANY, "not valid JSON"),
        ("f.json", server() + " /*/", "not valid JSON"),
        ("f.json", '{"mcpServers":' + "[" * MANY, "nested too deeply"),
        ("f.toml", "a=" + "[" * MANY, "nested too deeply"),
    ],
)
def test_a_file_made_to_do_harm_is_refused_and_nothing_is_imported(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    """Each of them took ten seconds and more, or ended in a traceback."""
    here = home(tmp_path, BIG="x" * 10_000)
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    done = here.invoke("server", "import", file)
    assert done.exit_code == 2, done.exception
    assert said in done.output
    assert here.said("server", "list") == []
