"""Output column names: an unnamed expression is called by its text, written the way DuckDB writes it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from tqp.core.keywords import lower_ascii, quoted, quoted_text
from tqp.core.units import UNIT_NAMES
from tqp.planner.binder.expressions.calls import GROUPING_NAMES
from tqp.planner.binder.expressions.collations import collation_names
from tqp.planner.binder.expressions.literals import signed_number
from tqp.planner.binder.expressions.nested.list_calls import SET_OPERATORS
from tqp.planner.binder.expressions.type_names import bind_type, written_names
from tqp.planner.binder.select.named_windows import definition_of
from tqp.planner.binder.select.nested_names import NestedNames
from tqp.planner.binder.select.query_names import QueryNames
from tqp.planner.parse import chain_of, head_span, span_of, without_parentheses
from tqp.planner.syntax.parser import (
    CARET,
    ORDER_WORDS,
    PART_WRITTEN,
    TYPE_START,
    is_columns_call,
    is_unpacked,
)


def expression_name(query: str, node: exp.Expr) -> str:
    """The text of an expression of `query` as DuckDB shows it: `a+1` is `(a + 1)`, `count(*)` is `count_star()`."""
    return Names(query).text(node)


_TYPE = re.compile(r"""([A-Za-z_]\w*|"[^"]+")(\s+PRECISION)?\s*(\([\d\s,]*\))?""", re.IGNORECASE)

#: Type names that the grammar knows and spells in its own way; others stay as written.
_TYPE_NAMES = {
    **dict.fromkeys(("int", "integer"), "INTEGER"),
    "smallint": "SMALLINT",
    "bigint": "BIGINT",
    **dict.fromkeys(("real", "float"), "FLOAT"),
    **dict.fromkeys(("char", "character", "varchar"), "VARCHAR"),
    **dict.fromkeys(("decimal", "numeric", "dec"), "DECIMAL"),
    "boolean": "BOOLEAN",
    "bit": "BIT",
    "interval": "INTERVAL",
}
#: Keywords that are shown without quotes where they name types.
_PLAIN_KEYWORDS = ("double", "text")
#: Parts of EXTRACT that are keywords, and how they are shown; others stay as written.
_EXTRACT_KEYWORDS = {
    **{
        word: word.upper() for word in "year month day hour minute second quarter week decade century".split()
    },
    **{f"{word}s": word.upper() for word in "year month day hour minute second quarter week decade".split()},
    "centuries": "CENTURY",
    **dict.fromkeys(("millennium", "millennia"), "MILLENNIUM"),
    **dict.fromkeys(("millisecond", "milliseconds"), "MILLISECONDS"),
    **dict.fromkeys(("microsecond", "microseconds"), "MICROSECONDS"),
}
_INFIX: dict[type, str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
    exp.Pow: "**",
    exp.DPipe: "||",
    exp.JSONExtract: "->",
    exp.JSONExtractScalar: "->>",
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.Like: "~~",
    exp.ILike: "~~*",
    exp.Glob: "~~~",
    exp.StartsWith: "^@",
    exp.Distance: "<->",
    exp.CosineDistance: "<=>",
    **SET_OPERATORS,
}
_INVERSE = {">=": "<", ">": "<=", "<=": ">", "<": ">=", "!=": "=", "=": "!="}
_AS_CALLS: dict[type, str] = {
    exp.RegexpLike: "regexp_matches",
    exp.RegexpFullMatch: "regexp_full_match",
    exp.SimilarTo: "regexp_full_match",
    exp.RegexpILike: "regexp_matches",
}


def _type_word(word: str) -> str:
    lowered = lower_ascii(word)
    is_plain = lowered in _PLAIN_KEYWORDS or (quoted(lowered) == lowered and lowered != "json")
    return word if is_plain else f'"{word}"'


