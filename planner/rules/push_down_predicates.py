"""Evaluate every predicate as low in the plan as it can be, and derive more of them on the way.

What may raise stays above what shields it: a join, or a predicate that cannot sink as deep.

Derived: constants through join equalities (a = b and a = 5 gives b = 5), one-sided conditions from OR branches,
inner joins from outer ones where a predicate rejects the padded rows, anti joins where one keeps only these, semi and anti
joins from filters on marks.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace

from tqp.core.datatypes import BOOLEAN
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import (
    FALSE,
    TRUE,
    Call,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Parameter,
    column_ids,
    conjunction,
    conjuncts,
    has_prediction,
    predictions_in,
)
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    AsofJoin,
    Filter,
    Join,
    JoinType,
    LogicalPlan,
    Project,
    Recursive,
    Shared,
    Sort,
    UnionAll,
    Unnest,
    Values,
    Window,
)
from tqp.planner.algebra.may_raise import may_raise, raising_in
from tqp.planner.algebra.outcomes import null_rejected_columns, nullable, rejects_null
from tqp.planner.algebra.subquery_expressions import read_ids
from tqp.planner.functions.conditions import COMPARISONS
from tqp.planner.rules.columns import is_pass_through, reference, restore_schema, substitute
from tqp.planner.rules.constant_columns import Constants, constant_columns
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.joins.region import (
    connected_order,
    equivalence_classes,
    filtered_in_turn,
    flatten,
    held_back,
    with_condition,
)
from tqp.planner.rules.nulls import filtered, is_null, negate
from tqp.planner.rules.or_predicates import any_of, implied_by_branches
from tqp.planner.rules.shared_plans import rewrite_readers_first
from tqp.planner.rules.simplify_expressions import Simplifier

Parts = tuple[Expression, ...]


def push_down_predicates(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """Move filter conditions below projects, joins, aggregates, windows, unions and sorts; never below a LIMIT.

    Of a shared plan only the rows are computed that one of its readers wants.
    """
    pushing = _PushDown()
    return rewrite_readers_first(plan, pushing.part, pushing.finish)


class _PushDown:
    def __init__(self) -> None:
        self.wanted: dict[int, list[Expression]] = {}  # of a shared plan's rows, by each reader
        self.common: dict[int, Parts] = {}  # what holds for a shared plan's rows, as all readers wanted it

    def part(self, plan: LogicalPlan, identifier: int | None) -> LogicalPlan:
        """The plan (None) or a shared plan, after all that read it."""
        parts: Parts = ()
        if identifier is not None:
            wanted = self.wanted.get(identifier, [TRUE])
            parts = self.common[identifier] = () if TRUE in wanted else conjuncts(any_of(wanted))
        pushed = restore_schema(self.push(plan, parts), plan.schema)
        self._note_readers(pushed)
        return pushed

    def _note_readers(self, plan: LogicalPlan) -> None:
        match plan:
            case Shared():
                self.wanted.setdefault(plan.identifier, []).append(TRUE)
            case Filter(input=Shared() as reader):
                own: dict[int, Expression] = {
                    field.id: reference(source) for field, source in _renaming(reader)
                }
                parts = self.harmless(conjuncts(plan.condition), reader)
                cheap = tuple(part for part in parts if not has_prediction(part))
                self.wanted.setdefault(reader.identifier, []).append(substitute(conjunction(cheap), own))
            case _:
                for child in plan.inputs:
                    self._note_readers(child)

    def finish(self, node: LogicalPlan) -> LogicalPlan:
        """Readers need no conditions that the shared plan has."""
        if not isinstance(node, Filter) or not isinstance(node.input, Shared):
            return node
        own: dict[int, Expression] = {source.id: reference(field) for field, source in _renaming(node.input)}
        common = {substitute(part, own) for part in self.common[node.input.identifier]}
        parts = conjuncts(node.condition)
        left = tuple(part for part in parts if part not in common)
        return node if len(left) == len(parts) else filtered(node.input, left)

    def push(self, plan: LogicalPlan, parts: Parts) -> LogicalPlan:
        """The rows of `plan` on which all `parts` are true."""
        match plan:
            case Filter():
                down = self.sinking_past(parts, lambda part: True, plan)
                below = self.push(plan.input, _merge(conjuncts(plan.condition), down))
                return filtered(below, _without(parts, down))
            case Project():
                outputs = {field.id: output for field, output in zip(plan.fields, plan.outputs, strict=True)}
                down = _rewritten(parts, outputs)
                if down and any(isinstance(output, Literal) for output in plan.outputs):
                    simplifier = Simplifier(lambda: plan.input.field_facts)
                    down = _without(conjuncts(simplifier.condition(conjunction(down))), (TRUE,))
                    if FALSE in down:
                        return Values((), plan.schema)
                return plan.with_inputs((self.push(plan.input, down),))
            case Sort():
                return plan.with_inputs((self.push(plan.input, parts),))
            case Join():
                return self.join(plan, parts)
            case Aggregate():
                return self.aggregate(plan, parts)
            case Window():
                return self.window(plan, parts)
            case Unnest() | AsofJoin():
                return self.beside_first_input(plan, parts)
            case UnionAll():
                return self.union(plan, parts)
            case Shared():  # entered later
                return filtered(plan, parts)
            case Recursive():
                return filtered(
                    plan.map_inputs(lambda child: restore_schema(self.push(child, ()), child.schema)), parts
                )
            case _:
                return filtered(plan.map_inputs(lambda child: self.push(child, ())), parts)

    def sinking(self, parts: Parts, can_sink: Callable[[Expression], bool], plan: LogicalPlan) -> Parts:
        """The parts that go below, to rows with the facts of `plan`; what may raise, only if no part stays above it."""
        down = tuple(part for part in parts if can_sink(part))
        return down if len(down) == len(parts) else self.harmless(down, plan)

    def sinking_past(self, parts: Parts, can_sink: Callable[[Expression], bool], plan: LogicalPlan) -> Parts:
        """As `sinking`, past a node that sees only rows that passed the conditions below it; of these, some may wait as well."""
        down = self.sinking(parts, can_sink, plan)
        harmless = self.harmless(down, plan)
        return down if len(harmless) == len(down) or not _may_filter_fail(plan) else harmless

    def harmless(self, parts: Parts, plan: LogicalPlan) -> Parts:
        """The parts that raise for no row of `plan`."""
        return _without(parts, raising_in(parts, plan))

    def implied(self, parts: Iterable[Expression], plan: LogicalPlan) -> Parts:
        """What the ORs among the parts imply about the columns of `plan` alone, without what may raise."""
        ids = plan.output_ids
        return self.harmless(tuple(new for part in parts for new in implied_by_branches(part, ids)), plan)

    def aggregate(self, plan: Aggregate, parts: Parts) -> LogicalPlan:
        """Predicates on group keys drop whole groups, so they may drop the rows instead."""
        keys = {field.id: key for field, key in zip(plan.key_fields, plan.keys, strict=True)}
        down = self.sinking_past(
            parts, lambda part: bool(keys and read_ids(part)) and read_ids(part) <= keys.keys(), plan
        )
        implied = tuple(new for part in _without(parts, down) for new in implied_by_branches(part, keys))
        below = self.push(plan.input, _rewritten(_merge(down, self.harmless(implied, plan)), keys))
        return filtered(plan.with_inputs((below,)), _without(parts, down))

    def window(self, plan: Window, parts: Parts) -> LogicalPlan:
        """Predicates on what rows are partitioned by drop whole partitions; others change what functions see."""
        ids = plan.partition_ids
        down = self.sinking_past(parts, lambda part: bool(read_ids(part)) and read_ids(part) <= ids, plan)
        return filtered(plan.with_inputs((self.push(plan.input, down),)), _without(parts, down))

    def beside_first_input(self, plan: Unnest | AsofJoin, parts: Parts) -> LogicalPlan:
        """Predicates on the rows that hold the lists, or have the nearest rows beside them, drop these."""
        first, *others = plan.inputs
        down = self.sinking(parts, lambda part: plan.source_of(read_ids(part)) is first, plan)
        if isinstance(plan, AsofJoin):
            down = self.harmless(down, first)
        inputs = (self.push(first, down), *(self.push(other, ()) for other in others))
        return filtered(plan.with_inputs(inputs), _without(parts, down))

    def union(self, plan: UnionAll, parts: Parts) -> LogicalPlan:
        branches = []
        for branch in plan.branches:
            fields = branch.schema
            renamed: dict[int, Expression] = {
                field.id: reference(source) for field, source in zip(plan.fields, fields, strict=True)
            }
            branches.append(restore_schema(self.push(branch, _rewritten(parts, renamed)), fields))
        if all(new is old for new, old in zip(branches, plan.branches, strict=True)):
            return plan
        kept = [branch for branch in branches if not isinstance(branch, Values) or branch.rows]
        if len(kept) > 1:
            return replace(plan, branches=tuple(kept))
        (only,) = kept or branches[:1]
        return Project(only, plan.fields, tuple(map(reference, only.schema)))

    def join(self, plan: Join, parts: Parts) -> LogicalPlan:
        plan = _narrowed(plan, parts)
        match plan.join_type:
            case JoinType.INNER:
                return self.inner(plan, parts)
            case JoinType.LEFT | JoinType.SINGLE:
                return self.left(plan, parts)
            case JoinType.RIGHT | JoinType.FULL:
                return filtered(self._rebuilt(plan, (), (), conjuncts(plan.condition)), parts)
            case JoinType.MARK:
                return self.mark(plan, parts)
            case JoinType.SEMI | JoinType.ANTI | JoinType.NULL_AWARE_ANTI:
                return self.semi(plan, parts)

    def inner(self, plan: Join, parts: Parts) -> LogicalPlan:
        region = flatten(plan, parts)
        unpadded = tuple(_without_padding(relation, region.parts) for relation in region.relations)
        if any(new is not old for new, old in zip(unpadded, region.relations, strict=True)):
            return self.push(connected_order(unpadded, region.parts), ())
        held = held_back(region)
        free = _without(region.parts, held)
        free = _merge(free, _with_constants(free, plan, constant_columns(*region.relations)))
        all_parts = _merge(free, _transitive(free))
        ids = [relation.output_ids for relation in region.relations]
        own: list[list[Expression]] = [[] for _ in ids]
        shared: list[Expression] = []
        for part in all_parts:
            reads = read_ids(part)
            if not reads:  # where a constant is false, no relation has a row of which a key might fail
                for below in own:
                    below.append(part)
                continue
            home = next((i for i, available in enumerate(ids) if reads <= available), None)
            if home is not None:
                own[home].append(part)
                continue
            shared.append(part)
            for i, relation in enumerate(region.relations):
                if reads & ids[i]:
                    own[i].extend(self.implied((part,), relation))
        relations = tuple(
            self.push(relation, tuple(dict.fromkeys(self._for_models(below, relation, all_parts))))
            for relation, below in zip(region.relations, own, strict=True)
        )
        joined = connected_order(relations, shared)
        if any(_became_inner(new, old) for new, old in zip(relations, region.relations, strict=True)):
            return self.push(filtered_in_turn(joined, held, relations), ())  # the region has grown
        return filtered_in_turn(joined, held, relations)

    def _for_models(self, own: list[Expression], relation: LogicalPlan, parts: Parts) -> list[Expression]:
        """A relation's conditions, and IS NOT NULL of what models in them read where the region's others say so.

        A model may refuse NULL, and below a join it is no longer known that `a = b` drops those.
        """
        predictions = [call for part in own for call in predictions_in(part)]
        if not predictions:
            return own
        fields = relation.field_facts
        known = null_rejected_columns(conjunction(parts)) - null_rejected_columns(conjunction(tuple(own)))
        read = known & set[int]().union(*map(read_ids, predictions))
        return [*own, *(negate(is_null(reference(fields[id]))) for id in sorted(read) if fields[id].nullable)]

    def left(self, plan: Join, parts: Parts) -> LogicalPlan:
        if plan.join_type is JoinType.LEFT and (padded := _keeping_padding(plan, parts)):
            return self.padding(plan, _without(parts, padded))
        left_ids = plan.left.output_ids
        down = self.sinking(parts, lambda part: read_ids(part) <= left_ids, plan.left)
        above = _without(parts, down)
        joined = self._one_sided(plan, down, conjuncts(plan.condition))
        if joined.join_type is JoinType.SINGLE:
            checked = replace(joined, join_type=JoinType.LEFT)
            if checked.left_at_most_once:
                joined = checked
        return filtered(joined, above)

    def padding(self, plan: Join, parts: Parts) -> LogicalPlan:
        """The left rows without a partner, and NULL in the right side's columns."""
        left_ids = plan.left.output_ids
        down = tuple(part for part in parts if read_ids(part) <= left_ids)
        unmatched = self.semi(Join(plan.left, plan.right, JoinType.ANTI, plan.condition), down)
        nulls = (Literal(None, field.data_type) for field in plan.right.schema)
        outputs = (*map(reference, plan.left.schema), *nulls)
        return filtered(Project(unmatched, plan.schema, outputs), _without(parts, down))

    def semi(self, plan: Join, parts: Parts) -> LogicalPlan:
        """SEMI and the ANTIs: all predicates above read the left side."""
        left_ids, condition = plan.left.output_ids, conjuncts(plan.condition)
        down = self.harmless(parts, plan.left)
        above = _without(parts, down)
        if plan.join_type is JoinType.NULL_AWARE_ANTI:
            known = self._known(condition, plan)
            return filtered(self._rebuilt(plan, down, known, condition), above)
        if plan.join_type is JoinType.SEMI:
            left_only = self.sinking(condition, lambda part: _reads_only(part, left_ids), plan.left)
            down, condition = _merge(down, left_only), _without(condition, left_only)
        return filtered(self._one_sided(plan, down, condition), above)

    def _one_sided(self, plan: Join, down: Parts, condition: Parts) -> Join:
        """The join on `condition`, which is false for other rows of the right side than those that reach the join."""
        right_ids = plan.right.output_ids
        to_right = self.sinking(condition, lambda part: _reads_only(part, right_ids), plan.right)
        computed = _with_constants(condition, plan, constant_columns(plan.left))
        transitive = _transitive(_merge(down, _merge(condition, computed)))
        derived = tuple(part for part in _merge(computed, transitive) if column_ids(part) <= right_ids)
        below = _merge(to_right, _merge(derived, self.implied(condition, plan.right)))
        return self._rebuilt(plan, down, below, _without(condition, to_right))

    def _known(self, condition: Parts, plan: Join) -> Parts:
        """Conjuncts on the right side alone that are never NULL: rows where they are false cannot match or be unknown."""
        right_ids, fields = plan.right.output_ids, plan.right.field_facts
        own = self.sinking(condition, lambda part: _reads_only(part, right_ids), plan.right)
        return tuple(part for part in own if not nullable(part, fields))

    def mark(self, plan: Join, parts: Parts) -> LogicalPlan:
        assert plan.mark is not None
        mark = plan.mark
        down = self.sinking(parts, lambda part: mark.id not in read_ids(part), plan.left)
        above = _without(parts, down)
        join_type = None
        for part in above:
            if isinstance(part, ColumnRef):
                join_type = JoinType.SEMI
            elif (
                isinstance(part, Call) and part.function == "not" and isinstance(part.arguments[0], ColumnRef)
            ):
                join_type = JoinType.NULL_AWARE_ANTI if mark.nullable else JoinType.ANTI
        if join_type is None:
            condition = conjuncts(plan.condition)
            return filtered(self._rebuilt(plan, down, self._known(condition, plan), condition), above)
        joined = Join(plan.left, plan.right, join_type, plan.condition)
        known = Literal(join_type is JoinType.SEMI, BOOLEAN)
        rest = _without(_rewritten(above, {mark.id: known}), (negate(FALSE),))  # of NOT mark
        pushed = self.semi(joined, _merge(down, rest))
        fields = pushed.schema
        return Project(pushed, (*fields, replace(mark, nullable=False)), (*map(reference, fields), known))

    def _rebuilt(self, plan: Join, to_left: Parts, to_right: Parts, condition: Iterable[Expression]) -> Join:
        inputs = self.push(plan.left, to_left), self.push(plan.right, to_right)
        return with_condition(plan, condition).with_inputs(inputs)


