"""The configuration file: what is taken, what is refused, and how it is said."""

from pathlib import Path

import pytest

from thoughtgate.config.files import load, parse, survey
from thoughtgate.config.settings import json_schema
from thoughtgate.config.values import domains_of, effects_of, servers_of
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import HttpTransport, StdioTransport
from thoughtgate.core.tools import Effect


def refusal(text: str, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(text, "gate.toml", environ)
    return caught.value.message


def test_servers_and_domains_become_core_values() -> None:
    settings = parse(
        """
        [servers.logs]
        command = ["thoughtgate-logs", "--root", "/var/log"]
        tags = ["ops"]
        [servers.logs.tools.read_log]
        effect = "read"
        [servers.web]
        url = "https://tools.example/mcp"
        headers = { Authorization = "Bearer ${TOKEN}" }
        [domains.ops]
        include = ["tag:ops"]
        [domains.ops.tools."logs/read_log"]
        rename = "read"
        fixed = { max_lines = 10 }
        """,
        "gate.toml",
        {"TOKEN": "secret"},
    )
    logs, web = servers_of(settings)
    assert isinstance(logs.transport, StdioTransport)
    assert logs.transport.argv == ("thoughtgate-logs", "--root", "/var/log")
    assert logs.source == "config"
    assert isinstance(web.transport, HttpTransport)
    assert web.transport.headers == {"Authorization": "Bearer secret"}
    assert effects_of(settings)["logs"] == {"read_log": Effect.READ}
    (ops,) = domains_of(settings)
    assert ops.dress["logs/read_log"].rename == "read"
    assert ops.dress["logs/read_log"].fixed == {"max_lines": 10}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[gateway]\nprot = 1", "prot"),
        ("[gateway]\nport = 70000", "gateway.port"),
        ("[servers.x]\nurl = 'http://h/'\ncommand = ['c']", "servers.x"),
        ("[servers.x]", "servers.x"),
        ("[servers.x]\nurl = 'ftp://h'", "servers.x.url"),
        ("[servers.'A b']\nurl = 'http://h/'", "servers"),
        ("[gateway]\nhost = '0.0.0.0'", "gateway.host"),
        ("default_model = 'm'", "default_model"),
        ("[gateway", "not valid TOML"),
    ],
)
def test_a_wrong_entry_is_named(text: str, named: str) -> None:
    message = refusal(text)
    assert "gate.toml" in message
    assert named in message


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_part_of_the_configuration(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "gate.toml"
    file.write_text("[gateway]\nport = 9000\n", encoding=encoding)
    assert load(file, {}).settings.gateway.port == 9000


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"# one\n[gateway]\nhost = '\xff'", "line 3, column 9: not UTF-8"),
        (b"[gateway]\r\nport = ", "line 2, column 8: not valid TOML"),
        (b"x = " + b"[" * 5_000, "nested too deeply"),
        (b"x" + b".x" * 5_000 + b" = 1", "nested too deeply"),
        (b"[" + b"x." * 200 + b"x]", "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(data: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "gate.toml"
    file.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        load(file, {})
    assert said in caught.value.message


def test_a_file_without_end_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        load(Path("/dev/zero"), {})
    assert "larger than 4 MiB" in caught.value.message


def test_an_unset_variable_names_file_key_and_variable() -> None:
    message = refusal("[servers.x]\ncommand = ['c']\nenv = { K = '${env:MISSING}' }")
    assert "gate.toml: servers.x.env.K: the variable MISSING is not set" in message


MANY = """
default_model = "gone"
[gateway]
prot = 1
port = "high"
host = "0.0.0.0"
[servers.both]
command = ["c"]
url = "http://h/"
[servers.needy]
command = ["${A}", "${B}", "${A}"]
[servers.good]
command = ["c", 3]
url = "http://h/"
[servers."A b"]
[models.bare]
url = "http://h/"
[models.sealed]
url = "http://h/"
model = "m"
api_key = "${C}"
[domains.odd.tools."a/b".fixed]
n = nan
"""


def test_every_fault_is_told_at_once() -> None:
    said = refusal(MANY).split("\n")
    assert [line.removeprefix("gate.toml: ").partition(": ")[0] for line in said] == [
        "gateway.prot", "gateway.port", "servers.good.command[1]", "servers", "models.bare",
        "servers.needy.command", "servers.needy.command", "models.sealed.api_key",
        "gateway.host", "servers.both", "domains.odd.tools.a/b.fixed", "default_model",
    ]  # fmt: skip


def test_what_is_wrong_is_left_out_and_the_rest_can_be_used(tmp_path: Path) -> None:
    file = tmp_path / "gate.toml"
    file.write_text(MANY, encoding="utf-8")
    surveyed = survey(file, {})
    assert set(surveyed.loaded.settings.servers) == {"good"}
    assert surveyed.loaded.settings.gateway.host == "127.0.0.1"
    assert {fault.variable for fault in surveyed.faults} == {"", "A", "B", "C"}


def test_a_default_model_that_lacks_a_variable_is_told_once() -> None:
    text = "default_model = 'm'\n[models.m]\nurl = 'http://h/'\nmodel = 'm'\napi_key = '${K}'"
    assert refusal(text).count("gate.toml") == 1


def test_a_default_stands_in_for_an_unset_variable() -> None:
    settings = parse("[servers.x]\ncommand = ['${BIN:-cat}']", "gate.toml", {})
    assert settings.servers["x"].command == ("cat",)


def test_a_missing_file_is_an_error_but_no_file_is_the_defaults(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        load(tmp_path / "none.toml", {})
    environ = {"THOUGHTGATE_HOME": str(tmp_path)}
    loaded = load(None, environ)
    assert loaded.home == tmp_path


def test_the_environment_names_a_file_and_an_argument_wins(tmp_path: Path) -> None:
    named, given = tmp_path / "a.toml", tmp_path / "b.toml"
    named.write_text("[gateway]\nport = 1111", encoding="utf-8")
    given.write_text("[gateway]\nport = 2222", encoding="utf-8")
    environ = {"THOUGHTGATE_CONFIG": str(named)}
    assert load(None, environ).settings.gateway.port == 1111
    assert load(given, environ).settings.gateway.port == 2222


def test_the_json_schema_describes_every_table() -> None:
    text = str(json_schema())
    for table in ("gateway", "limits", "servers", "domains", "models"):
        assert f"'{table}'" in text