class Names(NestedNames, QueryNames):
    """Writes expressions of `query` as DuckDB does."""

    def __init__(self, query: str) -> None:
        self.query = query

    def text(self, node: Any) -> str:
        writer = _WRITERS.get(type(node))
        if writer is not None:
            return writer(self, node)
        span = span_of(node)
        return self.query[span[0] : span[1]] if span else str(node.sql("duckdb"))

    def _call(self, name: str, arguments: Any) -> str:
        return f"{quoted(name)}({', '.join(self.text(argument) for argument in arguments if argument is not None)})"

    def _as_call(self, node: exp.Binary) -> str:
        options = exp.Literal.string("i") if isinstance(node, exp.RegexpILike) else None
        return self._call(_AS_CALLS[type(node)], (node.this, node.expression, options))

    def column(self, node: exp.Column) -> str:
        return ".".join("*" if isinstance(part, exp.Star) else quoted(part.name) for part in node.parts)

    def _literal(self, node: exp.Literal) -> str:
        if node.args.get("is_string"):
            return quoted_text(node.name)
        span = head_span(node)
        if span is not None:
            return self.query[span[0] : span[1]]
        return node.name.removeprefix("0")  # .5, which sqlglot makes 0.5

    def _infix(self, node: exp.Binary) -> str:
        sign = _INFIX[type(node)]
        if node.args.get("negate"):
            sign = "!" + sign
        right = node.expression
        if isinstance(right, (exp.Any, exp.All)):
            return self._quantified(node.this, sign, right)
        if isinstance(node, exp.Pow):
            sign = "^" if CARET in node.meta else "**"
        return f"({self.text(node.this)} {sign} {self.text(right)})"

    def _quantified(self, operand: exp.Expr, sign: str, right: exp.Expr) -> str:
        values = right.this.unnest()
        is_query = isinstance(values, (exp.Query, exp.Values))
        inner = self.subquery(right.this) if is_query else f"SELECT unnest({self.text(values)})"
        if isinstance(right, exp.All):
            return f"(NOT ({self.text(operand)} {_INVERSE[sign]} ANY({inner})))"
        return f"({self.text(operand)} {sign} ANY({inner}))"

    def _connective(self, node: exp.Connector) -> str:
        word = " AND " if isinstance(node, exp.And) else " OR "
        return f"({word.join(map(self.text, chain_of(node)))})"

    def _not(self, node: exp.Not) -> str:
        return f"(NOT {self.text(node.this)})"

    def _is(self, node: exp.Is) -> str:
        negated = bool(node.args.get("negate"))
        operand = self.text(node.this)
        if isinstance(node.expression, exp.Null):
            return f"({operand} IS {'NOT ' if negated else ''}NULL)"
        word = "IS DISTINCT FROM" if negated else "IS NOT DISTINCT FROM"
        return f"(CAST({operand} AS BOOLEAN) {word} {self.text(node.expression)})"

    def _negation(self, node: exp.Neg) -> str:
        number, negative = signed_number(node)
        if number is not None:
            return ("-" if negative else "") + self.text(number)
        return f"(-({self.text(node.this.unnest())}))"

    def _in(self, node: exp.In) -> str:
        query = node.args.get("query")
        if query is not None:
            return f"({self.text(node.this)} = ANY({self.subquery(query)}))"
        if node.args.get("field") is not None:
            return f"contains({self.text(node.args['field'])}, {self.text(node.this)})"
        if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Values):
            return f"({self.text(node.this)} = ANY({self.subquery(node.expressions[0])}))"
        if not node.expressions:
            return f'contains("row"(), {self.text(node.this)})'
        choices = ", ".join(self.text(choice) for choice in node.expressions)
        return f"({self.text(node.this)} IN ({choices}))"

    def _range(self, node: exp.Between) -> str:
        return f"({self.text(node.this)} BETWEEN {self.text(node.args['low'])} AND {self.text(node.args['high'])})"

    def _escape(self, node: exp.Escape) -> str:
        name = "like_escape" if isinstance(node.this, exp.Like) else "ilike_escape"
        text = self._call(name, (node.this.this, node.this.expression, node.expression))
        return f"(NOT {text})" if node.this.args.get("negate") else text

    def _case(self, node: exp.Case) -> str:
        subject = node.args.get("this")
        branches: list[str] = []
        for branch in node.args["ifs"]:
            condition = self.text(branch.this)
            if subject is not None:
                condition = f"({self.text(subject)} = {condition})"
            branches.append(f" WHEN ({condition}) THEN ({self.text(branch.args['true'])})")
        default = node.args.get("default")
        return f"CASE {''.join(branches)} ELSE {self.text(default) if default is not None else 'NULL'} END"

    def _cast(self, node: exp.Cast) -> str:
        word = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
        return f"{word}({self.text(node.this)} AS {self.target(node)})"

    def target(self, node: exp.Cast) -> str:
        """The type of a cast."""
        return self._type(node.args["to"], None)

    def _type(self, node: exp.Expr, start: int | None) -> str:
        """A type as the query writes it, under the names that the grammar knows.

        `start`: where it begins in the query, for a type whose own node does not say so.
        """
        start = node.meta.get(TYPE_START, start)
        inside = node.expressions
        if node.this is exp.DType.ARRAY and inside:
            size = node.args.get("values")
            return f"{self._type(inside[0], start)}[{size[0].unnest().name if size else ''}]"
        if node.this is exp.DType.MAP:
            return f"MAP({', '.join(self._type(each, None) for each in inside)})"
        if node.this in (exp.DType.STRUCT, exp.DType.UNION):
            fields = (f"{quoted(each.name)} {self._type(each.args['kind'], None)}" for each in inside)
            return f"{node.this.name}({', '.join(fields)})"
        if node.this is exp.DType.USERDEFINED and len(names := written_names(node)) > 1:
            *schemas, name = names
            size = f"({', '.join(each.sql('duckdb') for each in inside)})" if inside else ""
            word = name if lower_ascii(name) in _TYPE_NAMES else _type_word(name)
            return ".".join((*map(quoted, schemas), word)) + size
        match = None if start is None else _TYPE.match(self.query, start)
        if match is None:
            return str(bind_type(node, None))
        written, precision, size = match.groups("")
        if node.this is exp.DType.ENUM:
            return written + str(bind_type(node, None)).removeprefix("ENUM")
        name = lower_ascii(written)
        if name in ("time", "timestamp"):  # WITH TIME ZONE may follow
            return str(bind_type(node, None))
        known = "DOUBLE" if precision else _TYPE_NAMES.get(name)
        if known is None:
            return _type_word(written.strip('"'))
        return known + ", ".join(re.sub(r"\s", "", size).split(","))

    def _interval(self, node: exp.Interval) -> str:
        amount = self.text(node.this)
        unit = node.args.get("unit")
        if unit is None:
            return f"CAST({amount} AS INTERVAL)"
        name = UNIT_NAMES.get(lower_ascii(unit.name), lower_ascii(unit.name))
        plural = {"century": "centuries", "millennium": "millennia"}.get(name, name + "s")
        if name in ("second", "millisecond"):
            return f"to_{plural}(CAST({amount} AS DOUBLE))"
        target = "BIGINT" if name in ("hour", "minute", "microsecond") else "INTEGER"
        return f"to_{plural}(CAST(trunc(CAST({amount} AS DOUBLE)) AS {target}))"

    def _function(self, node: exp.Anonymous) -> str:
        name, arguments = lower_ascii(node.name), node.expressions
        if name == "count" and (not arguments or isinstance(arguments[0].unnest(), exp.Star)):
            return "count_star()"
        if name == "exists" and len(arguments) == 1 and isinstance(arguments[0], exp.Query | exp.Values):
            return f"EXISTS({self.subquery(arguments[0])})"
        if name == "array" and len(arguments) == 1 and isinstance(arguments[0], exp.Query | exp.Values):
            return self._array_of_query(without_parentheses(arguments[0]))
        if name in GROUPING_NAMES:
            return f"GROUPING({', '.join(map(self.text, arguments))})"
        if is_columns_call(node):
            return f"{'*' * is_unpacked(node)}COLUMNS({self.text(arguments[0])})"
        if name == "construct_array":
            return f"(ARRAY[{', '.join(map(self.text, arguments))}])"
        if name == "+":
            return f"(+({self.text(arguments[0])}))"
        if name in ("coalesce", "ifnull"):
            return f"COALESCE({', '.join(self.text(argument) for argument in arguments)})"
        if name == "date" and len(arguments) == 1:
            return f"CAST({self.text(arguments[0])} AS DATE)"
        if name == "try" and len(arguments) == 1:
            return f"TRY({self.text(arguments[0])})"
        order = ""
        if arguments and isinstance(arguments[-1], exp.Order):
            order = self._order(arguments[-1])
            arguments = [each for each in (*arguments[:-1], arguments[-1].this) if each is not None]
            name = "count_star" if name == "count" and not arguments else name
        if arguments and isinstance(arguments[0], exp.Distinct):
            inner = ", ".join(self.text(argument) for argument in arguments[0].expressions)
            return f"{quoted(name)}(DISTINCT {inner}{order})"
        if order:
            return f"{quoted(name)}({', '.join(map(self.text, arguments))}{order})"
        return self._call(name, arguments)

    def _array_of_query(self, query: exp.Expr) -> str:
        """ARRAY(SELECT a ORDER BY b): DuckDB puts the keys of the order beside the column, and sorts the list by them."""
        query = query.copy()
        column = "#1" if isinstance(query, exp.Select | exp.Values) else "COLUMNS(*)"
        keys = []
        order = query.args.get("order")
        for place, key in enumerate([] if order is None else order.expressions, 1):
            name = f"__array_internal_idx_{place}"
            if isinstance(key.this, exp.Literal):
                name = f"#{key.this.name}"
            elif isinstance(query, exp.Select):
                query.append("expressions", exp.Alias(this=key.this.copy(), alias=exp.to_identifier(name)))
            keys.append(f"{name} {key.meta.get(ORDER_WORDS, '')}".rstrip())
        listed = f"array_agg({column}{' ORDER BY ' if keys else ''}{', '.join(keys)})"
        return (
            f"(SELECT CASE  WHEN (({listed} IS NULL)) THEN (list_value()) ELSE {listed} END"
            f" FROM ({self.subquery(query)}))"
        )

    def _order(self, node: exp.Order) -> str:
        return f" ORDER BY {', '.join(map(self._ordered, node.expressions))}"

    def _within_group(self, node: exp.WithinGroup) -> str:
        name, order = lower_ascii(node.this.name), self._order(node.expression)
        arguments = ", ".join(map(self.text, node.this.expressions))
        if name == "mode":
            return f"{quoted(name)}() WITHIN GROUP ({order})"
        return f"{name.replace('percentile', 'quantile')}({arguments}{order})"

    def _filter(self, node: exp.Filter) -> str:
        return f"{self.text(node.this)} FILTER (WHERE {self.text(node.expression.this)})"

    def _window(self, node: exp.Window) -> str:
        call = node.this.this if isinstance(node.this, exp.Filter) else node.this
        text = self._window_call(call)
        if isinstance(node.this, exp.Filter):
            text += f" FILTER (WHERE {self.text(node.this.expression.this)})"
        select = node.find_ancestor(exp.Select)
        definition = definition_of(node, select.args.get("windows") or () if select is not None else ())
        parts = []
        if definition.partition:
            parts.append(f"PARTITION BY {', '.join(map(self.text, definition.partition))}")
        if definition.order:
            parts.append(f"ORDER BY {', '.join(map(self._ordered, definition.order))}")
        if definition.frame is not None:
            parts += self._frame(definition.frame)
        return f"{text} OVER ({' '.join(parts)})"

    def _window_call(self, node: exp.Anonymous | exp.WithinGroup) -> str:
        if isinstance(node, exp.WithinGroup):
            return self._within_group(node)
        name = lower_ascii(node.name)
        arguments = [*node.expressions]
        if name == "count" and arguments and isinstance(arguments[0], exp.Star):
            arguments = []
        prefix, suffix, nulls = "", "", ""
        if arguments and isinstance(arguments[-1], exp.IgnoreNulls | exp.RespectNulls):
            nulls = " IGNORE NULLS" if isinstance(arguments[-1], exp.IgnoreNulls) else ""
            arguments[-1] = arguments[-1].this
        if arguments and isinstance(arguments[-1], exp.Order):
            suffix = self._order(arguments[-1])
            arguments[-1:] = [] if arguments[-1].this is None else [arguments[-1].this]
        if arguments and isinstance(arguments[0], exp.Distinct):
            prefix, arguments = "DISTINCT ", arguments[0].expressions
        for place, argument in enumerate(arguments):
            if isinstance(argument, exp.IgnoreNulls | exp.RespectNulls):
                nulls = " IGNORE NULLS" if isinstance(argument, exp.IgnoreNulls) else ""
                arguments[place] = argument.this
        name = {"first": "first_value", "last": "last_value"}.get(name, name)
        return f"{name}({prefix}{', '.join(map(self.text, arguments))}{suffix}{nulls})"

    def _ordered(self, node: exp.Ordered) -> str:
        is_all = isinstance(node.this, exp.Var)
        key = "COLUMNS(*)" if is_all else self.text(node.this)
        return f"{key} {node.meta.get(ORDER_WORDS, '')}".rstrip()

    def _frame(self, node: exp.WindowSpec) -> list[str]:
        """The frame as a list of one text; of none where it is the one that ORDER BY has anyway."""
        bounds = []
        for bound, side in (("start", "start_side"), ("end", "end_side")):
            value = node.args.get(bound) or "CURRENT ROW"
            text = value.upper() if isinstance(value, str) else self.text(value)
            bounds.append(" ".join(filter(None, (text, str(node.args.get(side) or "").upper()))))
        mode, exclude = str(node.args["kind"]).upper(), node.args.get("exclude")
        excludes = exclude is not None and exclude.name.upper() != "NO OTHERS"
        if (mode, *bounds) == ("RANGE", "UNBOUNDED PRECEDING", "CURRENT ROW") and not excludes:
            return []
        if bounds == ["UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING"]:
            mode = "ROWS"  # as DuckDB calls it, however it is written
        suffix = f" EXCLUDE {exclude.name.upper()}" if exclude is not None and excludes else ""
        return [f"{mode} BETWEEN {bounds[0]} AND {bounds[1]}{suffix}"]

    def _extract(self, node: exp.Extract) -> str:
        part, is_quoted = node.meta.get(PART_WRITTEN, (node.this.name, True))
        if not is_quoted:
            part = _EXTRACT_KEYWORDS.get(lower_ascii(part), part)
        return f"date_part({quoted_text(part)}, {self.text(node.expression)})"

    def _placeholder(self, node: exp.Placeholder) -> str:
        name = node.args.get("this")
        if name is not None:
            return f"${name.name if isinstance(name, exp.Expr) else name}"
        start = node.meta["start"]
        earlier = [each for each in node.root().find_all(exp.Placeholder) if not each.args.get("this")]
        return f"${sum(each.meta['start'] <= start for each in earlier)}"


