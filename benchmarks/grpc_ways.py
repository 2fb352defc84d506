"""Ways to a tool of a gRPC server: straight, through the gateway, and by a channel for each call.

Never lets the two kinds differ but in the protocol: one process serves both, with equal results.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.clients import STATELESS
from benchmarks.gateway import gateway
from benchmarks.grpc_clients import Asking, ChannelPerCall, KeptChannel, by_method, natively
from benchmarks.grpc_echo import SERVICE, TOOL
from benchmarks.load import Load, Watch
from benchmarks.processes import free_port, process
from benchmarks.report import Bar
from benchmarks.ways import DIRECT, OURS, Found, Way, gateway_cpu, paired, scale

NATIVE, REFLECTED = "grpc native", "grpc reflected"
PER_CALL = "channel per call"
NATIVE_LIMIT, REFLECTED_LIMIT = 0.6, 0.2
"""Milliseconds of CPU a call in the gateway, and how many more where messages become JSON."""

_KINDS: Mapping[str, tuple[Asking, str, Sequence[str]]] = {
    NATIVE: (natively, "native", ()),
    REFLECTED: (by_method, "reflected", (f'reflect = ["{SERVICE}"]',)),
}
"""How each is asked straight, its name in the gateway, and what more the gateway is told."""


def ways(ending: ExitStack, home: Path, receiver: Watch, traces: str) -> list[Way]:
    """Start a server and a gateway before it, and return the ways; the stack ends both."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.grpc_echo", str(port)]
    server = Watch(pid=ending.enter_context(process(command, port)))
    running = ending.enter_context(gateway(home, {}, traces, more=_servers(port)))
    target = f"127.0.0.1:{port}"
    found = []
    for kind, (asking, name, _) in _KINDS.items():
        straight = Load(era="", client=partial(KeptChannel, target, asking), expected=b"hello")
        through = Load(era="", url=running.url(), tools=[f"{name}__{TOOL}"])
        watched = {"gateway": Watch(pid=running.pid, lazy=True), "receiver": receiver}
        found += [
            _way(DIRECT, kind, straight, {"upstream": server}),
            _way(OURS, kind, through, {**watched, "upstream": server}),
        ]
    fresh = Load(era="", client=partial(ChannelPerCall, target, by_method), expected=b"hello")
    return [*found, _way(PER_CALL, REFLECTED, fresh, {"upstream": server}, (400, 1600))]


def _way(
    name: str,
    kind: str,
    load: Load,
    watched: Mapping[str, Watch],
    calls: tuple[int, int] = (800, 3200),
) -> Way:
    return Way(name=name, kind=kind, load=load, watched=watched, calls=calls, eras=[STATELESS])


def _servers(port: int) -> str:
    lines: list[str] = []
    for _, name, more in _KINDS.values():
        place = f'url = "grpc://127.0.0.1:{port}"'
        lines += [f"[servers.{name}]", place, 'results = "strict"', *more]
    return "\n".join(lines)


def bars(measured: Found) -> list[Bar]:
    """Return the promises, which scale with the null hop of the same run."""
    slower = scale(measured)
    native, reflected = ((kind, STATELESS, 32) for kind in _KINDS)
    return [
        Bar(
            name="gateway CPU, native gRPC server",
            measured=gateway_cpu(measured, native, OURS),
            limit=NATIVE_LIMIT * slower,
            unit="ms",
        ),
        Bar(
            name="gateway CPU more, reflected gRPC server",
            measured=paired(
                measured.get((reflected, OURS)),
                measured.get((native, OURS)),
                lambda one, other: one.cpu["gateway"] - other.cpu["gateway"],
            ),
            limit=REFLECTED_LIMIT * slower,
            unit="ms",
        ),
    ]
