"""`thoughtgate status`: which gateways run on this registry, or how the one at --server fares.

Never starts one.
"""

from importlib import import_module

import click
import msgspec

from thoughtgate.app.presence import Presence, running
from thoughtgate.cli.exits import Exit
from thoughtgate.cli.output import clean, count, json_flag, note, show, table
from thoughtgate.cli.settings import loaded_or_fail
from thoughtgate.cli.target import Target, target
from thoughtgate.surface.admin_values import Status, WorkerState

_NONE = "no gateway runs here; start one with: thoughtgate serve"

_WORKER_HEAD = ("WORKER", "PROCESS", "CALLS", "IN FLIGHT", "SESSIONS")


@click.command()
@json_flag
@click.pass_context
def status(context: click.Context, as_json: bool) -> None:
    """Say which gateways run on this registry, or how the one at --server fares.

    Exit 1 if none runs here.
    """
    far = target()
    if far is not None:
        _show_far(_asked(far), as_json=as_json)
        return
    found = running(loaded_or_fail(context.obj).home)
    value = [msgspec.to_builtins(one) for one in found]
    cells = [(str(p.pid), p.version, p.started, _served(p)) for p in found]
    head = ("PROCESS", "VERSION", "SINCE", "SERVES")
    show(value, table(head, cells) if found else [_NONE], as_json=as_json)
    context.exit(Exit.OK if found else Exit.FAILED)


def _served(one: Presence) -> str:
    workers = f" by {one.workers} workers" if one.workers > 1 else ""
    beside = f" and {one.grpc}" if one.grpc else ""
    return (one.url or "standard input") + beside + workers


def _asked(far: Target) -> Status:
    """Ask the gateway; what that takes is imported only now."""
    far_line = import_module("thoughtgate.cli.remote_line")
    found: Status = far_line.Line(far, patience=far_line.BRIEF).get(Status, "status")
    return found


def _show_far(found: Status, *, as_json: bool) -> None:
    sizes = (
        f"{count(found.tools, 'tool')}, {count(found.held, 'tool')} held back, "
        f"{count(found.domains, 'domain')}, {count(found.sessions, 'session')}"
    )
    lines = [
        f"thoughtgate {found.version}, process {found.pid}, since {found.started}",
        f"configuration: {found.config or 'none'}",
        sizes,
        f"registry at revision {found.revision}, catalogue {found.catalogue}",
    ]
    cells = [(one.name, one.state, str(one.tools)) for one in found.servers]
    show(
        msgspec.to_builtins(found),
        [*map(clean, lines), *table(("SERVER", "STATE", "TOOLS"), cells)],
        as_json=as_json,
    )
    if len(found.workers) > 1 and not as_json:
        for line in table(_WORKER_HEAD, map(_worker_cells, found.workers)):
            click.echo(line)
    for one in found.servers:
        if one.reason and not as_json:
            note(f"{one.name}: {one.reason}")


def _worker_cells(one: WorkerState) -> tuple[str, ...]:
    if not one.up:
        return str(one.index), "does not answer", "", "", ""
    return tuple(map(str, (one.index, one.pid, one.calls, one.running, one.sessions)))
