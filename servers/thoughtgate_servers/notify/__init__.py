"""The notify server: webhooks and Slack messages, each at most once per idempotency key.

Never sends to a place that was not allowed on its command line.
"""

import sqlite3
from pathlib import Path

import click
from platformdirs import user_state_path

from thoughtgate_servers.notify.outbox import Outbox
from thoughtgate_servers.notify.posting import Poster
from thoughtgate_servers.notify.targets import Targets, named, parsed
from thoughtgate_servers.notify.tools import NotifyTools
from thoughtgate_servers.serving import Carrier, serve, transport_options
from thoughtgate_servers.table import ToolFailed

INSTRUCTIONS = (
    "send_webhook posts JSON, send_slack posts a message. Give an idempotency key to send at most "
    "once."
)


@click.command(
    epilog=f"""\b
Examples:
  thoughtgate-notify --webhook team=https://example.org/hook
  thoughtgate-notify --webhook slack=env:SLACK_WEBHOOK --http 127.0.0.1:8103
  thoughtgate-notify --allow http://127.0.0.1:9000/hooks
  thoughtgate server add notify -- thoughtgate-notify --webhook slack=env:SLACK_WEBHOOK

{INSTRUCTIONS}"""
)
@click.option(
    "--webhook",
    "webhooks",
    multiple=True,
    metavar="NAME=URL",
    help="A named target; NAME=env:VARIABLE keeps the URL out of the process list. Repeatable.",
)
@click.option(
    "--allow",
    "allowed",
    multiple=True,
    metavar="URLPREFIX",
    help="URLs that may be given freely: same scheme, host and port, path at or below. Repeatable.",
)
@click.option(
    "--outbox",
    metavar="FILE",
    help="Where used idempotency keys are kept. Default: a file in your state directory.",
)
@click.option("--timeout", type=click.FloatRange(min=0.1, max=300), default=15.0, show_default=True)
@click.option("--proxy", metavar="URL", help="Send through this HTTP proxy.")
@transport_options
def main(
    webhooks: tuple[str, ...],
    allowed: tuple[str, ...],
    outbox: str | None,
    timeout: float,
    proxy: str | None,
    carrier: Carrier,
) -> None:
    """Serve notifications to MCP clients: webhooks and Slack, at most once per key.

    Nothing can be sent anywhere until --webhook or --allow says so.
    """
    try:
        targets = Targets(named=dict(map(named, webhooks)), allowed=allowed)
        for prefix in allowed:
            parsed(prefix)
    except ToolFailed as failure:
        raise click.UsageError(failure.message) from None
    poster = Poster(timeout=timeout, proxy=proxy)
    tools = NotifyTools(targets=targets, outbox=_opened(outbox), poster=poster).table()
    serve(tools, name="notify", instructions=INSTRUCTIONS, carrier=carrier)


def _opened(outbox: str | None) -> Outbox:
    path = Path(outbox).expanduser() if outbox else _default_outbox()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return Outbox(path)
    except (OSError, sqlite3.Error) as failure:
        raise click.UsageError(
            message=f"--outbox {path} cannot be used ({failure}); name another file"
        ) from None


def _default_outbox() -> Path:
    return user_state_path("thoughtgate") / "notify-outbox.sqlite"
