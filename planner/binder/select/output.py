"""What a bound query puts out, and the projections that produce it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from tqp.core.keywords import lower_ascii
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import AggregateCall, Cast, ColumnRef, Expression, Literal
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan, Project
from tqp.planner.algebra.node import grow
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.scope import MergedColumn, ScopeColumn


@dataclass(slots=True)
class Item:
    """One column of SELECT: an expression as written, or (`column`) what a star stands for."""

    node: exp.Expr | None
    name: str | None  # None: derived from the expression when it is needed
    alias: str | None = None
    column: ScopeColumn | MergedColumn | None = None
    is_aliased: bool = False  # by AS
    is_of_columns: bool = False  # its name is that of the column that COLUMNS(...) stands for


@dataclass(slots=True)
class Branch:
    """One operand of a set operation: its columns by name and by `texts`, as they are written and with their tables; and their places in the result."""

    names: Sequence[str]
    texts: Callable[[], Sequence[tuple[str, str]]] = lambda: ()
    places: Sequence[int] | None = None  # None: where they are in the operand

    def place_of_name(self, name: str) -> int | None:
        """Where the result has the first column of this name, if there is one."""
        names = [lower_ascii(each) for each in self.names]
        return self._place(names.index(lower_ascii(name))) if lower_ascii(name) in names else None

    def written(self) -> Iterator[tuple[int, str, str]]:
        """Where the result has its columns, each with its texts."""
        return ((self._place(index), *texts) for index, texts in enumerate(self.texts()))

    def _place(self, index: int) -> int:
        return index if self.places is None else self.places[index]

    def moved(self, places: Sequence[int]) -> Branch:
        """The same in a result in which these are the places of its columns."""
        return Branch(
            self.names, self.texts, [places[index] for index in self.places or range(len(self.names))]
        )


@dataclass(slots=True)
class BoundQuery:
    """A plan and its output columns. With `bind_exact`, `plan.schema` is exactly these columns in this order.

    `branches` are the SELECTs that a set operation of it combines.
    """

    plan: LogicalPlan
    columns: Sequence[ScopeColumn]
    branches: Sequence[Branch] = ()

    @staticmethod
    def exact(plan: LogicalPlan, names: Sequence[str], branches: Sequence[Branch] = ()) -> BoundQuery:
        """The query whose columns are those of the plan, under these names."""
        columns = [
            ScopeColumn(name, partial(_itself, made)) for name, made in zip(names, plan.schema, strict=True)
        ]
        return BoundQuery(plan, columns, branches)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def _itself(field: Field) -> Field:
    return field


def exact_project(
    context: BindContext, plan: LogicalPlan, values: Sequence[Expression], names: Sequence[str]
) -> Project:
    """A projection with one output for each value."""
    by_id = {made.id: made for made in plan.schema}
    fields: list[Field] = []
    outputs: list[Expression] = []
    taken: set[int] = set()
    for value, name in zip(values, names):
        made, output = _output(context, by_id, taken, value, name)
        fields.append(made)
        outputs.append(output)
    return Project(plan, tuple(fields), tuple(outputs))


def _output(
    context: BindContext, by_id: dict[int, Field], taken: set[int], value: Expression, name: str
) -> tuple[Field, Expression]:
    """A bare column keeps its id, but ids are unique: the second copy of a column is a cast to the type it has."""
    if isinstance(value, ColumnRef) and value.id in by_id:
        source = by_id[value.id]
        if value.id not in taken:
            taken.add(value.id)
            return source, value
        return context.new_field(name, source.data_type, source.nullable), Cast(value, source.data_type)
    nullable = not (isinstance(value, Literal) and value.value is not None)
    return context.new_field(name, value.data_type, nullable), value


def lazy_project(
    context: BindContext,
    plan: LogicalPlan,
    items: Sequence[Item],
    names: Sequence[str],
    values: Sequence[Expression | None],
) -> BoundQuery:
    """The output of a derived table, where each column comes into being when it is first referred to.

    Where every column is one of the plan's there is no projection at all. Else the Project, frozen for everyone else,
    grows while the enclosing query is bound: only that query shows which columns it needs.
    """
    own = {made.id for made in plan.schema}
    sources = {
        _source(item.column) if value is None else value.id if isinstance(value, ColumnRef) else value
        for item, value in zip(items, values)
    }
    projects = len(sources) < len(values) or any(
        value is not None and not (isinstance(value, ColumnRef) and value.id in own) for value in values
    )
    project = Project(plan, (), ())
    taken: set[int] = set()

    def make(item: Item, name: str, value: Expression | None) -> Field:
        """A field of its own for each column: `a AS x, a AS y` are two, of which GROUP BY may name one."""
        if value is None:
            assert isinstance(item.column, ScopeColumn)
            value = item.column.reference()
        if not projects:
            assert isinstance(value, ColumnRef)
            return Field(value.id, value.name, value.data_type)
        by_id = {each.id: each for each in plan.schema}
        made, output = _output(context, by_id, taken, value, name)
        grow(project, fields=(*project.fields, made), outputs=(*project.outputs, output))
        return made

    columns = [
        ScopeColumn(name, partial(make, item, name, value)) for item, name, value in zip(items, names, values)
    ]
    return BoundQuery(project if projects else plan, columns)


def _source(column: ScopeColumn | MergedColumn | None) -> object:
    """What tells the column from others: its id, if it has been referred to."""
    assert isinstance(column, ScopeColumn)
    return column.id or column


def distinct(plan: LogicalPlan, visible: int | None = None, hidden: Sequence[Field] = ()) -> LogicalPlan:
    """DISTINCT: group by every column, or by the first `visible` ones and take any value of the others as `hidden`."""
    references = list(map(ColumnRef.of, plan.schema))
    keys = tuple(references[:visible])
    calls = tuple(
        AggregateCall("any_value", (reference,), reference.data_type) for reference in references[len(keys) :]
    )
    return Aggregate(plan, plan.schema[: len(keys)], keys, tuple(hidden), calls)
