"""What a benchmark run measured, as a table for people and as JSON for programs."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

#: Engines to compare with, and what they are called in headings.
PEERS = {"duckdb": "DuckDB", "pandas": "pandas"}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryReport:
    """One query. Times are None where the query failed or was not timed; `is_equal` is None where nothing was checked.

    `planning_milliseconds`: to plan and lower the query anew once its tables are encoded. `rows` are those of the answer, or, in a benchmark of operators, those that the operator works on.
    """

    number: int
    label: str
    rows: int | None = None
    first_milliseconds: float | None = None
    median_milliseconds: float | None = None
    planning_milliseconds: float | None = None
    duckdb_milliseconds: float | None = None
    pandas_milliseconds: float | None = None
    is_equal: bool | None = None
    problem: str | None = None

    def ratio(self, peer: str = "duckdb") -> float | None:
        """The peer's warm median over tqp's: how many times as fast tqp is."""
        theirs: float | None = getattr(self, f"{peer}_milliseconds")
        return theirs / self.median_milliseconds if theirs is not None and self.median_milliseconds else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What was measured on, and how. Peaks are of the whole process, Python and PyTorch in it; each engine has its own."""

    device: str
    threads: int
    runs: int
    batch_rows: int | None
    disabled_rules: list[str]
    fuse: str
    backend: str
    peak_bytes: int
    device_peak_bytes: int | None
    duckdb_peak_bytes: int | None
    processor: str
    versions: dict[str, str]

    def __str__(self) -> str:
        peak = f"peak memory {_gibibytes(self.peak_bytes)} (the process that runs tqp"
        if self.duckdb_peak_bytes is not None:
            peak += f"; DuckDB's: {_gibibytes(self.duckdb_peak_bytes)}"
        peak += ")"
        if self.device_peak_bytes is not None:
            peak += f", {_gibibytes(self.device_peak_bytes)} on the device"
        measured = (
            f"warm: median of {self.runs} runs after the first; DuckDB likewise, from its in-memory tables"
        )
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        where = f"{self.processor}, threads: {self.threads}, device: {self.device}"
        changed = [f"without {rule}" for rule in self.disabled_rules]
        if self.fuse != "off":
            changed.append(f"fuse: {self.fuse}")
        if self.backend != "auto":
            changed.append(f"backend: {self.backend}")
        if self.batch_rows is not None:
            changed.append(f"batches of {self.batch_rows:,} rows")
        return "\n".join([measured, peak, where, versions, *changed])


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRuns:
    """Every query once, in order, from Arrow tables in memory; DuckDB makes its own tables of them first."""

    milliseconds: float
    duckdb_create_milliseconds: float
    duckdb_query_milliseconds: float

    def __str__(self) -> str:
        duckdb = self.duckdb_create_milliseconds + self.duckdb_query_milliseconds
        return (
            f"first runs from Arrow tables in memory, in a fresh process: tqp {self.milliseconds:,.0f} ms (register, "
            f"statistics, encoding, planning, execution); DuckDB {duckdb:,.0f} ms (CREATE TABLE AS "
            f"{self.duckdb_create_milliseconds:,.0f}, queries {self.duckdb_query_milliseconds:,.0f})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkReport:
    """A whole run. `heading` says what a query is called here; `facts` are what else the JSON should say."""

    title: str
    heading: str
    queries: list[QueryReport]
    setting: Setting
    facts: dict[str, Any]
    first_runs: FirstRuns | None = None

    @property
    def all_right(self) -> bool:
        """No query failed, and no answer that was checked differs."""
        return all(query.is_equal is not False for query in self.queries)

    def geometric_mean_ratio(self, peer: str = "duckdb") -> float | None:
        """Of the ratios to the peer, where there are any."""
        ratios = [ratio for query in self.queries if (ratio := query.ratio(peer)) is not None]
        return statistics.geometric_mean(ratios) if ratios else None

    @property
    def lowest(self) -> QueryReport | None:
        """The query with the lowest ratio to DuckDB, if there are any."""
        compared = [query for query in self.queries if query.ratio() is not None]
        return min(compared, key=lambda query: query.ratio() or 0.0, default=None)

    def total(self, column: str) -> float | None:
        """The sum of a column of times in milliseconds, None if any query lacks it."""
        times = [getattr(query, column) for query in self.queries]
        return None if None in times else sum(times)

    @property
    def planning(self) -> tuple[float, float] | None:
        """The median and the largest of the planning times in milliseconds."""
        times = [q.planning_milliseconds for q in self.queries if q.planning_milliseconds is not None]
        return (statistics.median(times), max(times)) if times else None

    def to_json(self) -> str:
        """Everything, with the ratios and totals worked out."""
        lowest = self.lowest
        document: dict[str, Any] = {
            "title": self.title,
            "queries": [
                {**dataclasses.asdict(query), "ratio": query.ratio(), "pandas_ratio": query.ratio("pandas")}
                for query in self.queries
            ],
            **self.facts,
            **dataclasses.asdict(self.setting),
            "geometric_mean_ratio": self.geometric_mean_ratio(),
            "lowest_ratio": lowest.ratio() if lowest is not None else None,
            "total_milliseconds": self.total("median_milliseconds"),
            "duckdb_total_milliseconds": self.total("duckdb_milliseconds"),
            "planning_median_milliseconds": self.planning[0] if self.planning is not None else None,
            "planning_max_milliseconds": self.planning[1] if self.planning is not None else None,
            "first_runs": dataclasses.asdict(self.first_runs) if self.first_runs is not None else None,
            "all_right": self.all_right,
        }
        return json.dumps(document, indent=2)

    def print(self, console: Console) -> None:
        """The table, and below it the totals and what they were measured on."""
        lowest = self.lowest
        table = Table(title=self.title, title_justify="left")
        peers = [peer for peer in PEERS if any(query.ratio(peer) is not None for query in self.queries)]
        theirs = [heading for peer in peers for heading in (f"{PEERS[peer]} ms", "ratio")]
        headings = ["rows", "first ms", "warm ms", *theirs, "answer"]
        numbered = all(query.label.isdecimal() for query in self.queries)
        table.add_column(self.heading, justify="right" if numbered else "left", no_wrap=True)
        for heading in headings:
            table.add_column(heading, justify="left" if heading == "answer" else "right", no_wrap=True)
        for query in self.queries:
            times = [_number(query.first_milliseconds), _number(query.median_milliseconds)]
            comparison = _cells((getattr(query, f"{peer}_milliseconds"), query.ratio(peer)) for peer in peers)
            rows = "" if query.rows is None else f"{query.rows:,}"
            table.add_row(query.label, rows, *times, *comparison, _verdict(query))
        table.add_section()
        totals = [_number(self.total("first_milliseconds")), _number(self.total("median_milliseconds"))]
        comparison = _cells(
            (self.total(f"{peer}_milliseconds"), self.geometric_mean_ratio(peer)) for peer in peers
        )
        table.add_row("total", "", *totals, *comparison, "geometric mean of ratios" * bool(peers))
        if lowest is not None:
            others = [""] * (len(theirs) - 2)
            answer = f"{self.heading} {lowest.label}"
            table.add_row("lowest", "", "", "", "", _number(lowest.ratio(), 2), *others, answer)
        console.print(table)
        for query in self.queries:
            if query.problem is not None:
                problem = f"{self.heading} {query.label}: {query.problem}"
                console.print(problem, style="red", markup=False)
        if self.planning is not None:
            median, largest = self.planning
            console.print(
                f"planning and lowering: median {median:.1f} ms, at most {largest:.1f} ms", highlight=False
            )
        if self.first_runs is not None:
            console.print(str(self.first_runs), highlight=False, markup=False)
        console.print(str(self.setting), highlight=False, markup=False)


def _gibibytes(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"


def _number(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _cells(compared: Iterable[tuple[float | None, float | None]]) -> list[str]:
    """Of each peer its time and the ratio."""
    return [cell for time, ratio in compared for cell in (_number(time), _number(ratio, 2))]


def _verdict(query: QueryReport) -> str:
    if query.is_equal is None:
        return "not checked"
    if query.is_equal:
        return "equal"
    return "[red]DIFFERS[/red]" if query.rows is not None else "[red]FAILED[/red]"
