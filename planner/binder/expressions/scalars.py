"""Scalar expressions: a sqlglot node in, a typed expression over column ids out.

`ExpressionBinder` is for one clause of one query block; `_HANDLERS` says who binds each kind of node. Operators are in
`written_operators`, function calls in `calls`, subqueries in `subqueries`, aggregates in `aggregates`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlglot import exp

from tqp.core.datatypes import BIT, BLOB, NULL, VARCHAR, DataType
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.core.names import DATABASE, TEMPORARY
from tqp.core.text.bits import parse_bits
from tqp.core.units import UNIT_NAMES
from tqp.planner.algebra.expressions import FALSE, TRUE, Expression, Literal, column_ids, walk
from tqp.planner.algebra.subquery_expressions import Subquery
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions import calls, comparisons, operators, subqueries, written_operators
from tqp.planner.binder.expressions.aggregates.aggregates import AggregateCollector
from tqp.planner.binder.expressions.aggregates.windows import WindowCollector
from tqp.planner.binder.expressions.coercion import cast_to, compare, condition_of
from tqp.planner.binder.expressions.collations import bind_collate
from tqp.planner.binder.expressions.forms import json_forms, special_forms
from tqp.planner.binder.expressions.forms.cases import make_case
from tqp.planner.binder.expressions.forms.clock import bind_timezone, clock_word
from tqp.planner.binder.expressions.forms.short_forms import SESSION_WORDS
from tqp.planner.binder.expressions.intervals import interval_from, to_interval_cast
from tqp.planner.binder.expressions.literals import bind_number, bind_placeholder
from tqp.planner.binder.expressions.nested import lambdas, list_calls
from tqp.planner.binder.expressions.nested import parts as nested_parts
from tqp.planner.binder.expressions.nested import values as nested_values
from tqp.planner.binder.expressions.nested.arrays import array_of, bind_distance
from tqp.planner.binder.expressions.type_names import bind_type
from tqp.planner.binder.scope import ColumnUse, QualifiedTable, Qualifier, Scope
from tqp.planner.binder.select.output import Item
from tqp.planner.binder.select.unnests import UnnestCollector
from tqp.planner.binder.select.written import Written
from tqp.planner.binder.text_constants import varying
from tqp.planner.binder.unsupported_clauses import check_understood
from tqp.planner.catalog_protocol import Catalog
from tqp.planner.functions.type_rules import SourceLiteral, becomes_unasked, settle
from tqp.planner.parse import UNASKED, Span, head_span, span_of

#: SELECT aliases that a clause may use, by name in lower case.
Aliases = dict[str, Item]


@dataclass(slots=True)
class ExpressionBinder:
    """Binds the expressions of one clause.

    `aggregates` and `windows` are None where such calls are not allowed (`clause` names the place in the message); `aliases` are
    names of SELECT that stand for their expressions where no column has the name.
    """

    context: BindContext
    scope: Scope
    clause: str
    aggregates: AggregateCollector | None = None
    windows: WindowCollector | None = None
    aliases: Aliases = field(default_factory=dict)
    # by id of the node, each with the columns it names outside aggregates; shared by the clauses of a block
    bound_items: dict[int, tuple[Expression, Sequence[ColumnUse]]] | None = None
    written_keys: Written[Expression] | None = None  # group keys that are no columns
    keys_before_aliases: list[Expression] | None = None  # HAVING: the group keys
    inside_aggregate: bool = False
    #: What the parameters of the lambdas around stand for, by name in lower case, the outermost first.
    lambdas: list[dict[str, Expression]] = field(default_factory=list)
    unnests: UnnestCollector | None = None
    _open_aliases: list[str] = field(default_factory=list)

    def for_scope(self, scope: Scope) -> ExpressionBinder:
        """A binder for an aggregate that belongs to an enclosing block."""
        return ExpressionBinder(
            self.context, scope, "an aggregate of an enclosing query", scope.open_aggregates
        )

    def bind(self, node: exp.Expr) -> Expression:
        """The expression with its settled type; raises BindError, UnsupportedError, ExecutionError."""
        return settle(self.bind_flexible(node))

    def bind_flexible(self, node: exp.Expr) -> Expression:
        """Like `bind`, but a literal's type may still bend to what surrounds it."""
        handler = _HANDLERS.get(type(node))
        if handler is None:
            return self._other(node)
        if self.written_keys is not None and not self.inside_aggregate:
            key = self.written_keys.find(node)
            if key is not None:
                return key
        check_understood(node)
        return handler(self, node)

    def bind_condition(self, node: exp.Expr) -> Expression:
        return condition_of(self.bind_flexible(node), span_of(node))

    # ---- leaves ----

    def _column(self, node: exp.Column) -> Expression:
        identifier = node.this
        if isinstance(identifier, exp.Star):
            raise BindError(f"* is not allowed in {self.clause}", head_span(node))
        parts = [part.name for part in node.parts]
        if parts[0].upper() == "DEFAULT" and not node.parts[0].args.get("quoted"):
            raise BindError("DEFAULT may only stand for a value of INSERT or UPDATE", span_of(node))
        name, qualifier = parts[-1], parts[-2] if len(parts) > 1 else None
        parameter = lambdas.parameter_of(self, parts[0])
        if parameter is not None and (qualifier is None or not self.scope.has_column(parts[1], parts[0])):
            value = self._field(parameter, parts[1:], span_of(node))
            assert value is not None
            return value
        span = span_of(node) if qualifier is not None else head_span(identifier)
        # a.b.c: the column c of a table b in a schema; a field of the column b of the table a, or of the column a
        found = None
        if len(parts) > 2:
            found = self._in_schema(parts, span) if self.scope.has_schema(parts[0]) else None
            if found is None:
                found = self._field(self._named(parts[1], parts[0], span), parts[2:], span)
        else:
            found = self._named(name, qualifier, span)
        if found is None and qualifier is not None:
            found = self._field(self._named(parts[0], None, span, aliases=False), parts[1:], span)
        if found is None and len(parts) > 2:
            found = self._in_schema(parts, span)
        if found is not None:
            return found
        if self.scope.says_alias(node) and lower_ascii(name) in self.scope.aliases:
            return self._said_alias(lower_ascii(name), span)
        if qualifier is None and self.scope.has_relation(name):
            return self._table_as_struct(name, span)
        if len(parts) == 2 and self.scope.has_relation(name):
            return self._table_as_struct(
                QualifiedTable(name, self.context.catalog.schemas_named(parts[:1], span)), span
            )
        word = lower_ascii(name) if qualifier is None else ""
        if word in SESSION_WORDS:
            return Literal(SESSION_WORDS[word](self.context.catalog), VARCHAR)
        found = clock_word(self, word, span)
        if found is not None:
            return found
        raise self.scope.unknown_column(name, qualifier, span)

    def _column_at(self, node: exp.PositionalColumn) -> Expression:
        span = span_of(node)
        column = self.scope.column_at(int(node.name), span)
        value = self.scope.value_of(column)
        self.scope.record_use(value, column.name, span)
        return value

    def _in_schema(self, parts: list[str], span: Span | None) -> Expression | None:
        """The column, or a field in it, of a table whose name stands behind that of its schema, perhaps of the database."""
        is_database = len(parts) > 3 and lower_ascii(parts[0]) in (DATABASE, TEMPORARY)
        for count in (1, 2) if is_database else (1,):
            schemas = self.context.catalog.schemas_named(parts[:count], span)
            table, column, *fields = parts[count:]
            found = self._field(self._named(column, QualifiedTable(table, schemas), span), fields, span)
            if found is not None:
                return found
        return None

    def _field(self, value: Expression | None, names: list[str], span: Span | None) -> Expression | None:
        """The field of a struct, of a struct in it, and so on; None of None."""
        for name in names if value is not None else ():
            assert value is not None
            value = nested_parts.named_part(self, settle(value), name, span)
        return value

    def _table_as_struct(self, name: Qualifier, span: Span | None) -> Expression:
        """A row of a table as a struct of its columns."""
        relations = [relation for relation in self.scope.relations if relation.is_named(name)]
        if len(relations) != 1 or relations[0].is_padded:
            shown = name.name if isinstance(name, QualifiedTable) else name
            raise UnsupportedError(
                f'a table as a value ("{shown}", a struct of its columns) is not supported here', span
            )
        columns = relations[0].columns
        fields = {column.name: self.scope.value_of(column) for column in columns}
        for column in columns:
            self.scope.record_use(fields[column.name], column.name, span)
        return nested_values.struct_of_values(fields, span)

    def _named(
        self, name: str, qualifier: Qualifier, span: Span | None, aliases: bool = True
    ) -> Expression | None:
        """A column, here or in an enclosing query, or what an alias stands for; None if there is none of that name.

        `aliases`: not before a dot, where an alias has no fields.
        """
        found = self.scope.resolve_here(name, qualifier, span)
        if aliases and qualifier is None and lower_ascii(name) in self.aliases and self._alias_wins(found):
            column = None
            if self.clause == "QUALIFY" and self.scope.parent is not None:  # whose columns go before aliases
                column = self.scope.parent.resolve(name, None, span)
            return self._alias(lower_ascii(name), span) if column is None else column
        if found is not None:
            self.scope.record_use(found, name, span)
        elif (
            aliases
            and qualifier is None
            and self.clause == "SELECT"
            and lower_ascii(name) in self.scope.aliases
        ):
            raise _not_yet_defined(name, span)
        elif self.scope.parent is not None:
            found = self.scope.parent.resolve(name, qualifier, span, aliases)
            if (
                self.inside_aggregate
                and self.aggregates is not None
                and found is not None
                and not column_ids(found)
            ):
                self.aggregates.names_outer_constant = True
        return found

    def _alias_wins(self, column: Expression | None) -> bool:
        """A column goes before an alias; in HAVING only where it is a group key or inside an aggregate.

        There, and in QUALIFY, an aggregate takes no aliases.
        """
        if column is None:
            return not self.inside_aggregate or self.clause not in ("HAVING", "QUALIFY")
        keys = self.keys_before_aliases
        return (
            keys is not None and not self.inside_aggregate and column not in keys and not self._open_aliases
        )

    def _said_alias(self, name: str, span: Span | None) -> Expression:
        """What `alias.x` stands for."""
        if name not in self.aliases:
            raise _not_yet_defined(name, span)
        return self._alias(name, span)

    def _alias(self, name: str, span: Span | None) -> Expression:
        if self._open_aliases:
            if self.clause == "GROUP BY":
                raise BindError(f'the alias "{name}" may be a key of GROUP BY, and no part of one', span)
            names = list(self.aliases)
            if names.index(name) >= names.index(self._open_aliases[-1]):
                raise _not_yet_defined(name, span)
        self._open_aliases.append(name)
        try:
            return self.bind_item(self.aliases[name], span)
        finally:
            self._open_aliases.pop()

    def around_subquery(self) -> AbstractContextManager[Scope]:
        """The scope for a subquery of the clause, which may use the aliases that the clause may use."""
        return self.scope.with_aliases(self._alias_in_subquery)

    def _alias_in_subquery(self, name: str, span: Span | None) -> Expression:
        """What the alias stands for; where a subquery may not use it, the column of an enclosing query, if there is one."""
        if self.clause == "SELECT" and name not in self.aliases:
            raise _not_yet_defined(name, span)
        try:
            return self._usable_in_subquery(name, span)
        except BindError:
            outside = None if self.keys_before_aliases is not None else self.scope.parent
            column = None if outside is None else outside.resolve(name, None, span)
            if column is None:
                raise
            return column

    def _usable_in_subquery(self, name: str, span: Span | None) -> Expression:
        if name not in self.aliases:
            raise _not_yet_defined(name, span)
        bound = self._alias(name, span)
        keys = self.keys_before_aliases
        if keys is not None and bound not in keys:
            raise BindError(f'a subquery of HAVING cannot use "{name}", which is no group key', span)
        if any(isinstance(part, Subquery) for part in walk(bound)):
            raise UnsupportedError(
                f'"{name}" in a subquery, which stands for a subquery, is not supported', span
            )
        if self.windows is not None and self.windows.is_in(bound):
            raise BindError(f'a subquery cannot use "{name}", which stands for a window function', span)
        return bound

    def bind_item(self, item: Item, span: Span | None) -> Expression:
        """What an alias or a star stands for."""
        if item.node is not None:
            return self.bind_once(item.node)
        assert item.column is not None
        column = self.scope.value_of(item.column)
        self.scope.record_use(column, item.column.name, span)
        return column

    def bind_once(self, node: exp.Expr) -> Expression:
        """Bind an item of SELECT, the same way each time: GROUP BY an alias of a subquery means that very subquery."""
        if self.inside_aggregate or self.bound_items is None:
            return self.bind_flexible(node)
        uses: list[ColumnUse] = [] if self.scope.uses is None else self.scope.uses
        bound = self.bound_items.get(id(node))
        if bound is None:
            before = len(uses)
            value = self.bind_flexible(node)
            self.bound_items[id(node)] = value, tuple(uses[before:])
            return value
        value, item_uses = bound
        uses += item_uses
        return value

    def _literal(self, node: exp.Literal) -> Expression:
        text = node.args["this"]
        if node.args.get("is_string"):
            return varying(SourceLiteral(text, VARCHAR), node)
        return varying(bind_number(text, head_span(node)), node)

    def _escape_string(self, node: exp.ByteString) -> Expression:
        """E'a\\tb': the tokenizer has read the escapes."""
        text = str(node.args["this"])
        if "\0" in text:
            raise BindError("an E'...' text may not hold the character 0", head_span(node))
        return SourceLiteral(text, VARCHAR)

    def _interval(self, node: exp.Interval) -> Expression:
        span = span_of(node)
        unit = node.args.get("unit")
        amount = self.bind_flexible(node.this)
        if unit is None:
            return to_interval_cast(amount, span)
        if not isinstance(unit, exp.Var):
            raise UnsupportedError("INTERVAL with a range of units (YEAR TO MONTH) is not supported", span)
        name = UNIT_NAMES.get(lower_ascii(unit.name))
        if name is None:
            raise BindError(f'"{unit.name}" is not a unit of time', span)
        return interval_from(name, amount, span)

    # ---- CASE, CAST, subqueries ----

    def _case(self, node: exp.Case) -> Expression:
        span = span_of(node)
        subject = node.args.get("this")
        conditions: list[Expression] = []
        values: list[Expression] = []
        compared = None if subject is None else self.bind_flexible(subject)
        for branch in node.args["ifs"]:
            if compared is None:
                condition = self.bind_flexible(branch.this)
                conditions.append(condition_of(condition, span_of(branch.this)))
            else:
                conditions.append(
                    compare("equal", compared, self.bind_flexible(branch.this), span_of(branch))
                )
            values.append(self.bind_flexible(branch.args["true"]))
        default = node.args.get("default")
        values.append(self.bind_flexible(default) if default is not None else Literal(None, NULL))
        return make_case(conditions, values, span)

    def _cast(self, node: exp.Cast) -> Expression:
        span = span_of(node)
        target = bind_type(node.args["to"], span, partial(_user_type, self.context.catalog, span))
        is_try = isinstance(node, exp.TryCast)
        values = node.this.unnest()
        if isinstance(values, exp.Array) and target.is_vector:
            if is_try:
                raise UnsupportedError("TRY_CAST of a list is not supported; use CAST", span)
            elements = [self.bind_flexible(element) for element in values.expressions]
            return array_of(elements, target, span)
        operand = self.bind_flexible(node.this)
        if node.meta.get(UNASKED) and not becomes_unasked(settle(operand), target):
            raise BindError(
                f"a value of type {operand.data_type} is no {target}, which the macro declares; cast it",
                span_of(node.this),
            )
        return cast_to(operand, target, span, is_try)

    def _other(self, node: exp.Expr) -> Expression:
        if isinstance(node, exp.Alias):
            return self.bind_flexible(node.this)
        # CurrentUser: current user
        words = lower_ascii(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__))
        message = _FEATURES.get(type(node), f"this kind of expression ({words}) is not supported")
        raise UnsupportedError(message, span_of(node))


