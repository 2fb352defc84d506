"""An answer as a Parquet file, written by DuckDB into a folder of its own.

Never lets a statement choose where.
"""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from thoughtgate_servers.data import duckdb_engine
from thoughtgate_servers.data.limits import MAX_EXPORTED, Limits, Watch, counted
from thoughtgate_servers.data.sources import Source


def as_parquet(
    source: Source, asked: Mapping[str, Any], limits: Limits, watch: Watch
) -> tuple[bytes, int]:
    """Return what the statement gives as Parquet, and how many rows; types stay as they are."""
    as_text = asked.get("as_text", False)
    with TemporaryDirectory(prefix="thoughtgate-data-") as folder:
        target = Path(folder) / "rows.parquet"
        with duckdb_engine.opened(source, limits, watch, as_text, also=folder) as engine:
            rows = engine.copy(asked["sql"], str(target), MAX_EXPORTED + 1)
        counted(rows - 1, target.stat().st_size)
        return target.read_bytes(), rows
