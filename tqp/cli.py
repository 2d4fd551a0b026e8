"""The `tqp` command: `tqp sql`, `tqp explain`, `tqp tpch`, `tqp tpcds` and `tqp bench`.

Results go to standard output, everything else to standard error. Exit status: 0; 1 for a query that fails or a
benchmark answer that differs; 2 for a command that makes no sense.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

import tqp
from tqp.core.backends import BACKEND_CHOICES
from tqp.data.results.formats import FORMATS, write_table
from tqp.measuring.columns import CHOICES, CHOICES_OF_FIXED_TEXTS, COMPARED, PEERS

if TYPE_CHECKING:
    from tqp.bench.case import Suites
    from tqp.measuring.measure import Engine
    from tqp.measuring.report import BenchmarkReport


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line `arguments` (without the program's name); returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except tqp.Error as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader (`| head`) has seen enough. Python would complain again when it flushes at exit.
        sys.stdout = None
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tqp", description="SQL on PyTorch.")
    parser.add_argument("--version", action="version", version=f"tqp {tqp.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="command")

    sql = commands.add_parser("sql", help="run a query and print its result")
    _add_query_arguments(sql)
    sql.add_argument(
        "--format", choices=FORMATS, default="table", help="arrow is an IPC stream (default: %(default)s)"
    )
    _add_profile_argument(sql)
    sql.set_defaults(run=_run_sql)

    explain = commands.add_parser("explain", help="print how a query would be run")
    _add_query_arguments(explain)
    explain.add_argument("--analyze", action="store_true", help="run it, and add what was measured")
    explain.set_defaults(run=_run_explain)

    benchmark = commands.add_parser("tpch", help="run the TPC-H queries and check their answers")
    benchmark.add_argument("--queries", metavar="LIST", help="for example 1,6,10-12 (default: all)")
    _add_table_arguments(benchmark, CHOICES)
    _add_benchmark_arguments(benchmark)
    benchmark.set_defaults(run=_run_tpch)

    tpcds = commands.add_parser("tpcds", help="run queries of TPC-DS from files and check their answers")
    tpcds.add_argument(
        "--queries", type=Path, required=True, metavar="DIR", help="the folder with the queries, *.sql"
    )
    tpcds.add_argument("--only", default="", metavar="TEXT", help="files with this text in their names")
    _add_table_arguments(tpcds, CHOICES_OF_FIXED_TEXTS)
    _add_benchmark_arguments(tpcds)
    tpcds.set_defaults(run=_run_tpcds)

    bench = commands.add_parser("bench", help="measure operators one by one, or predictions")
    suites = bench.add_subparsers(title="benchmarks", required=True, metavar="benchmark")
    operators = suites.add_parser("operators", help="joins, group-bys, sorts, patterns, expressions")
    _add_case_arguments(operators, 5_000_000)
    _add_benchmark_arguments(operators)
    operators.set_defaults(run=_run_operators)

    analyses = suites.add_parser("analyses", help="questions about sensors, a shop, clicks and markets")
    _add_case_arguments(analyses, 2_000_000)
    _add_benchmark_arguments(analyses)
    analyses.set_defaults(run=_run_analyses)

    predict = suites.add_parser("predict", help="queries that score rows with trained models")
    _add_case_arguments(predict, 1_000_000)
    predict.add_argument(
        "--compare",
        type=_names(PEERS),
        default=[],
        metavar="LIST",
        help="duckdb (with an Arrow function that calls the original model), pandas, or both with a comma between",
    )
    _add_measuring_arguments(predict, runs=3)
    predict.set_defaults(run=_run_predictions)
    return parser


def _add_query_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", help="the SQL text; - reads it from standard input")
    parser.add_argument(
        "--table",
        action="append",
        default=[],
        type=_table_argument,
        metavar="NAME=PATH",
        help="a Parquet or CSV file to query as NAME; may be repeated",
    )
    _add_engine_arguments(parser)


def _add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ... (default: %(default)s)")
    parser.add_argument(
        "--backend",
        choices=BACKEND_CHOICES,
        default="auto",
        help="host: arrays, on the CPU; torch: torch's operations, on any device (default: host on the CPU)",
    )
    parser.add_argument("--threads", type=_positive, metavar="N", help="worker threads (default: one a core)")
    parser.add_argument(
        "--batch-rows", type=_positive, metavar="N", help="rows a batch (default: chosen by tqp)"
    )
    parser.add_argument(
        "--disable-rule",
        dest="disabled_rules",
        action="append",
        default=[],
        metavar="NAME",
        help="plan without this optimizer rule; may be repeated",
    )
    parser.add_argument(
        "--fuse",
        choices=["off", "on", "background"],
        default="off",
        help="compile elementwise parts with torch.compile, where that is quicker (default: %(default)s)",
    )


def _add_profile_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--profile",
        type=Path,
        metavar="FILE",
        help="write a trace for ui.perfetto.dev or chrome://tracing, and print the times of operators",
    )


def _add_table_arguments(parser: argparse.ArgumentParser, columns: Sequence[str]) -> None:
    parser.add_argument("--sf", type=float, default=1.0, help="scale factor, about 1 GB each (default: 1)")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="a folder of Parquet files to use instead of generated ones"
    )
    parser.add_argument(
        "--shuffled",
        action="store_true",
        help="over tables whose rows are in random order, which are kept beside the generated ones",
    )
    parser.add_argument(
        "--columns",
        type=_names(columns),
        metavar="LIST",
        help=f"what to measure, of {','.join(columns)} (default: all but pandas with --compare, else same)",
    )


def _add_case_arguments(parser: argparse.ArgumentParser, rows: int) -> None:
    parser.add_argument(
        "--rows",
        type=_positive,
        default=rows,
        metavar="N",
        help="of the largest tables (default: %(default)s)",
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="cases with this text in their names")


def _add_measuring_arguments(parser: argparse.ArgumentParser, runs: int) -> None:
    parser.add_argument(
        "--runs", type=_positive, default=runs, metavar="N", help="warm runs (default: %(default)s)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured as JSON too")
    _add_engine_arguments(parser)


def _add_benchmark_arguments(parser: argparse.ArgumentParser) -> None:
    _add_measuring_arguments(parser, runs=5)
    parser.add_argument(
        "--compare", choices=["duckdb"], help="time DuckDB too, on the same number of threads"
    )
    parser.add_argument("--no-verify", action="store_true", help="do not check the answers")
    _add_profile_argument(parser)


def _run_sql(options: argparse.Namespace) -> int:
    query, file = _query_text(options.query), options.profile
    if file is not None and not file.absolute().parent.is_dir():
        print(f"tqp sql: --profile: {file.absolute().parent} is not a folder", file=sys.stderr)
        return 2
    with _connect(options) as connection:
        if file is None:
            answer = connection.sql(query)
        else:
            with connection.trace() as trace:
                answer = connection.sql(query)
            trace.write(file)
            print(trace, file=sys.stderr)
        write_table(answer._table, options.format, sys.stdout)
    return 0


def _run_explain(options: argparse.Namespace) -> int:
    with _connect(options) as connection:
        print(connection.explain(_query_text(options.query), analyze=options.analyze))
    return 0


def _run_tpch(options: argparse.Namespace) -> int:
    # The other commands do without the benchmark and what it needs.
    from tqp.tpch.query import parse_numbers
    from tqp.tpch.run import run_benchmark

    def run(console: Console) -> BenchmarkReport:
        numbers = parse_numbers(options.queries)
        engine = _measured_engine(options, COMPARED)
        return run_benchmark(engine, console, options.sf, numbers, options.data, options.shuffled)

    return _report("tqp tpch", run, options.json)


def _run_tpcds(options: argparse.Namespace) -> int:
    from tqp.bench.tpcds import run_tpcds

    def run(console: Console) -> BenchmarkReport:
        columns = [name for name in COMPARED if name in CHOICES_OF_FIXED_TEXTS]
        engine = _measured_engine(options, columns)
        source, only = options.queries, options.only
        return run_tpcds(engine, console, source, only, options.sf, options.data, options.shuffled)

    return _report("tqp tpcds", run, options.json)


def _run_operators(options: argparse.Namespace) -> int:
    from tqp.bench.operator_cases import SUITES

    return _run_cases(options, "Operators", SUITES)


def _run_analyses(options: argparse.Namespace) -> int:
    from tqp.bench.analysis_cases import SUITES

    return _run_cases(options, "Analyses", SUITES)


def _run_cases(options: argparse.Namespace, title: str, suites: Suites) -> int:
    from tqp.bench.run import run_cases

    def run(console: Console) -> BenchmarkReport:
        engine = _measured_engine(options)
        return run_cases(title, suites, engine, console, options.rows, options.only)

    return _report(f"tqp bench {title.lower()}", run, options.json)


def _run_predictions(options: argparse.Namespace) -> int:
    from tqp.bench.predict import run_predictions
    from tqp.measuring.measure import Engine

    def run(console: Console) -> BenchmarkReport:
        engine = Engine(runs=options.runs, **_connect_options(options))
        return run_predictions(engine, console, options.rows, options.only, options.compare)

    return _report("tqp bench predict", run, options.json)


def _names(choices: Collection[str]) -> Callable[[str], list[str]]:
    """Reads a list of some of `choices`, with commas between."""

    def parse(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        if not names or not set(names) <= set(choices):
            raise argparse.ArgumentTypeError(f'"{text}" is not a list of {", ".join(choices)}')
        return list(dict.fromkeys(names))

    return parse


def _measured_engine(options: argparse.Namespace, columns: Sequence[str] = ("same",)) -> Engine:
    """`columns`: those that are compared where no others are asked for."""
    from tqp.measuring.measure import Engine

    compare = options.compare is not None
    return Engine(
        runs=options.runs,
        compare=compare,
        verify=not options.no_verify,
        profile=options.profile,
        columns=getattr(options, "columns", None) or (columns if compare else ("same",)),
        **_connect_options(options),
    )


def _report(command: str, run: Callable[[Console], BenchmarkReport], json_file: Path | None) -> int:
    """Runs a benchmark and prints what it measured."""
    from tqp.measuring.errors import UsageError

    try:
        if json_file is not None and not json_file.absolute().parent.is_dir():
            raise UsageError(f"--json: {json_file.absolute().parent} is not a folder")
        report = run(Console(stderr=True))
    except UsageError as error:
        print(f"{command}: {error}", file=sys.stderr)
        return 2
    # Where output goes to a file, there is no terminal to fit: lines keep their length.
    report.print(Console() if sys.stdout.isatty() else Console(width=200))
    if json_file is not None:
        json_file.write_text(report.to_json() + "\n", encoding="utf-8")
    return 0 if report.all_right else 1


def _connect_options(options: argparse.Namespace) -> dict[str, Any]:
    """What `tqp.connect` is given, and an engine to measure."""
    names = ("device", "threads", "batch_rows", "disabled_rules", "fuse", "backend")
    return {name: getattr(options, name) for name in names}


def _connect(options: argparse.Namespace) -> tqp.Connection:
    connection = tqp.connect(**_connect_options(options))
    connection.execute("SET enable_progress_bar = true")
    for name, path in options.table:
        connection.register(name, path)
    return connection


def _query_text(argument: str) -> str:
    return sys.stdin.read() if argument == "-" else argument


def _table_argument(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f'"{text}" is not NAME=PATH')
    return name, path


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number above 0')
    return value


if __name__ == "__main__":
    sys.exit(main())
