"""Every row has a checksum, and a run knows how many rows belong to it and the sum of their checksums."""

import sqlalchemy as sa
from alembic import op

from planish.store.checksums import COVERED, sealed, total

revision = "0003"
down_revision = "0002"

_KEYS = {"tasks": ("key",), "runs": ("id",), "trials": ("id",), "results": ("run_id", "rank")}
_CHUNK = 1000


def upgrade() -> None:
    """Add the columns, and seal what is there as it is."""
    for table in _KEYS:
        op.add_column(table, sa.Column("checksum", sa.BigInteger))
    for name in ("stored", "trials_sum", "results_sum"):
        op.add_column("runs", sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))
    _seal("tasks")
    trials = _seal("trials")
    results = _seal("results")
    _count(trials, results)
    _seal("runs")


def _table(name: str) -> sa.TableClause:
    kinds = {"cached": sa.Boolean, "time": sa.Double, "ratio": sa.Double, "started": sa.Double}
    columns = dict.fromkeys((*_KEYS[name], *COVERED[name], "checksum"))
    return sa.table(name, *(sa.column(each, kinds.get(each)) for each in columns))


def _seal(name: str) -> dict[str, list[int]]:
    """Fill the checksums of a table; gives those of each run, where its rows belong to runs."""
    table, connection, found = _table(name), op.get_bind(), dict[str, list[int]]()
    keys = [table.c[key] for key in _KEYS[name]]
    update = sa.update(table).values(checksum=sa.bindparam("sealed_"))
    for key in keys:
        update = update.where(key == sa.bindparam(f"{key.name}_"))
    query = sa.select(table).order_by(*keys).limit(_CHUNK)
    rows = connection.execute(query).mappings().all()
    while rows:
        whole = [sealed(name, dict(row)) for row in rows]
        for row in whole:
            found.setdefault(row.get("run_id", ""), []).append(row["checksum"])
        connection.execute(
            update, [{"sealed_": r["checksum"], **{f"{k.name}_": r[k.name] for k in keys}} for r in whole]
        )
        last = tuple(whole[-1][key.name] for key in keys)
        rows = connection.execute(query.where(sa.tuple_(*keys) > last)).mappings().all()
    return found


def _count(trials: dict[str, list[int]], results: dict[str, list[int]]) -> None:
    runs = _table("runs")
    for run_id in {*trials, *results}:
        held = trials.get(run_id, [])
        counts = {
            "stored": len(held),
            "trials_sum": total(held),
            "results_sum": total(results.get(run_id, [])),
        }
        op.get_bind().execute(sa.update(runs).where(runs.c.id == run_id).values(**counts))