_FEATURES: dict[type, str] = {
    exp.Lambda: "lambda functions are not supported",
    exp.Star: "* in this place is not supported",
    exp.Kwarg: "named arguments are not supported",
    exp.PropertyEQ: "named arguments are not supported",
    exp.IgnoreNulls: "IGNORE NULLS is not supported",
    exp.Concat: "texts in a row are not supported; join them with ||",
}

Handler = Callable[[ExpressionBinder, Any], Expression]  # each takes the class of node it stands under


def _user_type(catalog: Catalog, span: Span | None, names: Sequence[str]) -> DataType | None:
    return catalog.lookup_type(names[-1], catalog.schemas_named(names[:-1], span))


def _not_yet_defined(alias: str, span: Span | None) -> BindError:
    return BindError(f'the alias "{alias}" is used before it is defined', span)


_HANDLERS: dict[type, Handler] = {
    exp.Column: ExpressionBinder._column,
    exp.PositionalColumn: ExpressionBinder._column_at,
    exp.Literal: ExpressionBinder._literal,
    exp.Boolean: lambda _, node: TRUE if node.args["this"] else FALSE,
    exp.Null: lambda _, node: Literal(None, NULL),
    exp.HexString: lambda _, node: Literal(bytes.fromhex(node.name), BLOB),
    exp.BitString: lambda _, node: Literal(parse_bits(node.name), BIT),
    exp.ByteString: ExpressionBinder._escape_string,
    exp.Placeholder: lambda binder, node: varying(bind_placeholder(binder.context, node), node),
    exp.Interval: ExpressionBinder._interval,
    exp.Paren: lambda binder, node: binder.bind_flexible(node.this),
    exp.Neg: written_operators.bind_negation,
    **dict.fromkeys(written_operators.ARITHMETIC, written_operators.bind_arithmetic),
    exp.BitwiseNot: lambda binder, node: operators.bind_operator(
        binder, "~", (node.this,), span_of(node), "~"
    ),
    exp.AtTimeZone: lambda binder, node: bind_timezone(
        binder, (node.args["zone"], node.this), span_of(node), "AT TIME ZONE"
    ),
    exp.JSONExtract: json_forms.bind_arrow,
    exp.JSONExtractScalar: json_forms.bind_text_arrow,
    exp.Abs: lambda binder, node: operators.bind_operator(binder, "abs", (node.this,), span_of(node), "@"),
    exp.RegexpILike: written_operators.bind_regular_expression,
    exp.DPipe: written_operators.bind_concatenation,
    exp.And: written_operators.bind_connective,
    exp.Or: written_operators.bind_connective,
    exp.Not: written_operators.bind_not,
    **dict.fromkeys(comparisons.FUNCTIONS, comparisons.bind_comparison),
    exp.Is: written_operators.bind_is,
    exp.Between: comparisons.bind_between,
    exp.In: comparisons.bind_in,
    **dict.fromkeys(written_operators.LIKES, written_operators.bind_like),
    exp.Glob: written_operators.bind_glob,
    exp.Escape: written_operators.bind_escape,
    exp.Case: ExpressionBinder._case,
    exp.Collate: bind_collate,
    exp.Cast: ExpressionBinder._cast,
    exp.TryCast: ExpressionBinder._cast,
    exp.Exists: subqueries.bind_exists,
    exp.Subquery: subqueries.bind_scalar,
    exp.Select: subqueries.bind_scalar,
    exp.Anonymous: calls.bind_call,
    exp.Window: calls.bind_window,
    exp.Filter: calls.bind_filtered,
    exp.WithinGroup: calls.bind_within_group,
    exp.Array: nested_values.bind_list,
    exp.Struct: nested_values.bind_struct,
    **dict.fromkeys(list_calls.SET_OPERATORS, list_calls.bind_set_operator),
    exp.Distance: bind_distance,
    exp.CosineDistance: bind_distance,
    exp.Tuple: nested_values.bind_tuple,
    exp.Bracket: nested_parts.bind_subscript,
    exp.Dot: nested_parts.bind_dot,
    exp.Identifier: lambdas.bind_parameter,
    exp.Extract: special_forms.bind_extract,
    exp.StrPosition: special_forms.bind_position,
}