def _reads_only(part: Expression, ids: Container[int]) -> bool:
    """True if the part reads columns, and none but these."""
    reads = read_ids(part)
    return bool(reads) and all(id in ids for id in reads)


def _without_padding(relation: LogicalPlan, parts: Parts) -> LogicalPlan:
    """Outer joins that pad less, if the region around them drops the padded rows, whatever else reads those in between."""
    if not isinstance(relation, Join):
        keeps_rows = isinstance(relation, Filter) or is_pass_through(relation)
        return relation.map_inputs(lambda child: _without_padding(child, parts)) if keeps_rows else relation
    narrowed = _narrowed(relation, parts)
    if narrowed is not relation or relation.join_type is JoinType.FULL:
        return narrowed
    left = _without_padding(relation.left, parts)
    right = (
        _without_padding(relation.right, parts) if relation.join_type is JoinType.INNER else relation.right
    )
    return relation.with_inputs((left, right))


def _keeping_padding(join: Join, parts: Parts) -> Parts:
    """The parts `x IS NULL` of a column of the right side that no row with a partner has NULL in."""
    fields, never_null = join.right.field_facts, null_rejected_columns(join.condition)
    return tuple(
        part
        for part in parts
        if isinstance(part, Call) and part.function == "is_null" and isinstance(part.arguments[0], ColumnRef)
        for field in [fields.get(part.arguments[0].id)]
        if field is not None and (not field.nullable or field.id in never_null)
    )