_Writer = Callable[[Names, Any], str]

_WRITERS: dict[type, _Writer] = {
    **dict.fromkeys(_INFIX, Names._infix),
    **dict.fromkeys(_AS_CALLS, Names._as_call),
    exp.Column: lambda self, node: self.column(node),
    exp.PositionalColumn: lambda _, node: f"#{node.name}",
    exp.Literal: Names._literal,
    exp.ByteString: lambda _, node: quoted_text(node.name),
    exp.Boolean: lambda _, node: "true" if node.this else "false",
    exp.Null: lambda _, node: "NULL",
    exp.HexString: lambda _, node: f"X'{node.name}'",
    exp.BitString: lambda _, node: f"B'{node.name}'",
    exp.Paren: lambda self, node: self.text(node.this),
    exp.And: Names._connective,
    exp.Or: Names._connective,
    exp.Not: Names._not,
    exp.Is: Names._is,
    exp.Neg: Names._negation,
    exp.BitwiseNot: lambda self, node: f"(~({self.text(node.this)}))",
    exp.Collate: lambda self, node: (
        f"{self.text(node.this)} COLLATE {quoted('.'.join(collation_names(node)))}"
    ),
    exp.AtTimeZone: lambda self, node: self._call("timezone", (node.args["zone"], node.this)),
    exp.Abs: lambda self, node: f"(@({self.text(node.this)}))",
    exp.In: Names._in,
    exp.Between: Names._range,
    exp.Escape: Names._escape,
    exp.Case: Names._case,
    exp.Cast: Names._cast,
    exp.TryCast: Names._cast,
    exp.Interval: Names._interval,
    exp.Anonymous: Names._function,
    exp.Filter: Names._filter,
    exp.WithinGroup: Names._within_group,
    exp.Window: Names._window,
    exp.Extract: Names._extract,
    exp.StrPosition: lambda self, node: self._call("position", (node.this, node.args["substr"])),
    exp.Placeholder: Names._placeholder,
    exp.Tuple: lambda self, node: self._call("row", node.expressions),
    exp.Array: Names._list,
    exp.Bracket: Names._subscript,
    exp.Slice: Names._slice,
    exp.Struct: Names._struct,
    exp.PropertyEQ: Names._named,
    exp.Dot: Names._field,
    exp.Identifier: lambda _, node: quoted(node.name),
    exp.Lambda: lambda self, node: self._lambda(
        [each.name for each in node.expressions], self.text(node.this)
    ),
    exp.Exists: lambda self, node: f"EXISTS({self.subquery(node.this)})",
    **dict.fromkeys(
        (exp.Subquery, exp.Select, exp.Union, exp.Except, exp.Intersect, exp.Values),
        lambda self, node: f"({self.subquery(node)})",
    ),
}
