"""`thoughtgate model`: what is registered, what a test says, and where a key never stands."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from thoughtgate.app.model_probe import probed, probing
from thoughtgate.cli.root import cli
from thoughtgate.config.settings import ModelSettings
from thoughtgate.core.errors import GateError, ModelError
from thoughtgate.core.json import JsonObject
from thoughtgate.testing.openai_server import OpenAIServer, Trouble

KEY = "sk-canary-4711"
Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("THOUGHTGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MODEL_KEY", KEY)
    config = tmp_path / "gate.toml"
    config.write_text('[models.filed]\nurl = "http://127.0.0.1:9/v1"\nmodel = "f"\n')

    def run(*words: str, stdin: str = "") -> Result:
        given = ["--config", str(config), "model", *words]
        return CliRunner().invoke(cli, given, input=stdin)

    return run


def add(
    run: Run, name: str, *more: str, url: str = "http://127.0.0.1:9/v1", **given: str
) -> Result:
    return run("add", name, "--url", url, "--model", "m", *more, **given)


def rows(run: Run) -> dict[str, JsonObject]:
    return {row["name"]: row for row in json.loads(run("list", "--json").output)}


def test_models_of_both_places_are_listed_and_keys_stand_nowhere(run: Run, tmp_path: Path) -> None:
    add(run, "big", "--key-env", "MODEL_KEY", "--price", "input=3", "--price", "output=15")
    add(run, "piped", "--key-file", "-", stdin=f"{KEY}\n")
    listed = rows(run)
    assert {name: (row["source"], row["key"]) for name, row in listed.items()} == {
        "big": ("registry", True),
        "filed": ("config", False),
        "piped": ("registry", True),
    }
    assert listed["big"]["prices"] == {"input": 3, "output": 15}
    assert KEY not in run("list").output + run("list", "--json").output
    for file in (tmp_path / "home").iterdir():
        assert KEY.encode() not in file.read_bytes()


def test_changes_are_told_as_json_where_that_is_wished(run: Run) -> None:
    added = json.loads(add(run, "one", "--json").output)
    assert added == {"model": "one", "registered": True}
    assert json.loads(run("rm", "one", "--json").output) == {"model": "one", "removed": True}


def test_one_model_is_the_default_one_at_a_time(run: Run) -> None:
    add(run, "one", "--default")
    add(run, "two", "--default")
    assert [name for name, row in rows(run).items() if row["default"]] == ["two"]


@pytest.mark.parametrize(
    "words",
    [
        ("add", "filed", "--url", "http://h/v1", "--model", "m"),
        ("add", "there", "--url", "http://h/v1", "--model", "m"),
        ("add", "new", "--url", "ftp://h/v1", "--model", "m"),
        ("add", "new", "--url", "http://u:p@h/v1", "--model", "m"),
        ("add", "new", "--url", "http://h/v1?key=x", "--model", "m"),
        ("add", "new", "--url", "http://h/v1", "--model", ""),
        ("add", "new", "--url", "http://h/v1", "--model", "m", "--price", "input=nan"),
        ("add", "new", "--url", "http://h/v1", "--model", "m", "--price", "inpt=1"),
        ("add", "new", "--url", "http://h/v1", "--model", "m", "--key-env", "NO_SUCH_KEY"),
        ("add", "new", "--url", "http://h/v1", "--model", "m", "--key-file", "/no/such"),
        ("add", "New", "--url", "http://h/v1", "--model", "m"),
        ("rm", "filed"),
        ("rm", "nobody"),
        ("test", "nobody"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(run: Run, words: tuple[str, ...]) -> None:
    add(run, "there")
    before = rows(run)
    done = run(*words)
    assert done.exit_code != 0
    assert isinstance(done.exception, GateError | SystemExit)
    assert rows(run) == before


def test_a_model_is_replaced_when_that_is_wished_and_removed(run: Run) -> None:
    add(run, "one", "--key-env", "MODEL_KEY")
    assert add(run, "one", "--replace").exit_code == 0
    assert rows(run)["one"]["key"] is False
    assert run("rm", "one").exit_code == 0
    assert rows(run).keys() == {"filed"}


async def test_a_registered_model_is_asked_with_its_key_and_the_cost_is_told(run: Run) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    async with OpenAIServer(lambda _: "ready", usage=usage) as server:
        prices = ("--price", "input=1", "--price", "output=5")
        add(run, "local", "--key-env", "MODEL_KEY", *prices, url=server.url)
        done = await asyncio.to_thread(run, "test", "local", "--json")
        told = json.loads(done.output)
        assert (told["ok"], told["text"], told["cost_micros"]) == (True, "ready", 20)
        assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"
        server.troubles = [Trouble(status=401)]
        refused = await asyncio.to_thread(run, "test", "local")
    assert refused.exit_code == 1
    assert "refused the request: 401" in refused.output
    assert KEY not in refused.output + done.output


@pytest.mark.parametrize("able", [True, False])
async def test_what_a_model_can_do_is_found_out_by_trying(able: bool) -> None:
    call = {"id": "c", "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'}}

    def compute(request: JsonObject) -> str | JsonObject:
        if able and "tools" in request:
            return {"content": None, "tool_calls": [call]}
        return '{"ready": true}' if able and "response_format" in request else "ready"

    async with OpenAIServer(compute) as server, probing() as client:
        given = ModelSettings(url=server.url, model="m")
        told = await probed(given, client, features=True)
        assert told["features"] == {"tools": able, "response_schema": able, "stream": True}
        assert (told["input_tokens"], told["cost_micros"]) == (None, None)
        server.troubles = [Trouble(status=503)]
        with pytest.raises(ModelError):
            await probed(given, client, features=False)
    assert len(server.seen) == 5, "one question without features, and none over again"
