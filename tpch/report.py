"""What a benchmark run measured, as a table for people and as JSON for programs."""

from __future__ import annotations

import dataclasses
import json
import statistics
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class QueryReport:
    """One query. Times are None where the query failed or was not timed; `is_equal` is None where nothing was checked."""

    number: int
    rows: int | None = None
    first_milliseconds: float | None = None
    median_milliseconds: float | None = None
    duckdb_milliseconds: float | None = None
    is_equal: bool | None = None
    problem: str | None = None

    @property
    def ratio(self) -> float | None:
        """DuckDB's warm median over tqp's: how many times as fast tqp is."""
        if self.median_milliseconds is None or self.duckdb_milliseconds is None:
            return None
        return self.duckdb_milliseconds / self.median_milliseconds


@dataclass(frozen=True, slots=True)
class BenchmarkReport:
    """A whole run. `peak_bytes` is the peak resident memory of the process that ran tqp, DuckDB not in it."""

    queries: list[QueryReport]
    scale_factor: float
    data: str
    device: str
    threads: int
    runs: int
    batch_rows: int | None
    disabled_rules: list[str]
    peak_bytes: int
    device_peak_bytes: int | None
    processor: str
    versions: dict[str, str]

    @property
    def all_right(self) -> bool:
        """No query failed, and no answer that was checked differs."""
        return all(query.is_equal is not False for query in self.queries)

    @property
    def geometric_mean_ratio(self) -> float | None:
        """Of the ratios to DuckDB, where there are any."""
        ratios = [query.ratio for query in self.queries if query.ratio is not None]
        return statistics.geometric_mean(ratios) if ratios else None

    def total(self, column: str) -> float | None:
        """The sum of a column of times in milliseconds, None if any query lacks it."""
        times = [getattr(query, column) for query in self.queries]
        return None if None in times else sum(times)

    def to_json(self) -> str:
        """Everything, with the ratios and totals worked out."""
        document: dict[str, Any] = dataclasses.asdict(self)
        for query, entry in zip(self.queries, document["queries"], strict=True):
            entry["ratio"] = query.ratio
        document["geometric_mean_ratio"] = self.geometric_mean_ratio
        document["total_milliseconds"] = self.total("median_milliseconds")
        document["duckdb_total_milliseconds"] = self.total("duckdb_milliseconds")
        document["all_right"] = self.all_right
        return json.dumps(document, indent=2)

    def print(self, console: Console) -> None:
        """The table, and below it the totals and what they were measured on."""
        compared = any(query.duckdb_milliseconds is not None for query in self.queries)
        table = Table(title=f"TPC-H, scale factor {self.scale_factor:g}", title_justify="left")
        headings = ["query", "rows", "first ms", "warm ms"] + ["DuckDB ms", "ratio"] * compared + ["answer"]
        for heading in headings:
            table.add_column(heading, justify="left" if heading == "answer" else "right", no_wrap=True)
        for query in self.queries:
            times = [_number(query.first_milliseconds), _number(query.median_milliseconds)]
            comparison = [_number(query.duckdb_milliseconds), _number(query.ratio, 2)] * compared
            rows = "" if query.rows is None else f"{query.rows:,}"
            table.add_row(f"{query.number}", rows, *times, *comparison, _verdict(query))
        table.add_section()
        totals = [_number(self.total("first_milliseconds")), _number(self.total("median_milliseconds"))]
        comparison = [_number(self.total("duckdb_milliseconds")), _number(self.geometric_mean_ratio, 2)]
        table.add_row("total", "", *totals, *comparison * compared, "geometric mean of ratios" * compared)
        console.print(table)
        for query in self.queries:
            if query.problem is not None:
                console.print(f"query {query.number}: {query.problem}", style="red", markup=False)
        console.print(self._setting(), highlight=False, markup=False)

    def _setting(self) -> str:
        peak = f"peak memory {self.peak_bytes / 2**30:.2f} GiB (the process that runs tqp; DuckDB ran in another)"
        if self.device_peak_bytes is not None:
            peak += f", {self.device_peak_bytes / 2**30:.2f} GiB on the device"
        measured = (
            f"warm: median of {self.runs} runs after the first; DuckDB likewise, from its in-memory tables"
        )
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        where = f"{self.processor}, threads: {self.threads}, device: {self.device}"
        changed = [f"without {rule}" for rule in self.disabled_rules]
        if self.batch_rows is not None:
            changed.append(f"batches of {self.batch_rows:,} rows")
        return "\n".join([measured, peak, where, versions, *changed])


def _number(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _verdict(query: QueryReport) -> str:
    if query.is_equal is None:
        return "not checked"
    if query.is_equal:
        return "equal"
    return "[red]DIFFERS[/red]" if query.rows is not None else "[red]FAILED[/red]"
