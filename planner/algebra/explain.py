"""Plans as text: EXPLAIN, and EXPLAIN ANALYZE with what was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from tqp.core.datatypes import BOOLEAN
from tqp.core.schema import Field
from tqp.planner.algebra import logical_plan as logical
from tqp.planner.algebra.expression_text import Names, format_expression, format_operand
from tqp.planner.algebra.expressions import AggregateCall, Call, ColumnRef, Expression, conjuncts, walk
from tqp.planner.physical import plan as physical

__all__ = ["explain_logical", "explain_physical", "format_expression"]

Node = logical.LogicalPlan | physical.PhysicalPlan


def explain_logical(plan: logical.LogicalPlan, names: Names | None = None) -> str:
    """The plan as an indented tree, one node a line, inputs below their parent with the estimated rows."""
    from tqp.planner.physical.cardinality import Estimator

    estimator = Estimator()
    shown = _display_names(plan) if names is None else names

    def line(node: Node) -> list[str]:
        assert isinstance(node, logical.LogicalPlan)
        return [_logical_line(node, shown), f"~{_count(estimator.rows(node))} rows"]

    return "\n".join(_tree(plan, line))


def explain_physical(plan: physical.PhysicalPlan, annotations: Mapping[int, str] | None = None) -> str:
    """The plan as an indented tree, one node a line; `annotations[id(node)]` (what was measured) ends its line."""
    names = _display_names(plan)
    measured = annotations or {}

    def line(node: Node) -> list[str]:
        assert isinstance(node, physical.PhysicalPlan)
        parts = [_physical_line(node, names), f"~{_count(node.estimated_rows)} rows"]
        return [*parts, measured[id(node)]] if id(node) in measured else parts

    return "\n".join(_tree(plan, line))


def _tree(root: Node, describe: Callable[[Node], list[str]]) -> Iterator[str]:
    """Lines of the plan; the input of Shared nodes stands below the first of them only."""
    seen: set[int] = set()

    def lines(node: Node, depth: int) -> Iterator[str]:
        yield "  " * depth + "  ".join(part for part in describe(node) if part)
        if isinstance(node, logical.Shared | physical.Shared):
            if node.identifier in seen:
                return
            seen.add(node.identifier)
        for child in node.inputs:
            yield from lines(child, depth + 1)

    return lines(root, 0)


def _display_names(plan: Node) -> Names:
    """A name for each column id: `name`, or `name#id` where several columns have that name."""
    names: dict[int, str] = {}
    for node in _nodes(plan):
        for field in node.schema if isinstance(node, logical.LogicalPlan) else node.fields:
            names.setdefault(field.id, field.name or f"#{field.id}")
        # A column that is pruned right after it was used is in no field list, but in an expression.
        for expression in _expressions(node):
            for part in walk(expression):
                if isinstance(part, ColumnRef):
                    names.setdefault(part.id, part.name or f"#{part.id}")
    counts = Counter(names.values())
    return {
        identifier: name if counts[name] == 1 or name == f"#{identifier}" else f"{name}#{identifier}"
        for identifier, name in names.items()
    }


def _nodes(plan: Node) -> Iterable[Node]:
    return logical.walk_plan(plan) if isinstance(plan, logical.LogicalPlan) else physical.walk_physical(plan)


def _expressions(node: Node) -> Iterable[Expression]:
    if isinstance(node, logical.LogicalPlan):
        return node.expressions
    match node:
        case physical.Filter():
            return node.conjuncts
        case physical.Project():
            return node.outputs
        case physical.RuntimeFilter():
            return node.keys
        case physical.Join():
            sides = [side for bound in node.bounds for side in (bound.probe, bound.build)]
            return (*node.probe_keys, *node.build_keys, *sides, *node.residual)
        case physical.Aggregate():
            return (*node.keys, *node.aggregates)
        case physical.Sort():
            return tuple(key.expression for key in node.keys)
    return ()


def _logical_line(node: logical.LogicalPlan, names: Names) -> str:
    match node:
        case logical.Scan():
            return f"Scan {node.table_name} {_fields(node.fields, names)}"
        case logical.Values():
            return f"Values {_fields(node.fields, names)}"
        case logical.Filter():
            return f"Filter {_conjunction(conjuncts(node.condition), names)}"
        case logical.Project():
            return f"Project {_outputs(node.fields, node.outputs, names)}"
        case logical.Join():
            condition = _conjunction(conjuncts(node.condition), names)
            mark = "" if node.mark is None else f" as {names.get(node.mark.id, node.mark.name)}"
            return f"Join {node.join_type.value}{' on ' + condition if condition else ''}{mark}"
        case logical.Aggregate():
            return f"Aggregate{_grouping(node.keys, node.aggregate_fields, node.aggregates, names)}"
        case logical.Sort():
            return f"Sort by {_sort_keys(node.keys, names)}"
        case logical.Limit():
            return f"Limit{_limit(node.limit, node.offset)}"
        case logical.UnionAll():
            return f"UnionAll {_fields(node.fields, names)}"
        case logical.Shared():
            return f"Shared ${node.identifier} {_fields(node.fields, names)}"
    return type(node).__name__


def _physical_line(node: physical.PhysicalPlan, names: Names) -> str:
    match node:
        case physical.TableScan():
            return f"TableScan {node.table_name} {_fields(node.fields, names)}"
        case physical.ValuesScan():
            return f"ValuesScan {_fields(node.fields, names)}"
        case physical.Filter():
            return f"Filter {_conjunction(node.conjuncts, names)}"
        case physical.RuntimeFilter():
            keys = ", ".join(format_expression(key, names) for key in node.keys)
            by_runs = " [by runs of the sorted column]" if node.by_runs else ""
            return f"RuntimeFilter{by_runs} {keys} in build keys of join {node.join}"
        case physical.Project():
            return f"Project {_outputs(node.fields, node.outputs, names)}"
        case physical.Join():
            return _join_line(node, names)
        case physical.Aggregate():
            measures = node.fields[len(node.keys) :]
            grouping = _grouping(node.keys, measures, node.aggregates, names)
            how = f"{node.algorithm.value}{_packed(node.packing)}{_numbered(node, names)}{_factors(node.factors, names)}"
            return f"Aggregate [{how}]{grouping}"
        case physical.Sort():
            top = f" top{_limit(node.limit, node.offset)}" if node.limit is not None else ""
            return f"Sort{top} by {_sort_keys(node.keys, names)}"
        case physical.Limit():
            return f"Limit{_limit(node.limit, node.offset)}"
        case physical.UnionAll():
            return f"UnionAll {_fields(node.fields, names)}"
        case physical.Shared():
            return f"Shared ${node.identifier} {_fields(node.fields, names)}"
    return type(node).__name__


def _join_line(node: physical.Join, names: Names) -> str:
    keys = [
        f"{format_expression(probe, names)} {'IS NOT DISTINCT FROM' if null_equal else '='} "
        f"{format_expression(build, names)}"
        for probe, build, null_equal in zip(node.probe_keys, node.build_keys, node.null_equal, strict=True)
    ]
    keys += [
        format_expression(Call(bound.comparison, (bound.build, bound.probe), BOOLEAN), names)
        for bound in node.bounds
    ]
    how = f"{node.algorithm.value}{_packed(node.packing)}"
    how += (
        ", index of the table" * node.indexed
        + ", values by key" * node.by_key
        + ", all match" * node.all_match
    )
    text = f"Join {node.identifier} {node.join_type.value} [{how}]"
    if keys:
        text += f" on {' AND '.join(keys)}"
    if node.residual:
        text += f" where {_conjunction(node.residual, names)}"
    return text if node.mark is None else f"{text} as {names.get(node.mark.id, node.mark.name)}"


def _packed(packing: physical.KeyPacking | None) -> str:
    return "" if packing is None else f", {_count(packing.size)} keys"


def _numbered(node: physical.Aggregate, names: Names) -> str:
    parts = () if node.packing is None else node.packing.parts
    keys = [key for key, part in zip(node.keys, parts, strict=False) if part.dictionary is not None]
    return f", {', '.join(format_expression(key, names) for key in keys)} by number" if keys else ""


def _factors(factors: physical.Factors | None, names: Names) -> str:
    if factors is None:
        return ""
    columns = ", ".join(format_expression(column, names) for column in factors.columns)
    return f", by {columns} too until sums are multiplied"


def _conjunction(parts: Iterable[Expression], names: Names) -> str:
    return " AND ".join(format_operand(part, names, 3) for part in parts)


def _fields(fields: Iterable[Field], names: Names) -> str:
    return "(" + ", ".join(names.get(field.id, field.name) for field in fields) + ")"


def _outputs(fields: Iterable[Field], outputs: Iterable[Expression], names: Names) -> str:
    shown: list[str] = []
    for field, output in zip(fields, outputs, strict=True):
        text, name = format_expression(output, names), names.get(field.id, field.name)
        shown.append(text if text == name else f"{text} AS {name}")
    return ", ".join(shown)


def _grouping(
    keys: Iterable[Expression], fields: Iterable[Field], aggregates: Iterable[AggregateCall], names: Names
) -> str:
    grouped = ", ".join(format_expression(key, names) for key in keys)
    measures = _outputs(fields, aggregates, names)
    return (f" by {grouped}" if grouped else "") + (f": {measures}" if measures else "")


def _sort_keys(keys: Iterable[logical.SortKey], names: Names) -> str:
    return ", ".join(
        format_expression(key.expression, names)
        + (" DESC" if key.descending else "")
        + (" NULLS FIRST" if key.nulls_first else "")
        for key in keys
    )


def _limit(limit: int | None, offset: int) -> str:
    return (f" {limit}" if limit is not None else "") + (f" offset {offset}" if offset else "")


def _count(rows: float) -> str:
    """A number of rows in few characters.

    >>> _count(6_001_215), _count(42.4)
    ('6.00M', '42')
    """
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if rows >= size:
            scaled = rows / (1e3 if unit == "k" else size)
            return f"{scaled:.2f}{unit}" if scaled < 10 else f"{scaled:.3g}{unit}"
    return f"{rows:.0f}"
