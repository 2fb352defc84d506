"""What Alembic runs. Never opens a database: the connection is handed in, inside a transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
