"""`thoughtgate grpc describe`: what it shows of a server or a file, or why it shows nothing."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.support import native_peer
from tests.support.gate import Home, home
from tests.support.grpc_orders import LEDGER, ORDERS, Shop, files_of, orders_set, serving
from tests.support.grpc_reflector import Reflector

TARGET = "grpc://127.0.0.1:50051"


@pytest.fixture
def place(tmp_path: Path) -> Home:
    (tmp_path / "set.binpb").write_bytes(orders_set(comments=True))
    return home(tmp_path)


def described(place: Home, *options: str) -> str:
    file = str(place.folder / "set.binpb")
    result = place.invoke("grpc", "describe", TARGET, "--descriptor-set", file, *options)
    assert result.exit_code == 0, result.output
    return result.output


def refused(place: Home, *arguments: str) -> tuple[int, str]:
    result = place.invoke("grpc", "describe", *arguments)
    return result.exit_code, result.output


async def asked(place: Home, port: int, *options: str) -> tuple[int, str]:
    target = f"grpc://127.0.0.1:{port}"
    ran = await asyncio.to_thread(place.run, "grpc", "describe", target, *options)
    return ran.returncode, ran.stdout + ran.stderr


def test_the_methods_are_shown_with_their_kinds_and_tools(place: Home) -> None:
    shown = described(place)
    rows = {tuple(line.split()[:2]): line for line in shown.splitlines()}
    assert "shop-v1-Orders-GetOrder" in rows["GetOrder", "unary"]
    assert "reads only" in rows["GetOrder", "unary"]
    assert "needs --bidi" in rows["PriceOrders", "both"]
    assert ("WatchOrder", "server") in rows
    assert ("SumOrders", "client") in rows


def test_the_command_that_adds_it_is_shown(place: Home) -> None:
    shown = described(place, "--service", ORDERS, "--header", "x-key: secret")
    [line] = [line for line in shown.splitlines() if "server add" in line]
    file = place.folder / "set.binpb"
    assert line.split() == [
        *f"thoughtgate server add NAME {TARGET} --reflect {ORDERS}".split(),
        *f"--descriptor-set {file} --header x-key=…".split(),
    ]
    assert LEDGER not in shown


def test_a_tool_is_shown_whole_with_its_comments(place: Home) -> None:
    tool = json.loads(described(place, "--method", f"{ORDERS}/GetOrder", "--json"))
    assert tool["name"] == "shop-v1-Orders-GetOrder"
    assert tool["description"].startswith("Returns an order by its number.")
    assert "number" in tool["inputSchema"]["properties"]
    assert tool["name"] in described(place, "--method", f"{ORDERS}/GetOrder")


def test_programs_get_json(place: Home) -> None:
    shown = json.loads(described(place, "--json", "--service", LEDGER))
    [service] = shown["services"]
    [method] = service["methods"]
    assert (service["name"], method["name"], method["kind"]) == (LEDGER, "Close", "unary")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("http://127.0.0.1:1",), 2, "grpc://HOST:PORT"),
        (("grpc://127.0.0.1",), 2, "names no port"),
        ((TARGET, "--header", "junk"), 2, "NAME=VALUE"),
        ((TARGET, "--ca", "none.pem"), 2, "grpcs://"),
        ((TARGET, "--descriptor-set", "none.binpb"), 2, "there is no file"),
        (("grpc://127.0.0.1:9",), 3, "nobody listens"),
    ],
)
def test_what_cannot_be_is_said(
    place: Home, arguments: tuple[str, ...], code: int, said: str
) -> None:
    ended, output = refused(place, *arguments)
    assert ended == code, output
    assert said in output


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--service", "a.B"), f"no service a.B here; it has {LEDGER}, {ORDERS}"),
        (("--method", f"{ORDERS}/Go"), f"service {ORDERS} has no method Go; it has "),
        (("--method", "GetOrder"), "--method is SERVICE/METHOD"),
        (("--method", f"{ORDERS}."), "--method is SERVICE/METHOD"),
    ],
)
def test_a_name_that_is_not_there_is_said_with_those_that_are(
    place: Home, option: tuple[str, str], said: str
) -> None:
    file = str(place.folder / "set.binpb")
    ended, output = refused(place, TARGET, "--descriptor-set", file, *option)
    assert ended == 2, output
    assert said in output


async def test_a_server_is_asked_by_reflection(place: Home) -> None:
    listed = [ORDERS, "grpc.health.v1.Health"]
    told = Reflector(files_of(orders_set()), listed)
    async with serving(Shop().handler(), told.handler()) as port:
        code, output = await asked(place, port)
        secure = await asyncio.to_thread(place.run, "grpc", "describe", f"grpcs://127.0.0.1:{port}")
    assert code == 0, output
    assert "by grpc.reflection.v1" in output
    assert "never tools: grpc.health.v1.Health" in output
    assert LEDGER not in output
    assert secure.returncode == 3
    assert "does not speak TLS" in secure.stderr
    assert "nothing was sent" not in secure.stderr


async def test_a_server_without_reflection_says_what_to_do(place: Home) -> None:
    async with serving(Shop().handler()) as port:
        code, output = await asked(place, port)
    assert code == 3
    assert "give a descriptor set" in output
    assert "outcome" not in output


async def test_a_server_of_the_gateways_own_protocol_needs_no_reflection(place: Home) -> None:
    async with native_peer.serving(native_peer.NativePeer()) as port:
        code, output = await asked(place, port)
    assert code == 0, output
    assert "thoughtgate.tools.v1" in output
    assert "server add NAME" in output
