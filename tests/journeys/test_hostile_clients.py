"""A real gateway and clients that mean it no good: nothing they send or drop may harm others."""

import subprocess
from pathlib import Path

import pytest

from tests.support.attacker import alive, hung_up, stateless
from tests.support.gate import START, Home, command, gate, home, server_table

LISTEN = stateless("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, {})
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
LIST = stateless("tools/list", {}, {})


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return home(tmp_path)


def test_clients_that_hang_up_end_nothing_but_their_own_request(place: Home) -> None:
    with gate(place) as gateway:
        url = gateway.url()
        for _ in range(300):
            hung_up(url, LISTEN)
            hung_up(url, LIST)
        assert alive(url)
        assert gateway.stop() == 0


def test_a_stdio_client_that_takes_no_answer_ends_the_talk_quietly(place: Home) -> None:
    with subprocess.Popen(
        command("serve", "--stdio"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=place.environment,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(PING * 500)
        process.stdin.flush()
        assert process.stderr.read() == b""
        assert process.wait(START) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("domain", "set", "work"), b""),
        (("version",), b"thoughtgate"),
        (("serve", "--stdio"), b"{"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_done_does_not_depend_on_who_reads_the_messages(
    tmp_path: Path, arguments: tuple[str, ...], said: bytes
) -> None:
    place = home(tmp_path, server_table("gone", "/no/such/program"))
    with subprocess.Popen(
        command(*arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=place.environment,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stderr.close()
        process.stdin.write(PING)
        process.stdin.close()
        assert process.stdout.read().startswith(said)
        assert process.wait(START) == 0
