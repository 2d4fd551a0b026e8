"""Read the fields of a struct that the query makes from columns of their own, beside the struct."""

from __future__ import annotations

from tqp.core.schema import Field
from tqp.planner.algebra.expressions import Call, ColumnRef, Expression, Literal, transform
from tqp.planner.algebra.logical_plan import LogicalPlan, Project
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.rules.columns import reference
from tqp.planner.rules.context import OptimizerContext

#: By the id of a column of structs, the columns of its fields.
Columns = dict[int, tuple[Field, ...]]


def fields_of_structs(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """`s.a` over a projection `{'a': x, 'b': y} AS s` becomes x, which the projection puts out, too; a struct that nobody reads is pruned.

    Exact because a struct that is made is not NULL; where an outer join makes it so, its columns are NULL as well. Where computing a
    field may raise, the struct is read as it is.
    """
    columns: Columns = {}

    def rewrite(node: LogicalPlan) -> LogicalPlan:
        ids = frozenset[int]().union(*(each.output_ids for each in node.inputs))
        in_reach = {
            id: columns[id] for id in ids & columns.keys() if all(field.id in ids for field in columns[id])
        }
        if in_reach:
            node = node.map_expressions(
                lambda whole: transform(whole, lambda part: _from_columns(part, in_reach))
            )
        return _with_columns(node, in_reach, columns, context) if isinstance(node, Project) else node

    return context.rewrite(plan, rewrite)


def _from_columns(part: Expression, columns: Columns) -> Expression:
    """The column of the field that the part takes out of a struct."""
    if not isinstance(part, Call) or part.function != "struct_extract":
        return part
    struct, place = part.arguments
    fields = columns.get(struct.id) if isinstance(struct, ColumnRef) else None
    if fields is None or not isinstance(place, Literal) or type(place.value) is not int:
        return part
    return reference(fields[place.value - 1])


def _with_columns(plan: Project, below: Columns, columns: Columns, context: OptimizerContext) -> LogicalPlan:
    """The projection with the fields of the structs that it makes, or passes on from `below`, as columns.

    What they take to compute is computed once, by a projection beneath it.
    """
    schema, known = {field.id: field for field in plan.input.schema}, plan.input.field_facts
    computed: list[tuple[Field, Expression]] = []

    def column(value: Expression) -> Field:
        if isinstance(value, ColumnRef):
            return schema[value.id]
        computed.append((context.new_field("field", value.data_type), value))
        return computed[-1][0]

    pairs = {field.id: (field, output) for field, output in zip(plan.fields, plan.outputs, strict=True)}
    beside: list[Field] = []
    for field, output in [*pairs.values()]:
        if isinstance(output, ColumnRef):
            beside += below.get(output.id, ())
        elif _is_made(output) and not may_raise(output, known):
            made = columns[field.id] = tuple(map(column, output.inputs))
            pairs[field.id] = (field, output.with_inputs(tuple(map(reference, made))))
            beside += made
    if not beside:
        return plan
    for field in beside:
        pairs.setdefault(field.id, (field, reference(field)))
    source = plan.input
    if computed:
        added, values = zip(*computed, strict=True)
        source = Project(source, (*source.schema, *added), (*map(reference, source.schema), *values))
    fields, outputs = zip(*pairs.values(), strict=True)
    return Project(source, fields, outputs)


def _is_made(output: Expression) -> bool:
    return isinstance(output, Call) and output.function == "struct_pack"
