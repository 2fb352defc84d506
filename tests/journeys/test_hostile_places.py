"""A gateway started in a place that lacks what it takes for granted."""

import subprocess
from pathlib import Path

import pytest

from tests.support.gate import START, command, home

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("arguments", [("server", "list"), ("serve", "--stdio")], ids=" ".join)
def test_a_standard_stream_that_is_closed_is_nobodys(
    tmp_path: Path, closed: tuple[int, ...], arguments: tuple[str, ...]
) -> None:
    place = home(tmp_path)
    words = command(*arguments)
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {" ".join(f"{number}>&-" for number in closed)}', "sh", *words],
        input=PING,
        capture_output=True,
        env=place.environment,
        timeout=START,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert bool(done.stdout) is (1 not in closed and (0 not in closed or "list" in arguments))
