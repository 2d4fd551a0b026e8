"""What a benchmark run measured, as a table for people and as JSON for programs."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from tqp.measuring.columns import COLUMNS, CONNECTIONS, PEERS


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryReport:
    """One query. What was not measured is None or missing; `is_equal` is None where nothing was checked.

    `times`: milliseconds of every run by column (see `COLUMNS`) and engine ("tqp", or one of `PEERS`).
    `planning_milliseconds`: to plan and lower the query anew once its tables are encoded. `rows` are those of the answer, or,
    in a benchmark of operators, those that the operator works on; None for a query that failed. `refused`: it failed for a
    feature that tqp lacks, which `problem` says.
    """

    number: int
    label: str
    rows: int | None = None
    first_milliseconds: float | None = None
    planning_milliseconds: float | None = None
    times: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    is_equal: bool | None = None
    problem: str | None = None
    refused: bool = False

    def median(self, column: str = "same", engine: str = "tqp") -> float | None:
        """The median time of an engine in a column, in milliseconds."""
        times = self.times.get(column, {}).get(engine)
        return statistics.median(times) if times else None

    def ratio(self, column: str = "same", peer: str = "duckdb") -> float | None:
        """The peer's median over tqp's: how many times as fast tqp is."""
        ours, theirs = self.median(column), self.median(column, peer)
        return theirs / ours if ours and theirs is not None else None

    def summary(self, column: str) -> dict[str, float | None]:
        """Medians in milliseconds by engine, and the ratios."""
        found = {f"{engine}_milliseconds": self.median(column, engine) for engine in self.times[column]}
        ratios = {f"{peer}_ratio": self.ratio(column, peer) for peer in PEERS if peer in self.times[column]}
        return {**found, **ratios}


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
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        where = f"{self.processor}, threads: {self.threads}, device: {self.device}"
        changed = [f"without {rule}" for rule in self.disabled_rules]
        if self.fuse != "off":
            changed.append(f"fuse: {self.fuse}")
        if self.backend != "auto":
            changed.append(f"backend: {self.backend}")
        if self.batch_rows is not None:
            changed.append(f"batches of {self.batch_rows:,} rows")
        return "\n".join([peak, where, versions, *changed])


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRuns:
    """Every query once, in order, from Arrow tables in memory; DuckDB makes its own tables of them first."""

    milliseconds: float
    duckdb_create_milliseconds: float
    duckdb_query_milliseconds: float

    def __str__(self) -> str:
        duckdb = self.duckdb_create_milliseconds + self.duckdb_query_milliseconds
        ratio = duckdb / self.milliseconds
        return (
            f"first runs from Arrow tables in memory, in a fresh process: tqp {self.milliseconds:,.0f} ms (register, "
            f"statistics, encoding, planning, execution); DuckDB {duckdb:,.0f} ms (CREATE TABLE AS "
            f"{self.duckdb_create_milliseconds:,.0f}, queries {self.duckdb_query_milliseconds:,.0f}); ratio {ratio:.2f}"
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

    @property
    def columns(self) -> list[str]:
        """Those of the table that were measured of any query."""
        return [name for name in COLUMNS if any(query.median(name) is not None for query in self.queries)]

    def geometric_mean_ratio(self, column: str = "same", peer: str = "duckdb") -> float | None:
        """Of the ratios to the peer, where there are any."""
        ratios = [ratio for query in self.queries if (ratio := query.ratio(column, peer)) is not None]
        return statistics.geometric_mean(ratios) if ratios else None

    def lowest(self, column: str = "same", peer: str = "duckdb") -> QueryReport | None:
        """The query with the lowest ratio to the peer, if there are any."""
        compared = [query for query in self.queries if query.ratio(column, peer) is not None]
        return min(compared, key=lambda query: query.ratio(column, peer) or 0.0, default=None)

    def total(self, column: str = "same", engine: str = "tqp") -> float | None:
        """The sum of an engine's medians in milliseconds, of queries that did not fail; None if any of them lacks it."""
        return _sum(query.median(column, engine) for query in self._answered)

    @property
    def _answered(self) -> list[QueryReport]:
        return [query for query in self.queries if query.rows is not None]

    @property
    def refused(self) -> dict[str, list[str]]:
        """By feature that tqp lacks, the queries that need it; the most wanted first."""
        found: dict[str, list[str]] = {}
        for query in self.queries:
            if query.refused:
                found.setdefault(str(query.problem), []).append(query.label)
        return dict(sorted(found.items(), key=lambda feature: -len(feature[1])))

    @property
    def planning(self) -> tuple[float, float] | None:
        """The median and the largest of the planning times in milliseconds."""
        times = [q.planning_milliseconds for q in self.queries if q.planning_milliseconds is not None]
        return (statistics.median(times), max(times)) if times else None

    def to_json(self) -> str:
        """Everything, with the ratios and totals worked out."""
        document: dict[str, Any] = {
            "title": self.title,
            "queries": [
                {**dataclasses.asdict(query), "columns": {name: query.summary(name) for name in query.times}}
                for query in self.queries
            ],
            **self.facts,
            **dataclasses.asdict(self.setting),
            "columns": {name: self.summary(name) for name in self.columns},
            "planning_median_milliseconds": self.planning[0] if self.planning is not None else None,
            "planning_max_milliseconds": self.planning[1] if self.planning is not None else None,
            "first_runs": dataclasses.asdict(self.first_runs) if self.first_runs is not None else None,
            "refused": self.refused,
            "all_right": self.all_right,
        }
        return json.dumps(document, indent=2)

    def summary(self, column: str) -> dict[str, Any]:
        """Totals of a column, and the mean and the lowest of its ratios."""
        found: dict[str, Any] = {"tqp_total_milliseconds": self.total(column)}
        for peer in PEERS:
            lowest = self.lowest(column, peer)
            if lowest is not None:
                found[f"{peer}_total_milliseconds"] = self.total(column, peer)
                found[f"{peer}_geometric_mean_ratio"] = self.geometric_mean_ratio(column, peer)
                found[f"{peer}_lowest_ratio"] = lowest.ratio(column, peer)
                found[f"{peer}_lowest"] = lowest.label
        return found

    def print(self, console: Console) -> None:
        """The table, and below it what its columns mean and what they were measured on."""
        columns = [
            _TableColumn("rows", lambda query: "" if query.rows is None else f"{query.rows:,}"),
            _TableColumn(
                "first ms",
                lambda query: _number(query.first_milliseconds),
                _number(_sum(query.first_milliseconds for query in self._answered)),
            ),
            *(each for name in self.columns for each in self._table_columns(name)),
        ]
        has_ratios = any(column.mean for column in columns)
        equal = sum(query.is_equal is True for query in self.queries)
        some = f"{equal} of {len(self.queries)} equal" if not self.all_right else ""
        columns.append(_TableColumn("answer", _verdict, some, mean="geometric" * has_ratios))
        table = Table(title=self.title, title_justify="left")
        numbered = all(query.label.isdecimal() for query in self.queries)
        table.add_column(self.heading, justify="right" if numbered else "left", no_wrap=True)
        for column in columns:
            justify: Literal["left", "right"] = "left" if column.heading == "answer" else "right"
            table.add_column(column.heading, justify=justify, no_wrap=True)
        for query in self.queries:
            table.add_row(query.label, *(column.cell(query) for column in columns))
        table.add_section()
        table.add_row("total", *(column.total for column in columns))
        if has_ratios:
            table.add_row("mean", *(column.mean for column in columns))
            table.add_row("lowest", *(column.lowest for column in columns))
        console.print(table)
        for query in self.queries:
            if query.problem is not None and not query.refused:
                problem = f"{self.heading} {query.label}: {query.problem}"
                console.print(problem, style="red", markup=False)
        refused = self.refused
        if refused:
            number = sum(map(len, refused.values()))
            console.print(
                f"refused for features that tqp lacks, {number} of {len(self.queries)}:", style="red"
            )
            for feature, labels in refused.items():
                console.print(f"  {feature}: {', '.join(labels)}", style="red", markup=False, highlight=False)
        notes = [self._meaning(name) for name in self.columns]
        if self.planning is not None:
            notes.append("planning and lowering: median {:.1f} ms, at most {:.1f} ms".format(*self.planning))
        if self.first_runs is not None:
            notes.append(str(self.first_runs))
        console.print("\n".join([*notes, str(self.setting)]), highlight=False, markup=False)

    def _table_columns(self, name: str) -> Iterator[_TableColumn]:
        """Times and ratios of the same text; of the others ratios, or tqp's times where there is nothing to compare."""
        peers = [peer for peer in PEERS if self.lowest(name, peer) is not None]
        if name == "same":
            yield self._times(name, "warm ms")
        elif not peers:
            yield self._times(name, f"{COLUMNS[name].heading} ms")
        for peer in peers:
            if name == "same":
                yield self._times(name, f"{PEERS[peer]}\nms", peer)
            yield self._ratios(name, COLUMNS[name].heading if len(self.columns) > 1 else "ratio", peer)

    def _times(self, name: str, heading: str, engine: str = "tqp") -> _TableColumn:
        total = _number(self.total(name, engine))
        return _TableColumn(heading, lambda query: _number(query.median(name, engine)), total)

    def _ratios(self, name: str, heading: str, peer: str) -> _TableColumn:
        lowest = self.lowest(name, peer)
        return _TableColumn(
            heading,
            lambda query: _number(query.ratio(name, peer), 2),
            mean=_number(self.geometric_mean_ratio(name, peer), 2),
            lowest=_number(lowest.ratio(name, peer) if lowest is not None else None, 2),
        )

    def _meaning(self, name: str) -> str:
        """A sentence about a column, and which query is lowest in it."""
        meaning = COLUMNS[name].meaning.format(runs=self.setting.runs, connections=CONNECTIONS)
        if self.lowest(name) is not None:
            meaning += f"; {COLUMNS[name].compared}"
        lowest = {PEERS[peer]: each.label for peer in PEERS if (each := self.lowest(name, peer)) is not None}
        found = [
            f"{self.heading} {label}{f' ({peer})' * (len(lowest) > 1)}" for peer, label in lowest.items()
        ]
        return f"{meaning}; lowest: {', '.join(found)}" if found else meaning


@dataclass(frozen=True, slots=True)
class _TableColumn:
    """The cell of each query, and those of the rows below the queries."""

    heading: str
    cell: Callable[[QueryReport], str]
    total: str = ""
    mean: str = ""
    lowest: str = ""


def _gibibytes(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"


def _number(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _sum(times: Iterable[float | None]) -> float | None:
    """None if any is missing."""
    total = 0.0
    for time in times:
        if time is None:
            return None
        total += time
    return total


def _verdict(query: QueryReport) -> str:
    if query.is_equal is None:
        return "not checked"
    if query.is_equal:
        return "equal"
    if query.refused:
        return "[red]refused[/red]"
    return "[red]DIFFERS[/red]" if query.rows is not None else "[red]FAILED[/red]"