def _narrowed(join: Join, parts: Parts) -> Join:
    """The join without the padded rows for which a part is not true."""
    if join.join_type not in (JoinType.LEFT, JoinType.FULL):
        return join
    keeps_left = not any(rejects_null(part, join.right.output_ids) for part in parts)
    if join.join_type is JoinType.LEFT:
        return join if keeps_left else replace(join, join_type=JoinType.INNER)
    keeps_right = not any(rejects_null(part, join.left.output_ids) for part in parts)
    match keeps_left, keeps_right:
        case True, True:
            return join
        case True, False:
            return replace(join, join_type=JoinType.LEFT)
        case False, True:
            return Join(join.right, join.left, JoinType.LEFT, join.condition)
        case _:
            return replace(join, join_type=JoinType.INNER)


def _became_inner(new: LogicalPlan, old: LogicalPlan) -> bool:
    """True if a relation that was an outer join is an inner one now, and so part of the region around it."""
    return len(flatten(new).relations) > 1 and len(flatten(old).relations) == 1


def _transitive(parts: Parts) -> Parts:
    """Comparisons with constants, carried over to the columns that equalities make equal."""
    classes = equivalence_classes(parts)
    if not classes:
        return ()
    derived = []
    for part in parts:
        ids = column_ids(part)
        if len(ids) != 1 or not _compares_with_constants(part):
            continue
        (identifier,) = ids
        for members in classes:
            if identifier in members:
                others = (column for column in members.values() if column.id != identifier)
                derived += [substitute(part, {identifier: other}) for other in others]
    return tuple(derived)


