"""CREATE SEQUENCE, and what depends on sequences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tqp.catalog.sequences import Sequence
from tqp.catalog.state import CatalogState
from tqp.core.datatypes import BIGINT
from tqp.core.definitions import SequenceDefinition
from tqp.core.errors import BindError
from tqp.core.keywords import lower_ascii, quoted, quoted_text
from tqp.core.names import MAIN, TEMPORARY, LookedUp, ObjectName
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.parse import Span, parse
from tqp.planner.syntax.clauses import CreateSequence
from tqp.planner.syntax.tokens import dotted_names, tokenize
from tqp.planner.syntax.words import TEXT
from tqp.result import Result
from tqp.statements.execution import Execution, is_there, made


def create_sequence(execution: Execution) -> Result:
    """Makes a sequence. Raises BindError for bounds that do not go together."""
    clauses = execution.command.clauses
    assert isinstance(clauses, CreateSequence)
    name = clauses.name
    with execution.session.catalog.writing:
        schema = execution.schema_for(name, clauses.temporary)
        definition = replace(_definition(clauses), schema=schema)
        is_known = definition.place in execution.state.sequences
        if is_there(clauses, "sequence", "sequence" if is_known else None):
            return made()
        check_unused(execution, execution.state, definition.place, name.span)
        execution.session.catalog.change(lambda state: state.with_sequence(Sequence(definition)))
    return made()


def _definition(clauses: CreateSequence) -> SequenceDefinition:
    """With DuckDB's defaults: upwards from 1, downwards from -1."""
    lowest, highest = BIGINT.bounds
    step = 1 if clauses.increment is None else clauses.increment
    low, high = (1, highest) if step > 0 else (lowest, -1)
    low = low if clauses.minimum is None else clauses.minimum
    high = high if clauses.maximum is None else clauses.maximum
    first = low if step > 0 else high
    start = first if clauses.start is None else clauses.start

    def refuse(reason: str) -> BindError:
        return BindError(f'the sequence "{clauses.name.text}" {reason}', clauses.name.span)

    if not step:
        raise refuse("has an INCREMENT of zero")
    if not all(lowest <= value <= highest for value in (step, low, high, start)):
        raise refuse("has numbers that are no BIGINT")
    if low >= high:
        raise refuse(f"has a MINVALUE, {low}, that is not below its MAXVALUE, {high}")
    if not low <= start <= high:
        raise refuse(f"has a START, {start}, that does not lie between {low} and {high}")
    return SequenceDefinition(clauses.name.text, start, step, low, high, clauses.cycles, clauses.temporary)


def check_unused(execution: Execution, state: CatalogState, place: ObjectName, span: Span) -> None:
    """Raises BindError where the default of a column draws from the sequence there."""
    for table in tables_with(execution, state, place):
        raise BindError(
            f'table "{table.name}" draws from the sequence "{place.name}"; DROP ... CASCADE drops both', span
        )


def tables_with(execution: Execution, state: CatalogState, place: ObjectName) -> Iterator[StoredTable]:
    """The tables of which a default draws from the sequence there."""
    for table in state.tables.values():
        if isinstance(table, StoredTable):
            defaults = [column.default for column in table.definition.columns if column.default is not None]
            used = (
                execution.session.queries.names_read(parse(f"SELECT {default}"), state, "sequence")
                for default in defaults
                if "nextval" in lower_ascii(default)
            )
            if any(place in places for places in used):
                yield table


def with_schemas(default: str, state: CatalogState, schema: str) -> str:
    """The default of a column of a table in the schema, with that of each sequence that it draws from, which no search path finds then."""
    tokens = tokenize(default)
    for index in reversed(range(2, len(tokens.stops) - 1)):
        calls = tokens.kinds[index - 1] == "(" and lower_ascii(tokens.source(index - 2)) in (
            "nextval",
            "currval",
        )
        names = dotted_names(tokens.source(index)[1:-1]) if calls and tokens.kinds[index] == TEXT else None
        searched = state.searched([schema])
        found = (
            None
            if names is None or len(names) > 1
            else state.found(LookedUp(lower_ascii(names[0]), searched), state.sequences)
        )
        if found is not None and found.schema not in (MAIN, TEMPORARY):
            text = quoted_text(f"{quoted(state.schemas[found.schema])}.{quoted(found.name)}")
            default = default[: tokens.starts[index]] + text + default[tokens.stops[index] :]
    return default
