"""A first query that reduces all rows of one large file: its columns are decoded batch by batch, and none is kept.

That spares the memory that columns would fill, whose first touch takes longer than the query's own work. A second query that
reads one of the columns encodes it whole, for all that come after it. Text that is grouped by, or collected, is encoded the first
time: groups need its dictionary, which is most of that work.
"""

from __future__ import annotations

from tqp.compiler import Compiler
from tqp.core.process.deep_recursion import call_deep
from tqp.data.sources.base import Source
from tqp.planner.algebra.expressions import Expression, column_ids
from tqp.planner.algebra.logical_plan import Aggregate, Filter, Limit, LogicalPlan, Project, Scan, Sort
from tqp.planner.algebra.node import walk_plan
from tqp.planner.bind import BoundStatement
from tqp.planner.functions.registry import AGGREGATES
from tqp.runtime.lowering.stream import BATCH_KINDS
from tqp.runtime.program import TensorProgram

#: Columns of fewer bytes, before compression, are encoded: there is little to be spared.
_LARGE = 128 << 20
#: A LIMIT keeps so many rows at most of each batch.
_FEW_ROWS = 100_000


def streaming_program(compiler: Compiler, statement: BoundStatement) -> TensorProgram | None:
    """A program for one run that reads the statement's one table batch by batch; None where that does not pay, or cannot be.

    Running it may raise ReadAgainError, after which the statement has none.
    """
    if "streaming" in compiler.disabled_rules or not compiler.executor.cuts_batches:
        return None
    scans = [node for node in walk_plan(statement.plan, into_subqueries=True) if isinstance(node, Scan)]
    if len(scans) != 1 or not _reduces(statement.plan, scans[0]):
        return None
    [scan] = scans
    table = (
        scan.table.streamed(scan.columns, _searched(statement.plan, scan), _LARGE)
        if isinstance(scan.table, Source)
        else None
    )
    if table is None:
        return None
    streamed = statement.over({scan.table: table})
    streamed.encode_columns()
    program = call_deep(lambda: compiler.program(streamed))
    return program if _reads_once(program, table) else None


def _reduces(plan: LogicalPlan, scan: Scan) -> bool:
    """Whether of the table's rows no more than filters leave come to an aggregate or a small LIMIT."""
    is_reduced = False
    while plan is not scan:
        match plan:
            case Filter() | Project() | Sort():
                pass
            case Aggregate():
                is_reduced = True
            case Limit(limit=int(limit), offset=offset) if limit + offset <= _FEW_ROWS:
                is_reduced = True
            case _:
                is_reduced = False
        if len(plan.inputs) != 1:
            return False
        [plan] = plan.inputs
    return is_reduced


def _searched(plan: LogicalPlan, scan: Scan) -> set[str]:
    """The columns of text of which a dictionary is of no use to the plan, one chain of nodes: no values are grouped or collected."""
    #: Of each field of text, the columns that it is made of.
    origins = {
        field.id: {name}
        for field, name in zip(scan.schema, scan.columns, strict=True)
        if field.data_type.is_string
    }
    grouped: set[str] = set()

    def texts(expression: Expression) -> set[str]:
        return set().union(*(origins.get(each, ()) for each in column_ids(expression)))

    for node in reversed(list(walk_plan(plan))):
        if isinstance(node, Project):
            made = list(zip(node.fields, node.outputs, strict=True))
        elif isinstance(node, Aggregate):
            made = list(zip(node.key_fields, node.keys, strict=True))
            grouped.update(*(texts(key) for key in node.keys if not _is_number(key)))
            for call in node.aggregates:
                if call.distinct or AGGREGATES[call.function].merged_by is None:
                    grouped.update(*(texts(each) for each in call.arguments if not _is_number(each)))
        else:
            continue
        origins |= {field.id: texts(value) for field, value in made if not _is_number(value)}
    return set(scan.columns) - grouped


def _is_number(value: Expression) -> bool:
    """Whether its values need no dictionary."""
    return not (value.data_type.is_string or value.data_type.is_composed)


def _reads_once(program: TensorProgram, table: Source) -> bool:
    """Whether one pipeline reads the table, by batches only."""
    slots = {slot for slot, each in program.tables.items() if each.source is table}
    readers = [step for step in program.steps() if not slots.isdisjoint(step.reads)]
    return (
        program.result_slot not in slots
        and len(readers) <= 1
        and all(slots.isdisjoint(step.breaker.reads) for step in readers)
        and all(item.kind in BATCH_KINDS for step in readers for item in step.inputs if item.slot in slots)
    )
