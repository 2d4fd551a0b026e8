"""Runs benchmarks of cases: makes each data set, and measures the chosen cases on it."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from tqp.bench.case import Suites
from tqp.measuring.duckdb_process import write_arrow
from tqp.measuring.errors import UsageError
from tqp.measuring.measure import Engine, measure
from tqp.measuring.report import BenchmarkReport, QueryReport, Setting


def run_cases(
    title: str, suites: Suites, engine: Engine, console: Console, rows: int, only: str = ""
) -> BenchmarkReport:
    """Runs the cases with `only` in their names and returns what was measured; progress goes to `console`.

    `rows`: what tables are made of; the largest have about as many. Raises `UsageError` where it cannot be run as asked. A case that fails, or answers
    wrongly, is part of the report.
    """
    engine.check()
    reports: list[QueryReport] = []
    settings: list[Setting] = []
    number = 0
    for make_tables, cases in suites:
        numbered = list(enumerate(cases, number + 1))
        number += len(cases)
        chosen = {n: case for n, case in numbered if only.lower() in case.name.lower()}
        if not chosen:
            continue
        with tempfile.TemporaryDirectory(prefix="tqp-cases-") as directory:
            with console.status("Making tables"):
                tables = make_tables(rows)
                sizes = {name: table.num_rows for name, table in tables.items()}
                files = {name: Path(directory) / f"{name}.arrow" for name in tables}
                for name, table in tables.items():
                    write_arrow(table, str(files[name]))
                del table, tables
            queries = [case.query(n) for n, case in chosen.items()]
            traced = replace(engine, profile=_numbered(engine.profile, len(settings)))
            measured, setting = measure(traced, files, queries, console)
            settings.append(setting)
            # A case that failed keeps no rows: that is how reports tell it from one with a wrong answer.
            reports.extend(
                replace(report, rows=report.rows and sizes[chosen[report.number].table])
                for report in measured
            )
    if not reports:
        raise UsageError(f'--only: no case has "{only}" in its name')
    duckdb_peaks = [
        setting.duckdb_peak_bytes for setting in settings if setting.duckdb_peak_bytes is not None
    ]
    return BenchmarkReport(
        title=f"{title}, {rows:,} rows",
        heading="case",
        queries=reports,
        setting=replace(settings[-1], duckdb_peak_bytes=max(duckdb_peaks, default=None)),
        facts={"rows": rows},
    )


def _numbered(path: Path | None, number: int) -> Path | None:
    """Each data set has a trace of its own: `trace.json`, `trace-1.json`, `trace-2.json`."""
    return path.with_stem(f"{path.stem}-{number}") if path is not None and number else path
