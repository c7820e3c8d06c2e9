"""What Alembic runs: the migrations go over the connection, and into the transaction, of the store."""

from alembic import context

from planish.store.schema import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
with context.begin_transaction():
    context.run_migrations()