def _with_constants(parts: Parts, join: Join, constants: Constants) -> Parts:
    """What the parts say of a join's other columns where some are constants, but for what may raise."""
    if not constants:
        return ()
    computed = (
        substitute(part, constants) for part in parts if not constants.keys().isdisjoint(read_ids(part))
    )
    known = tuple(part for part in computed if read_ids(part) and not may_raise(part, {}))
    return conjuncts(Simplifier(lambda: join.field_facts).condition(conjunction(known))) if known else ()


def _compares_with_constants(part: Expression) -> bool:
    if isinstance(part, InList):
        return isinstance(part.input, ColumnRef)
    return (
        isinstance(part, Call)
        and part.function in COMPARISONS
        and all(isinstance(argument, ColumnRef | Literal | Parameter) for argument in part.arguments)
    )


def _rewritten(parts: Parts, mapping: dict[int, Expression]) -> Parts:
    return tuple(piece for part in parts for piece in conjuncts(substitute(part, mapping)))


def _merge(first: Parts, second: Parts) -> Parts:
    return tuple(dict.fromkeys(first + second)) if first and second else first or second


def _without(parts: Parts, taken: Sequence[Expression]) -> Parts:
    return tuple(part for part in parts if part not in taken) if taken else parts


def _may_filter_fail(plan: LogicalPlan) -> bool:
    """May a condition of a plan raise, one of a filter or a join?"""
    own = plan.condition if isinstance(plan, Filter | Join) else TRUE
    return may_raise(own, {}) or any(map(_may_filter_fail, plan.inputs))


def _renaming(reader: Shared) -> Iterable[tuple[Field, Field]]:
    """The reader's fields with those of the shared plan."""
    return zip(reader.fields, reader.input.schema, strict=True)
