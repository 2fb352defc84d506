"""One worker's process, which `thoughtgate serve --workers N` starts: no command for people.

Never reads the command line of the parent; what it needs to know is told it.
"""

import os
import socket
import sys
from pathlib import Path

import click
import uvloop

from thoughtgate.app.crew.worker import serve_worker
from thoughtgate.cli.door import Door, say_bugs
from thoughtgate.cli.logs import log_to_stderr
from thoughtgate.cli.output import note
from thoughtgate.cli.settings import loaded_or_fail, with_gateway
from thoughtgate.cli.signals import interruptible
from thoughtgate.core.workers import Crew


@click.command()
@click.option("--index", type=int, required=True)
@click.option("--count", type=int, required=True)
@click.option("--sockets", type=click.Path(path_type=Path), required=True)
@click.option("--line", type=int, required=True)
@click.option("--log-level", required=True)
@click.option("--config", "file", type=click.Path(path_type=Path))
@click.option("--grpc-port", type=int)
def worker(
    sockets: Path, line: int, log_level: str, file: Path | None, grpc_port: int | None, **one: int
) -> None:
    """Serve as one worker of several."""
    log_to_stderr(log_level)
    crew = Crew(index=one["index"], count=one["count"], sockets=sockets)
    say = note if crew.index == 0 else _quiet
    with socket.socket(fileno=line) as end:
        end.set_inheritable(False)
        loaded = with_gateway(loaded_or_fail(file), grpc_port=grpc_port)
        uvloop.run(interruptible(serve_worker(loaded, os.environ, crew, end, say)))


def main() -> None:
    """Run one worker."""
    say_bugs()
    door = Door()
    door.add_command(worker)
    door.main(["worker", *sys.argv[1:]], prog_name="thoughtgate")


def _quiet(text: str) -> None:
    """Say nothing: the first worker says the same."""
    del text


if __name__ == "__main__":
    main()
