"""The admin API's operations on the gateway itself: its state, its settings, its log, its copies.

Never writes where the client says: copies go to one folder beside the registry.
"""

import asyncio
import os
import time
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter

from thoughtgate.app.admin import Desk
from thoughtgate.app.compose import VERSION
from thoughtgate.app.paging import decoded, encoded
from thoughtgate.app.reloading import reload
from thoughtgate.app.shown import audit_entries, audit_verdict
from thoughtgate.core.errors import Overloaded
from thoughtgate.registry.audit import AuditRecord, latest, verify
from thoughtgate.registry.trouble import translated_files
from thoughtgate.surface.admin_route import Ask
from thoughtgate.surface.admin_values import (
    AuditPage,
    AuditVerdict,
    BackedUp,
    Reloaded,
    ServerState,
    Status,
)

MAX_BACKUPS = 100
"""Files in the folder of copies; beyond, somebody must make room first."""


async def get_status(desk: Desk, ask: Ask) -> Status:
    """Tell how the gateway and its servers fare."""
    del ask
    app = desk.app
    catalog = app.gateway.catalog
    tools = Counter(tool.server for tool in catalog.tools)
    workers = (desk.worker(), *await desk.others.states())
    return Status(
        version=VERSION,
        pid=os.getpid() if app.crew.count == 1 else os.getppid(),
        started=datetime.fromtimestamp(desk.started, UTC).isoformat(timespec="seconds"),
        uptime=round(max(0.0, time.time() - desk.started), 3),
        config=str(desk.loaded.file) if desk.loaded.file else None,
        revision=await desk.revision(),
        catalogue=catalog.revision,
        tools=len(catalog.tools),
        held=len(catalog.quarantined),
        domains=len(app.gateway.domains),
        sessions=sum(one.sessions for one in workers),
        servers=tuple(
            ServerState(
                name=one.server, state=one.state.value, reason=one.reason, tools=tools[one.server]
            )
            for one in app.upstreams.statuses()
        ),
        workers=tuple(sorted(workers, key=attrgetter("index"))),
    )


async def reload_settings(desk: Desk, ask: Ask) -> Reloaded:
    """Read the configuration file again; one that cannot be used changes nothing."""
    del ask
    done = await reload(desk.app.keeper, desk.environ)
    await desk.others.reload()
    return done


async def back_up(desk: Desk, ask: Ask) -> BackedUp:
    """Write a consistent copy of the registry beside it."""
    return await asyncio.to_thread(_backed_up, desk, ask.body.name)


def _backed_up(desk: Desk, name: str) -> BackedUp:
    folder = desk.loaded.home / "backups"
    with translated_files(folder):
        folder.mkdir(mode=0o700, exist_ok=True)
        number = len(os.listdir(folder))
    if number >= MAX_BACKUPS:
        raise Overloaded(message=f"{folder} holds {MAX_BACKUPS} files; remove old copies first")
    target = folder / name
    desk.app.registry.backup(target)
    return BackedUp(path=str(target), size=target.stat().st_size)


async def list_audit(desk: Desk, ask: Ask) -> AuditPage:
    """List rows of the audit log, newest first."""
    await desk.flush()
    limit = ask.query.limit
    at_ns, given = decoded(ask.query.cursor, like=(0, 0)) if ask.query.cursor else (None, 0)
    # rows of one instant may lie on two pages: begin at it again, past those that were given
    before = None if at_ns is None else int(at_ns) + 1
    asking = partial(
        latest,
        desk.app.registry,
        limit=limit + int(given) + 1,
        before_ns=before,
        notes=ask.query.notes,
    )
    found = (await asyncio.to_thread(asking))[int(given) :]
    rows, more = found[:limit], len(found) > limit
    following = _cursor(rows, at_ns, int(given)) if more else None
    return AuditPage(rows=audit_entries(rows), next=following)


def _cursor(rows: tuple[AuditRecord, ...], at_ns: object, given: int) -> str:
    last = rows[-1].at_ns
    same = sum(row.at_ns == last for row in rows)
    return encoded((last, same + (given if last == at_ns else 0)))


async def verify_audit(desk: Desk, ask: Ask) -> AuditVerdict:
    """Check every chain of the audit log."""
    del ask
    if desk.verifying.locked():
        raise Overloaded(message="the audit log is being checked already; ask again later")
    async with desk.verifying:
        await desk.flush()
        return audit_verdict(await asyncio.to_thread(verify, desk.app.registry))
