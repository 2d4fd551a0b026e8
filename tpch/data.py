"""The benchmark's data: generated once per scale factor as Parquet into the user's cache directory."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from tqp.tpch.errors import UsageError

#: Table names, the largest last.
TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")

INSTALL_HINT = "pip install 'tensor-query-processor[tpch]'"


def ensure_data(scale_factor: float, console: Console) -> Path:
    """The folder with the tables at `scale_factor`, generated first if it is not there yet.

    Another process that generates the same folder at the same time does no harm: each writes a folder of its own and
    moves it into place when complete; the second one to finish drops its copy.
    """
    if not (math.isfinite(scale_factor) and scale_factor > 0):
        raise UsageError(f"--sf: the scale factor must be a positive number, not {scale_factor:g}")
    target = cache_directory() / f"sf{scale_factor:g}"
    if target.is_dir():
        return check_directory(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        _generate(scale_factor, partial, console)
        check_directory(partial)
        # mkdtemp's folder is for its owner only; the finished one is as readable as any other.
        partial.chmod(0o755)
        try:
            partial.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return check_directory(target)


def check_directory(directory: Path) -> Path:
    """`directory`, if it holds a Parquet file of every table."""
    if not directory.is_dir():
        raise UsageError(f"--data: {directory} is not a folder")
    missing = [table for table in TABLES if not table_path(directory, table).is_file()]
    if missing:
        names = ", ".join(f"{table}.parquet" for table in missing)
        raise UsageError(
            f"{directory} lacks {names}; point --data at a whole set, or remove it to generate it anew"
        )
    return directory


def table_path(directory: Path, table: str) -> Path:
    """The Parquet file of `table`."""
    return directory / f"{table}.parquet"


def cache_directory() -> Path:
    """Where generated data is kept: `$TQP_CACHE/tpch`, else `tqp/tpch` in the user's cache directory."""
    own = os.environ.get("TQP_CACHE")
    if own:
        return Path(own) / "tpch"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tqp" / "tpch"


def _generate(scale_factor: float, directory: Path, console: Console) -> None:
    command = [
        _generator(),
        "tpch",
        "parquet",
        f"--scale-factor={scale_factor!r}",
        f"--output-dir={directory}",
    ]
    title = f"Generating TPC-H data at scale factor {scale_factor:g}"
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process,
        console.status(title) as status,
    ):
        while process.poll() is None:
            written = sum(file.stat().st_size for file in directory.iterdir())
            status.update(f"{title}: {written / 1e6:,.0f} MB written")
            time.sleep(0.1)
        if process.returncode != 0:
            log.seek(0)
            raise UsageError(
                f"tpcgen-cli could not generate scale factor {scale_factor:g}:\n{log.read().strip()}"
            )


def _generator() -> str:
    """The path of tpcgen-cli, looked for beside the running Python first."""
    beside = shutil.which("tpcgen-cli", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("tpcgen-cli")
    if found is None:
        raise UsageError(f"Generating TPC-H data needs tpcgen-cli: {INSTALL_HINT}")
    return found
