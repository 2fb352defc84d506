"""`thoughtgate server login` and `logout`: who the gateway is at a server that wants to know.

Never prints a token, and takes a client's secret from the environment only.
"""

import asyncio
import os
import threading
import time
import webbrowser
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from thoughtgate.app.login_words import words_of
from thoughtgate.cli.completing import server_names
from thoughtgate.cli.output import changed, json_flag, note
from thoughtgate.cli.settings import loaded_or_fail
from thoughtgate.cli.signals import interruptible
from thoughtgate.core.errors import ConfigError


@click.command(
    epilog="\b\n"
    "thoughtgate server login web\n"
    "thoughtgate server login web --machine --client-id ID --client-secret-env SECRET"
    " --issuer https://login.example"
)
@click.argument("name", shell_complete=server_names)
@click.option("--no-browser", is_flag=True, help="Print the address to open, and open nothing.")
@click.option("--scope", default="", help="Ask for these instead of what the server says.")
@click.option("--client-id", default="", help="A client that is registered already, or its URL.")
@click.option("--client-secret-env", metavar="NAME", help="Variable that holds its secret.")
@click.option("--issuer", default="", help="Authorization server that it belongs to.")
@click.option("--machine", is_flag=True, help="Log the client itself in, without a person.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    help="Port on 127.0.0.1 to come back to; else any free one.",
)
@json_flag
@click.pass_obj
def login(chosen: Path | None, /, name: str, no_browser: bool, as_json: bool, **given: Any) -> None:
    """Log in at a server that wants OAuth: a browser opens, and comes back here.

    The login is kept encrypted and renewed by itself; a running gateway takes it up.
    """
    logins = import_module("thoughtgate.app.logins")
    order = logins.LoginOrder(
        server=name,
        client_secret=_secret(given.pop("client_secret_env")),
        **given,
    )
    open_page = _printed if no_browser else _opened
    loaded = loaded_or_fail(chosen)
    state = asyncio.run(interruptible(logins.log_in(loaded, order, open_page)))
    words = words_of(state, time.time())
    changed({"server": name, "login": words}, [f"server {name}: {words}"], as_json=as_json)


@click.command()
@click.argument("name", shell_complete=server_names)
@json_flag
@click.pass_obj
def logout(chosen: Path | None, name: str, as_json: bool) -> None:
    """Forget the login at a server, and give its tokens back where that can be done."""
    logins = import_module("thoughtgate.app.logins")
    told = asyncio.run(logins.log_out(loaded_or_fail(chosen), name))
    words = "there was no login" if told is None else f"logged out; {told}"
    changed({"server": name, "logout": words}, [f"server {name}: {words}"], as_json=as_json)


def _secret(variable: str | None) -> str:
    if variable is None:
        return ""
    secret = os.environ.get(variable)
    if not secret:
        raise ConfigError(message=f"--client-secret-env: {variable} is not set")
    return secret


async def _printed(url: str) -> None:
    note(f"open this address to log in:\n{url}")


async def _opened(url: str) -> None:
    note(f"your browser opens to log in; if it does not, open this address:\n{url}")
    # nobody waits for it: some browsers end only when a person closes them
    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
