"""One query through both engines, and what to make of the two answers.

Verdicts: "equal"; "both refuse"; "unsupported"; "too large" (not compared); "fails in one" (a run-time error of what the
other engine's optimizer never computes, or of a value that cannot change the answer); "not judged" (a run-time error in one
of them, and the query too large to be interpreted); "needs ICU" (time zones in DuckDB,
which come as an extension); "not in DuckDB" (as it says itself); "intended" (as docs/semantics.md says); "DuckDB's own
fault" (an internal error, or its optimizer changes the answer); and the differences: "wrong", "crash", "raised" (by tqp
alone), "accepted" (what DuckDB's parser or binder refuses), "unnoticed" (a run-time error that tqp misses), "slow".
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from tempfile import TemporaryDirectory
from typing import Any, Self

import duckdb
import pyarrow as pa
from sqlglot import exp

import tqp
from tests.random.differences import difference, without_names_of_columns
from tests.random.engines import (
    MAX_ROWS,
    MEMORY_LIMIT,
    Oracle,
    Rows,
    SlowError,
    in_tqp,
    parquet_files_of,
)
from tests.random.medians import medians_through_doubles
from tests.random.messages import is_refused_by_duckdb_alone, is_refused_by_tqp_alone
from tests.random.possible_answers import Effect, effect_of_failures, may_raise
from tests.random.queries import RandomQuery
from tests.random.tables import RandomTable
from tests.random.tokens import shape_of, text_of, tokens_of
from tests.random.variants import (
    constant_parts,
    with_aliases_apart,
    with_computed_conditions,
    with_constant_keys_apart,
    with_constant_texts,
    with_grades_by_place,
    with_guarded_rounding,
    with_null_constants,
    with_ordered_limits,
    with_other_floats,
    with_plain_sums,
    with_random_ties,
    with_text_compared,
)
from tests.random.workarounds import around_answers, around_errors, around_hidden_columns
from tests.settings import streaming_small_files, switchable_rules

DIFFERENCES = ("wrong", "crash", "raised", "accepted", "unnoticed", "slow")

#: DuckDB raises these before any row is read; a SyntaxException is of the pattern of LIKE in a row.
_STATIC = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)
_STATIC_MESSAGES = (
    "Cannot combine types",
    "Cannot mix values",
    "Cannot compare values",
)
_MEDIANS = frozenset("median mad quantile_cont percentile_cont".split())
#: Windows may hold these, and then depend on which of the rows that tie comes first.
_PLACES_OF_ROWS = frozenset(
    "ROW_NUMBER NTILE LAG LEAD NTH_VALUE FIRST_VALUE LAST_VALUE FIRST LAST ROWS GROUP_CONCAT LISTAGG STRING_AGG".split()
)


@dataclass(frozen=True)
class Verdict:
    """`outcome` as above; `signature` is what a reduced query has to keep, and `detail` says it to a reader."""

    outcome: str
    signature: str = ""
    detail: str = ""
    duckdb: Rows | Exception | None = None
    tqp: Rows | BaseException | None = None

    @property
    def is_difference(self) -> bool:
        """Do the engines disagree in a way that counts?"""
        return self.outcome in DIFFERENCES


@dataclass
class Engines:
    """Both engines with the same tables; `settings` are those of `tqp.connect`.

    With the setting `files`, tqp's tables are Parquet files of small row groups, which each query is the first to read: it streams
    them where it can.
    """

    tables: Mapping[str, RandomTable]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self._oracle = Oracle(self.tables)
        settings = {name: value for name, value in self.settings.items() if name != "files"}
        self._connection = tqp.connect(**{"threads": 2, "memory_limit": MEMORY_LIMIT, **settings})
        self._without_rules: tqp.Connection | None = None
        self._files: dict[str, str] = {}
        self._until_exit = ExitStack()
        if self.settings.get("files"):
            self._until_exit.enter_context(streaming_small_files())
            folder = self._until_exit.enter_context(TemporaryDirectory())
            self._files = parquet_files_of(self._oracle.arrow, folder)
        for name, table in self._oracle.arrow.items():
            self._connection.register(name, self._files.get(name, table))
        return self

    def __exit__(self, *details: object) -> None:
        self._until_exit.close()
        self._oracle.close()
        self._connection.close()
        if self._without_rules is not None:
            self._without_rules.close()

    @property
    def arrow(self) -> Mapping[str, pa.Table]:
        """The tables, as DuckDB holds them."""
        return self._oracle.arrow

    def text_rows(self, table: RandomTable) -> tuple[tuple[str | None, ...], ...]:
        """What DuckDB holds in a table, as texts."""
        return self._oracle.text_rows(table)

    def compare(self, query: RandomQuery, is_mutated: bool = False) -> Verdict:
        """Runs the query in both."""
        if "WINDOW" in map(str.upper, tokens_of(query.rendered()[0])):  # whose `?` DuckDB counts first
            query = replace(query, style="$name")
        sql, parameters = query.rendered()
        expected = self._oracle.answer(sql, parameters)
        if isinstance(
            expected, duckdb.InternalException | duckdb.FatalException | duckdb.SerializationException
        ):
            return Verdict("DuckDB's own fault", duckdb=expected)
        if isinstance(expected, duckdb.InterruptException | duckdb.OutOfMemoryException) or (
            isinstance(expected, Rows) and len(expected.rows) > MAX_ROWS
        ):
            return Verdict("too large")
        for name, path in self._files.items():
            self._connection.register(name, path)
        actual = in_tqp(self._connection, sql, parameters)
        # Variants may write a parameter twice, which needs a name.
        sql, parameters = replace(query, style="$name").rendered()
        verdict = Verdict(*self._judge(sql, parameters, expected, actual, is_mutated), expected, actual)
        if verdict.is_difference and self._differs_by_medians(sql, parameters, expected):
            return Verdict("intended", "", "", expected, actual)
        return verdict

    def _judge(
        self,
        sql: str,
        parameters: Any,
        expected: Rows | Exception,
        actual: Rows | BaseException,
        is_mutated: bool,
    ) -> tuple[str, str, str]:
        if isinstance(actual, SlowError):
            if not isinstance(expected, Rows) or self._is_fast_by_default(sql, parameters):
                return "too large", "", ""
            return "slow", "slow", str(actual)
        if isinstance(actual, tqp.ResourceError):
            return "too large", "", ""
        if isinstance(actual, BaseException) and not isinstance(actual, tqp.Error):
            name, place = type(actual).__name__, _place(actual)
            return "crash", f"{name} {place}", f"{name} at {place}: {str(actual)[:300]}"
        if isinstance(actual, BaseException) and isinstance(expected, Exception):
            return "both refuse", "", ""
        if isinstance(actual, tqp.UnsupportedError):
            return "unsupported", actual.message.splitlines()[0], ""
        if isinstance(actual, tqp.Error):
            if isinstance(actual, tqp.ExecutionError) and not isinstance(
                self._oracle.answer(sql, parameters, optimize=False), Rows
            ):
                return "fails in one", "", ""
            message = actual.message.splitlines()[0]
            if is_refused_by_tqp_alone(message) or any(
                isinstance(self._oracle.answer(each, parameters), Exception)
                for each in around_hidden_columns(sql)
            ):
                return "intended", "", ""
            if isinstance(actual, tqp.ExecutionError):
                raises = may_raise(self._connection, sql, parameters)
                if raises is None:
                    return "not judged", "", ""
                assert isinstance(expected, Rows)
                effect = effect_of_failures(self._connection, sql, parameters, len(expected.rows))
                # DuckDB has a value for what its answer depends on.
                if raises and effect is not Effect.ANOTHER_ANSWER:
                    return "fails in one", "", ""
            apart = with_constant_keys_apart(sql)
            if apart != sql and isinstance(self._oracle.answer(apart, parameters), Exception):
                return "intended", "", ""
            if self._differs_by_null_constants(sql, parameters, expected):
                return "intended", "", ""
            return (
                "raised",
                f"{type(actual).__name__} {shape_of(message)}",
                f"{type(actual).__name__}: {message}",
            )
        assert isinstance(actual, Rows)
        if isinstance(expected, Exception):
            return self._judge_accepted(sql, parameters, expected, actual)
        problem = difference(sql, expected, actual, is_mutated)
        if problem and _has_group_keys(sql, expected, actual):
            return "DuckDB's own fault", "", ""
        if problem and self._depends_on_ties(sql, parameters, expected):
            return "intended", "", ""
        if problem and self._contradicts_itself(sql, parameters, actual):
            return "DuckDB's own fault", "", ""
        variants = (
            (
                *with_other_floats(sql),
                with_constant_keys_apart(sql),
                with_plain_sums(sql),
                with_grades_by_place(sql),
                *around_answers(sql),
            )
            if problem
            else ()
        )
        if any(self._is_same(each, parameters, actual) for each in variants if each != sql):
            return "intended", "", ""
        if problem and parameters and self._is_same(*_with_written_parameters(sql, parameters), actual):
            return "intended", "", ""  # a parameter is its value
        if problem and self._differs_by_null_constants(sql, parameters, expected):
            return "intended", "", ""
        if (
            problem
            and problem[0] in ("values", "number of rows")
            and self._takes_extremes_by_position(sql, parameters, expected, actual)
        ):
            return "DuckDB's own fault", "", ""
        return ("wrong", *problem) if problem else ("equal", "", "")

    def _differs_by_medians(self, sql: str, parameters: Any, expected: Rows | Exception) -> bool:
        """Whether nothing is left to explain where tqp rounds medians as DuckDB does, and what it raises of a wrapped one."""
        if _MEDIANS.isdisjoint(map(str.lower, tokens_of(sql))):
            return False
        with medians_through_doubles() as medians:
            answer = in_tqp(self._connection, sql, parameters)
            if (
                medians.have_wrapped
                and isinstance(expected, duckdb.Error)
                and not isinstance(expected, _STATIC)
            ):
                return True
            outcome, *_ = self._judge(sql, parameters, expected, answer, False)
        return outcome not in (*DIFFERENCES, "too large", "unsupported")

    def _depends_on_ties(self, sql: str, parameters: Any, expected: Rows) -> bool:
        """Whether DuckDB has another answer to a query of windows where rows of all tables, or that tie, stand in another order."""
        if _PLACES_OF_ROWS.isdisjoint(token.upper() for token in tokens_of(sql)):
            return False

        def is_other(answer: Rows | Exception) -> bool:
            return not isinstance(answer, Rows) or difference(sql, expected, answer, False) is not None

        oracle = Oracle(self.tables, is_reversed=True)
        try:
            if is_other(oracle.answer(sql, parameters)):
                return True
        finally:
            oracle.close()
        variant = with_random_ties(sql)
        answers = (self._oracle.answer(variant, parameters) for _ in range(5 if variant != sql else 0))
        return any(isinstance(answer, Rows) and is_other(answer) for answer in answers)

    def _contradicts_itself(self, sql: str, parameters: Any, actual: Rows) -> bool:
        """Whether DuckDB gives tqp's answer where it optimizes nothing, or to a query that says the same."""
        variants = (sql, with_guarded_rounding(sql), with_ordered_limits(sql))
        return any(self._is_same(each, parameters, actual) for each in variants)

    def _differs_by_null_constants(self, sql: str, parameters: Any, expected: Rows | Exception) -> bool:
        """Whether tqp does as DuckDB does where constants are written for conditions, and NULL for each constant that is NULL."""

        def type_of_null(text: str) -> str | None:
            question = f"SELECT typeof({text}) WHERE ({text}) IS NULL"
            answer = self._oracle.answer(question, _parameters_of(text, parameters))
            return str(answer.rows[0][0]).strip('"') if isinstance(answer, Rows) and answer.rows else None

        def condition(text: str) -> bool | None:
            answer = self._oracle.answer(f"SELECT ({text})::BOOLEAN", _parameters_of(text, parameters))
            return answer.rows[0][0] if isinstance(answer, Rows) else None

        variant = with_null_constants(with_computed_conditions(sql, condition), type_of_null)
        if variant == sql:
            return False
        answer = in_tqp(self._connection, variant, _parameters_of(variant, parameters))
        if isinstance(expected, Exception) or not isinstance(answer, Rows):
            return isinstance(expected, Exception) and isinstance(answer, tqp.Error)
        expected, answer = without_names_of_columns(expected), without_names_of_columns(answer)
        return difference(variant, expected, answer, False) is None

    def _is_same(self, variant: str, parameters: Any, actual: Rows) -> bool:
        """Whether DuckDB gives tqp's answer to a variant if it optimizes nothing, or fails then and optimizes."""
        answer = self._oracle.answer(variant, _parameters_of(variant, parameters), optimize=False)
        if not isinstance(answer, Rows):
            answer = self._oracle.answer(variant, _parameters_of(variant, parameters))
        return isinstance(answer, Rows) and difference(variant, answer, actual, False) is None

    def _judge_accepted(
        self, sql: str, parameters: Any, expected: Exception, actual: Rows
    ) -> tuple[str, str, str]:
        message = str(expected)
        is_of_keys = "(UBIGINT -> TIME WITH TIME ZONE)" in message or "UBIGINT" not in sql.upper()
        if is_of_keys and "TIME WITH TIME ZONE" in message and "UBIGINT" in message:
            return "DuckDB's own fault", "", ""  # which computes with a number that sorts as the time does
        if "No function matches" in message and "TIMESTAMP WITH TIME ZONE" in message:
            return "needs ICU", "", ""
        if re.search(
            r"not (\(?yet\)? )?supported|cannot have parameters in their source", message.splitlines()[0]
        ):
            return "not in DuckDB", "", ""
        if "window expressions cannot be volatile" in message and "random" not in map(
            str.lower, tokens_of(sql)
        ):
            return "intended", "", ""  # but for DuckDB's check that a subquery in a subquery has one row
        if parameters and isinstance(self._oracle.answer(*_with_written_parameters(sql, parameters)), Rows):
            return "intended", "", ""  # a parameter is its value
        if any(self._is_same(each, parameters, actual) for each in around_errors(sql)):
            return "intended", "", ""
        if is_refused_by_duckdb_alone(message, sql):
            return "intended", "", ""
        signature = f"{type(expected).__name__} {shape_of(message)}"
        detail = message.splitlines()[0]
        if isinstance(expected, _STATIC) or any(text in message for text in _STATIC_MESSAGES):
            variants = (with_constant_keys_apart(sql), with_aliases_apart(sql))
            if self._differs_by_null_constants(sql, parameters, expected) or any(
                self._is_same(each, parameters, actual) for each in variants if each != sql
            ):
                return "intended", "", ""
            if self._refuses_constant_texts(sql, parameters):
                return "intended", "", ""
            return "accepted", signature, detail
        if isinstance(expected, duckdb.NotImplementedException):
            return "not in DuckDB", "", ""
        # A row that fails may be one that tqp drops before it computes. Where neither engine optimizes, both compute all.
        if isinstance(self._oracle.answer(sql, parameters, optimize=False), Rows):
            return "fails in one", "", ""
        # DuckDB may compute what cannot change the answer.
        effect = effect_of_failures(self._connection, sql, parameters, len(actual.rows))
        if effect is Effect.NOTHING_FAILS and self._leaves_out_failing_constant(sql):
            return "fails in one", "", ""
        if effect in (Effect.NONE, Effect.UNKNOWN):
            return "fails in one" if effect is Effect.NONE else "not judged", "", ""
        if self._without_rules is None:
            rules = switchable_rules()
            self._without_rules = tqp.connect(threads=2, memory_limit=MEMORY_LIMIT, disabled_rules=rules)
            for name, table in self._oracle.arrow.items():
                self._without_rules.register(name, table)
        if isinstance(in_tqp(self._without_rules, sql, parameters), Rows):
            return "unnoticed", signature, detail
        return "fails in one", "", ""

    def _refuses_constant_texts(self, sql: str, parameters: Any) -> bool:
        """Whether tqp refuses the query, too, where constant texts are written that calls give."""

        def text_of(text: str) -> str | None:
            answer = self._oracle.answer(f"SELECT {text}", None)
            value = answer.rows[0][0] if isinstance(answer, Rows) and answer.types == ("VARCHAR",) else None
            return value if isinstance(value, str) else None

        variant = with_constant_texts(sql, text_of)
        return variant != sql and isinstance(in_tqp(self._connection, variant, parameters), tqp.BindError)

    def _leaves_out_failing_constant(self, sql: str) -> bool:
        """Whether a constant fails in both engines by itself: tqp does not compute it beside a constant that is NULL."""
        questions = (f"SELECT {part}" for part in constant_parts(sql))
        return any(
            isinstance(self._oracle.answer(each, None), duckdb.Error)
            and isinstance(in_tqp(self._connection, each, None), tqp.ExecutionError)
            for each in questions
        )

    def _takes_extremes_by_position(self, sql: str, parameters: Any, expected: Rows, actual: Rows) -> bool:
        """Whether ANY or ALL compare text with the least or greatest value of an ENUM that DuckDB finds by position."""

        def is_answer(of_subqueries: bool, rows: Rows) -> bool:
            variant = with_text_compared(sql, of_subqueries=of_subqueries)
            answer = self._oracle.answer(variant, parameters) if variant != sql else None
            return isinstance(answer, Rows) and sorted(map(str, answer.rows)) == sorted(map(str, rows.rows))

        # the left side is text anyway, and the right answer is that for texts
        return is_answer(False, expected) and is_answer(True, actual)

    def _is_fast_by_default(self, sql: str, parameters: Any) -> bool:
        """Whether it was slow only since a rule is switched off, or since batches of a few rows cost as much as one of many."""
        settings = {
            name: value
            for name, value in self.settings.items()
            if name not in ("batch_rows", "disabled_rules")
        }
        with Engines(self.tables, settings) as engines:
            return not isinstance(in_tqp(engines._connection, sql, parameters), SlowError)


