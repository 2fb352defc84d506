"""The port of the gRPC face: resolved once, ours alone, shared by our own processes."""

import socket
from contextlib import closing
from pathlib import Path

import pytest

from thoughtgate.app.grpc_port import grpc_address, grpc_reserved, grpc_target
from thoughtgate.config.files import Loaded, parse
from thoughtgate.core.errors import ConfigError


def loaded(text: str = "") -> Loaded:
    return Loaded(settings=parse(f"[gateway]\n{text}", "test", {}), file=None, home=Path())


def sharing(port: int) -> socket.socket:
    """Listen as a worker does."""
    worker = socket.socket()
    worker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    worker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    worker.bind(("127.0.0.1", port))
    worker.listen()
    return worker


def test_it_is_off_unless_it_is_set() -> None:
    with grpc_reserved(loaded()) as settled:
        assert settled.settings.gateway.grpc_port is None
        assert (grpc_target(settled), grpc_address(settled)) == ("", "")


def test_port_0_becomes_a_real_one_for_all_processes() -> None:
    with grpc_reserved(loaded("grpc_port = 0")) as settled:
        port = settled.settings.gateway.grpc_port
        assert port
        assert grpc_address(settled) == f"grpc://127.0.0.1:{port}"
        with closing(sharing(port)), closing(sharing(port)):
            pass


@pytest.mark.parametrize("listening", [False, True])
def test_nobody_else_can_have_it_from_the_first_moment_on(*, listening: bool) -> None:
    with grpc_reserved(loaded("grpc_port = 0")) as settled:
        port = settled.settings.gateway.grpc_port or 0
        with (
            closing(sharing(port) if listening else socket.socket()),
            pytest.raises(ConfigError, match="already in use; choose another --grpc-port"),
        ):
            grpc_reserved(loaded(f"grpc_port = {port}")).__enter__()
    with grpc_reserved(loaded(f"grpc_port = {port}")):
        pass


def test_a_port_for_both_is_refused_by_both_names() -> None:
    with pytest.raises(ConfigError, match="port and grpc_port are both 8765; choose another"):
        grpc_reserved(loaded("grpc_port = 8765")).__enter__()
    with grpc_reserved(loaded("port = 0\ngrpc_port = 0")):
        pass


def test_nobody_connects_to_what_is_only_reserved() -> None:
    with (
        grpc_reserved(loaded("grpc_port = 0")) as settled,
        pytest.raises(ConnectionRefusedError),
    ):
        socket.create_connection(("127.0.0.1", settled.settings.gateway.grpc_port or 0))


@pytest.mark.parametrize(
    ("host", "target"),
    [("localhost", "127.0.0.1:"), ("127.0.0.2", "127.0.0.2:"), ("::1", "[::1]:")],
)
def test_the_address_is_one_and_not_all_of_a_name(host: str, target: str) -> None:
    if host == "::1" and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with grpc_reserved(loaded(f'host = "{host}"\ngrpc_port = 0')) as settled:
        assert grpc_target(settled).startswith(target)
