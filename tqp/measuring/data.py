"""The data of benchmarks: generated once per scale factor as Parquet into the user's cache directory."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from tqp.measuring.compare import shuffle
from tqp.measuring.errors import INSTALL_HINT, UsageError

#: Of the order of shuffled rows.
_SEED = 1


@dataclass(frozen=True, slots=True)
class DataSet:
    """The tables of a benchmark: `name` is what tpcgen-cli and the cache's folder call it, `title` what people do."""

    name: str
    title: str
    tables: tuple[str, ...]

    def find(self, directory: Path | None, scale_factor: float, console: Console, shuffled: bool) -> Path:
        """`directory` if it holds all tables, else the folder of `ensure`."""
        if directory is None:
            return self.ensure(scale_factor, console, shuffled)
        if shuffled:
            raise UsageError("--shuffled is for generated data: it takes no --data")
        return self.check(directory)

    def ensure(self, scale_factor: float, console: Console, shuffled: bool = False) -> Path:
        """The folder with the tables at `scale_factor`, generated first if it is not there yet.

        `shuffled`: with the rows of every table in random order, the same every time; kept beside the generated ones.
        """
        if not (math.isfinite(scale_factor) and scale_factor > 0):
            raise UsageError(f"--sf: the scale factor must be a positive number, not {scale_factor:g}")
        target = cache_directory() / self.name / f"sf{scale_factor:g}"
        ordered = self._made(target, lambda partial: _generate(self, scale_factor, partial, console))
        if not shuffled:
            return ordered
        return self._made(
            target.with_name(f"{target.name}-shuffled"),
            lambda partial: self._shuffle(ordered, partial, console),
        )

    def _made(self, target: Path, make: Callable[[Path], None]) -> Path:
        """`target`, made first if it is not there yet.

        Another process that makes the same folder at the same time does no harm: each writes a folder of its own and
        moves it into place when complete; the second one to finish drops its copy.
        """
        if target.is_dir():
            return self.check(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            make(partial)
            self.check(partial)
            # mkdtemp's folder is for its owner only; the finished one is as readable as any other.
            partial.chmod(0o755)
            try:
                partial.rename(target)
            except OSError:
                if not target.is_dir():
                    raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return self.check(target)

    def _shuffle(self, ordered: Path, target: Path, console: Console) -> None:
        sources, targets = self.paths(ordered), self.paths(target)
        with console.status("Shuffling tables"):
            shuffle({sources[table]: targets[table] for table in self.tables}, target, _SEED)

    def check(self, directory: Path) -> Path:
        """`directory`, if it holds a Parquet file of every table."""
        if not directory.is_dir():
            raise UsageError(f"--data: {directory} is not a folder")
        missing = [path.name for path in self.paths(directory).values() if not path.is_file()]
        if missing:
            raise UsageError(
                f"{directory} lacks {', '.join(missing)}; point --data at a whole set, or remove it to generate it anew"
            )
        return directory

    def paths(self, directory: Path) -> Mapping[str, Path]:
        """The Parquet file of each table in `directory`."""
        return {table: directory / f"{table}.parquet" for table in self.tables}


def cache_directory() -> Path:
    """Where generated data is kept: `$TQP_CACHE`, else `tqp` in the user's cache directory."""
    own = os.environ.get("TQP_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tqp"


def _generate(data_set: DataSet, scale_factor: float, directory: Path, console: Console) -> None:
    command = [
        _generator(),
        data_set.name,
        "parquet",
        f"--scale-factor={scale_factor!r}",
        f"--output-dir={directory}",
    ]
    title = f"Generating {data_set.title} data at scale factor {scale_factor:g}"
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process,
        console.status(title) as status,
    ):
        while process.poll() is None:
            status.update(f"{title}: {_bytes_in(directory) / 1e6:,.0f} MB written")
            time.sleep(0.1)
        if process.returncode != 0:
            log.seek(0)
            raise UsageError(
                f"tpcgen-cli could not generate scale factor {scale_factor:g}:\n{log.read().strip()}"
            )


def _bytes_in(directory: Path) -> int:
    """The size of the files in `directory`, while another process writes them.

    tpcgen-cli gives a complete file its final name: one that has just been listed may be gone.
    """
    size = 0
    for file in directory.iterdir():
        with suppress(FileNotFoundError):
            size += file.stat().st_size
    return size


def _generator() -> str:
    """The path of tpcgen-cli, looked for beside the running Python first."""
    beside = shutil.which("tpcgen-cli", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("tpcgen-cli")
    if found is None:
        raise UsageError(f"Generating data needs tpcgen-cli: {INSTALL_HINT}")
    return found
