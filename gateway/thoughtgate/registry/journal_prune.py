"""Deleting old finished runs, in slices that hold the registry only for a moment.

Never deletes a run that is not finished, or that another is a branch of.
"""

from sqlalchemy import Connection, delete, exists, func, select, update

from thoughtgate.registry.database import Database
from thoughtgate.registry.journal_file import REMOVED
from thoughtgate.registry.tables import journal, runs


def prune(database: Database, *, before_ns: int, rows: int = 1000) -> int:
    """Delete one slice of what ended before `before_ns`: at most `rows` events of one run.

    Return how many events and runs went; 0 says that nothing is left to delete. A run of which
    something is deleted is gone for all who look.
    """
    with database.write() as connection:
        branch = runs.alias()
        found = connection.execute(
            select(runs.c.id)
            .where(
                runs.c.ended_ns < before_ns,
                ~exists().where(branch.c.parent == runs.c.uid, branch.c.forked_from > 0),
            )
            .order_by(runs.c.ended_ns)
            .limit(1)
        ).scalar_one_or_none()
        return 0 if found is None else _slice(connection, found, rows)


def _slice(connection: Connection, run: int, rows: int) -> int:
    first = connection.execute(
        select(func.min(journal.c.seq)).where(journal.c.run == run)
    ).scalar_one()
    upto = (first or 0) + rows
    gone = connection.execute(
        delete(journal).where(journal.c.run == run, journal.c.seq < upto)
    ).rowcount
    if gone < rows:
        connection.execute(delete(runs).where(runs.c.id == run))
        return gone + 1
    # the oldest of all from now on, so that the next slice goes on with it
    connection.execute(update(runs).where(runs.c.id == run).values(status=REMOVED, ended_ns=0))
    return gone