def _parameters_of(sql: str, parameters: Any) -> Any:
    """Those that a variant still names."""
    if not isinstance(parameters, Mapping):
        return parameters
    tokens = set(tokens_of(sql))
    return {name: value for name, value in parameters.items() if f"${name}" in tokens}


def _with_written_parameters(sql: str, parameters: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The query with one spelling for all parameters of one value: the literal, or one of their names."""
    spellings: dict[str, str] = {}
    for name, value in parameters.items():
        literal = exp.convert(value).sql(dialect="duckdb") if isinstance(value, int | str) else f"${name}"
        spellings.setdefault(repr(value), literal)
    shared = {f"${name}": spellings[repr(value)] for name, value in parameters.items()}
    text = text_of([shared.get(token, token) for token in tokens_of(sql)])
    return text, _parameters_of(text, parameters)


#: Types by which DuckDB groups others: what they have there sorts as their values do.
_GROUP_KEYS = {"TIME WITH TIME ZONE": "UBIGINT", "BIT": "BLOB"}


def _has_group_keys(sql: str, expected: Rows, actual: Rows) -> bool:
    """Whether DuckDB's types are tqp's, but that some are those by which it groups, of which the query says nothing."""
    pairs = [pair for pair in zip(expected.types, actual.types, strict=False) if pair[0] != pair[1]]
    return bool(pairs) and all(
        _GROUP_KEYS.get(mine) == other and other not in sql.upper() for other, mine in pairs
    )


def _place(error: BaseException) -> str:
    """File and function of tqp's innermost frame."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/tests/" not in frame.filename]
    own = [
        frame for frame in frames if "site-packages" not in frame.filename and "/lib/" not in frame.filename
    ]
    frame = (own or frames)[-1]
    return f"{frame.filename.rsplit('/', 1)[-1]}:{frame.name}"
