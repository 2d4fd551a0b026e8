"""sqlglot's DuckDB parser, taught what it reads otherwise than DuckDB.

sqlglot rewrites function calls into its own vocabulary (argument orders included); the parser here is told to know
almost no function, so that a call arrives as it was written and `planner/functions/` is the only table of functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeGuard

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from tqp.planner.syntax.description_parser import DescriptionParser
from tqp.planner.syntax.sqlglot_parser import DuckDBParser
from tqp.planner.syntax.sqlglot_tokens import FOREIGN_TYPES
from tqp.planner.syntax.type_grammar import UNITS

#: Functions whose arguments have a grammar of their own.
_FUNCTIONS_WITH_GRAMMAR = ("CAST", "TRY_CAST", "EXTRACT", "POSITION")


def _parse_placeholder(parser: DuckDBParser) -> exp.Expr:
    """`?` with its position: the only thing that tells one from the next."""
    return exp.Placeholder().update_positions(parser._prev)


def _parse_named_placeholder(parser: DuckDBParser) -> exp.Expr | None:
    """`$1` and `$name`, with the position."""
    dollar = parser._prev
    parse_rest: Callable[[DuckDBParser], exp.Expr | None] = DuckDBParser.PLACEHOLDER_PARSERS[
        TokenType.PARAMETER
    ]
    node = parse_rest(parser)
    if isinstance(node, exp.Placeholder):
        node.update_positions(line=dollar.line, col=dollar.col, start=dollar.start, end=parser._prev.end)
    return node


def _parse_map(parser: DuckDBParser) -> exp.Expr | None:
    """`MAP {key: value}` is `map([key], [value])`, as its name says in DuckDB; without braces the word is a name."""
    word = parser._prev
    if not parser._match(TokenType.L_BRACE):
        parser._retreat(parser._index - 1)
        return parser._parse_function_call(optional_parens=False)
    keys, values = exp.Array(expressions=[]), exp.Array(expressions=[])
    while parser._curr.token_type is not TokenType.R_BRACE:
        for place, part in enumerate((keys, values)):
            if place:
                parser._match(TokenType.COLON)
            part.append("expressions", parser._parse_disjunction())
        if not parser._match(TokenType.COMMA):
            break
    parser._match(TokenType.R_BRACE)
    return parser.expression(exp.Anonymous(this="map", expressions=[keys, values])).update_positions(word)


def _parse_with_words(parser: DuckDBParser) -> exp.Expr:
    """`overlay(a PLACING b FROM 1 FOR 2)` and `substring(a FOR 2)` are calls with words for commas."""
    name = parser._tokens[parser._index - 2]
    arguments: list[exp.Expr | None] = parser._parse_csv(parser._parse_disjunction)
    for word in ("PLACING", "FROM", "FOR"):
        if parser._match_text_seq(word):
            if word == "FOR" and len(arguments) == 1:
                arguments.append(exp.Literal.number(1))
            arguments.append(parser._parse_disjunction())
    return parser.expression(exp.Anonymous(this=name.text, expressions=arguments)).update_positions(name)


def _parse_trim(parser: DuckDBParser) -> exp.Expr:
    """`trim(LEADING a FROM b)` is `ltrim(b, a)`."""
    name = parser._tokens[parser._index - 2]
    sides = {"LEADING": "ltrim", "TRAILING": "rtrim", "BOTH": name.text}
    function = sides[parser._prev.text.upper()] if parser._match_texts(sides) else name.text
    arguments: list[exp.Expr | None] = parser._parse_csv(parser._parse_disjunction)
    if parser._match(TokenType.FROM):
        arguments = [*parser._parse_csv(parser._parse_disjunction), *arguments]
    return parser.expression(exp.Anonymous(this=function, expressions=arguments)).update_positions(name)


def _parse_extract(parser: DuckDBParser) -> exp.Expr:
    """EXTRACT(part FROM x) remembers how its part is written, of which sqlglot makes capitals."""
    word = parser._curr
    found: exp.Expr = parser._parse_extract()
    found.meta[PART_WRITTEN] = (word.text, word.token_type in _TEXT_TOKENS)
    return found


def _caret(**operands: Any) -> exp.Pow:
    found = exp.Pow(**operands)
    found.meta[CARET] = True
    return found


#: Key in the meta of an Extract: the part as it is written, and whether in quotes.
PART_WRITTEN = "part_written"
#: Key in the meta of a Pow: it is written `x ^ y`, not `x ** y`.
CARET = "caret"
#: Key in the meta of a DataType: the place of its first character. It is no part of what the tree around covers.
TYPE_START = "type_start"
#: Key in the meta of an Array: it is written `ARRAY[1]`, not `[1]`.
ARRAY_WORD = "array_word"

#: Key in the meta of a Null: it is the `-` of `l[1:-]`, or the step that `l[1:2:]` has not.
OPEN_END = "open_end"
#: Key in the meta of a key of ORDER BY: the words behind it, such as `DESC NULLS FIRST`.
ORDER_WORDS = "order_words"

#: Key in the meta of a call: it is written `*COLUMNS(...)`.
_UNPACKED = "unpacked"


def _open_end() -> exp.Null:
    null = exp.Null()
    null.meta[OPEN_END] = True
    return null


def is_columns_call(node: exp.Expr) -> TypeGuard[exp.Anonymous]:
    """Is it COLUMNS(...) of one argument?"""
    return isinstance(node, exp.Anonymous) and node.name.upper() == "COLUMNS" and len(node.expressions) == 1


def is_unpacked(call: exp.Anonymous) -> bool:
    """Does a star stand before the call?"""
    return _UNPACKED in call.meta


_TEXT_TOKENS = (TokenType.STRING, TokenType.BYTE_STRING)


_QUERY_GOES_ON = (
    TokenType.UNION,
    TokenType.EXCEPT,
    TokenType.INTERSECT,
    TokenType.ORDER_BY,
    TokenType.LIMIT,
    TokenType.OFFSET,
    TokenType.FETCH,
)


_SETS_OF_KEYS: dict[TokenType, type[exp.Cube | exp.Rollup]] = {
    TokenType.CUBE: exp.Cube,
    TokenType.ROLLUP: exp.Rollup,
}


def _is_array_word(node: exp.Expr) -> bool:
    """Is it the word before `ARRAY[a, b]`, and not a call: ARRAY(SELECT a)[1]?"""
    return node.name.upper() == "ARRAY" and not isinstance(node, exp.Anonymous)


class _NoTypes(set[str]):
    """Names that sqlglot would take for types of its own: DuckDB has none of these names, but CREATE TYPE may make one."""

    def __contains__(self, name: object) -> bool:
        return str(name).upper() in FOREIGN_TYPES


class Parser(DescriptionParser):
    """One parse of one statement."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        **{name: DuckDBParser.FUNCTION_PARSERS[name] for name in _FUNCTIONS_WITH_GRAMMAR},
        "OVERLAY": _parse_with_words,
        "SUBSTRING": _parse_with_words,
        "TRIM": _parse_trim,
        "EXTRACT": _parse_extract,
    }
    EXPONENT: ClassVar[dict[Any, Any]] = {**DuckDBParser.EXPONENT, TokenType.CARET: _caret}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        **DuckDBParser.NO_PAREN_FUNCTION_PARSERS,
        "MAP": _parse_map,
    }
    del NO_PAREN_FUNCTION_PARSERS["CONNECT_BY_ROOT"], NO_PAREN_FUNCTION_PARSERS["IF"]
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    PLACEHOLDER_PARSERS: ClassVar[dict[Any, Any]] = {
        **DuckDBParser.PLACEHOLDER_PARSERS,
        TokenType.PLACEHOLDER: _parse_placeholder,
        TokenType.PARAMETER: _parse_named_placeholder,
    }

    TYPE_TOKENS: ClassVar[set[TokenType]] = {*DuckDBParser.TYPE_TOKENS} - {
        TokenType.NULL
    }  # NULL['a'] is a field of NULL
    #: An arrow makes no lambda any more.
    LAMBDAS: ClassVar[dict[TokenType, Any]] = {TokenType.FARROW: DuckDBParser.LAMBDAS[TokenType.FARROW]}
    TYPE_LITERAL_PARSERS: ClassVar[dict[exp.DType, Any]] = {}
    QUOTED_TYPES_TO_PRESERVE: ClassVar[set[str]] = _NoTypes()
    TYPE_CONVERTERS: ClassVar[dict[exp.DType, Any]] = {
        kind: convert for kind, convert in DuckDBParser.TYPE_CONVERTERS.items() if kind != exp.DType.TEXT
    }  # VARCHAR(5, 5) keeps its parameters

    def _parse_type(
        self, parse_interval: bool = True, fallback_to_identifier: bool = False
    ) -> exp.Expr | None:
        """`DATE '2024-01-01'::VARCHAR` casts the date to text; sqlglot alone would apply `::` to the text before it."""
        if not fallback_to_identifier:
            literal = self._typed_literal()
            if literal is not None:
                return self._parse_column_ops(literal)
        return super()._parse_type(parse_interval, fallback_to_identifier)

    def _typed_literal(self) -> exp.Expr | None:
        """A type name with a text after it; None, and nothing consumed, where something else stands."""
        if self._curr.token_type not in self.TYPE_TOKENS or self._curr.token_type is TokenType.INTERVAL:
            return None
        start = self._index
        data_type = self._parse_types(check_func=True, allow_identifiers=False)
        if isinstance(data_type, exp.DataType) and self._curr.token_type in _TEXT_TOKENS:
            text = self._parse_primary()
            if isinstance(text, (exp.Literal, exp.ByteString)):
                return self.expression(exp.Cast(this=text, to=data_type))
        self._retreat(start)
        return None

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        """Marks what begins with the word ARRAY; a subscript stays as it is written, counted from 1."""
        if this is not None and self._curr.token_type is TokenType.L_BRACKET and not _is_array_word(this):
            self._advance()
            place = self._parse_subscript()
            self._match(TokenType.R_BRACKET)
            return self._parse_bracket(self.expression(exp.Bracket(this=this, expressions=[place])))
        found = super()._parse_bracket(this)
        if isinstance(found, exp.Array) and this is not None and found is not this:
            found.meta[ARRAY_WORD] = True
        return found

    def _parse_bracket_key_value(self, is_map: bool = False) -> exp.Expr | None:
        """An element, or `x = 1 FOR x IN l IF x > 0`."""
        found = super()._parse_bracket_key_value(is_map)
        if not self._match(TokenType.FOR):
            return found
        names = [self._parse_id_var()]
        if self._match(TokenType.COMMA):
            names.append(self._parse_id_var())
        self._match(TokenType.IN)
        elements = self._parse_disjunction()
        condition = self._parse_disjunction() if self._match_text_seq("IF") else None
        of_each = exp.Comprehension(this=found, expression=names[0], iterator=elements, condition=condition)
        of_each.set("position", names[1] if names[1:] else None)
        return self.expression(of_each)

    def _parse_wrapped_id_vars(self, optional: bool = False) -> list[exp.Expr]:
        """Names, or, behind USING KEY, also aggregates."""
        is_of_keys = self._prev is not None and self._prev.text.upper() == "KEY"
        parse = self._parse_expression if is_of_keys else self._parse_id_var
        found: list[exp.Expr] = self._parse_wrapped_csv(parse, optional=optional)
        return found

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        """`x IN [1, 2]` looks in a list, of which sqlglot would make `x IN (1, 2)`."""
        if self._curr.token_type is not TokenType.L_BRACKET:
            return super()._parse_in(this, alias)
        return self.expression(exp.In(this=this, field=self._parse_bitwise()))

    def _parse_subscript(self) -> exp.Expr | None:
        """`1`, `1:2`, `:`, `1:-:2`; a `-` for the end of the list, or a step that is not there, is a Null that says so."""
        first = None if self._curr.token_type is TokenType.COLON else self._parse_disjunction()
        if not self._match(TokenType.COLON):
            return first
        ends = (TokenType.COLON, TokenType.R_BRACKET)
        last: exp.Expr | None = None
        if self._curr.token_type is TokenType.DASH and self._next.token_type in ends:
            self._advance()
            last = _open_end()
        elif self._curr.token_type not in ends:
            last = self._parse_disjunction()
        step: exp.Expr | None = None
        if self._match(TokenType.COLON):
            is_open = self._curr.token_type is TokenType.R_BRACKET
            step = _open_end() if is_open else self._parse_disjunction()
        return self.expression(exp.Slice(this=first, expression=last, step=step))

    def _parse_interval(
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Interval | None:
        """One interval; sqlglot would take a text or number behind + for another one, with no INTERVAL before it."""
        start = self._index
        if not self._match(TokenType.INTERVAL) and require_interval:
            return None
        is_text = self._curr.token_type in _TEXT_TOKENS
        is_whole = is_text or self._curr.token_type is TokenType.L_PAREN
        amount = self._parse_primary() if is_whole else self._parse_term()
        has_unit = self._curr.text.upper() in UNITS
        if amount is None or not (is_whole or has_unit or isinstance(amount, exp.Placeholder)):
            self._retreat(start)  # a column named interval
            return None
        return self._parse_interval_span(amount, parse_function_unit)

    def _parse_interval_span(self, this: exp.Expr, parse_function_unit: bool = True) -> exp.Interval:
        """INTERVAL amount [unit]; a text with a unit inside is kept whole (sqlglot would drop what it cannot read)."""
        complete = this.is_string and any(character.isalpha() for character in this.name)
        unit = None
        if not complete and self._curr is not None and self._curr.text.upper() in UNITS:
            unit = self._parse_var(any_token=True, upper=True)
        if self._match_text_seq("TO"):
            unit = exp.IntervalSpan(this=unit, expression=self._parse_var(any_token=True, upper=True))
        return self.expression(exp.Interval(this=this, unit=unit))

    def _parse_star_ops(self) -> exp.Expr | None:
        """`*COLUMNS(...)` keeps its star."""
        found = super()._parse_star_ops()
        if found is not None and is_columns_call(found):
            found.meta[_UNPACKED] = True
        return found

    def _parse_as_command(self, start: Token) -> exp.Command:
        """sqlglot would print a warning and keep the text unread."""
        self.raise_error("this is no query", start)
        raise AssertionError("an error was raised")

    def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
        """Nothing of GROUP BY stands behind ALL: `GROUP BY ALL UNION (SELECT 1)` calls no function."""
        if self._match_pair(TokenType.GROUP_BY, TokenType.ALL):
            return self.expression(exp.Group(all=True))
        return super()._parse_group(skip_group_by_token)

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
        """sqlglot ends a key before a comparison."""
        kind = next((made for token, made in _SETS_OF_KEYS.items() if self._match(token)), None)
        if kind is None:
            return None
        return self.expression(
            kind(expressions=[] if with_prefix else self._parse_wrapped_csv(self._parse_disjunction))
        )

    def _parse_grouping_set(self) -> exp.Expr | None:
        """As `_parse_cube_or_rollup`."""
        return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()

    def _parse_types(
        self,
        check_func: bool = False,
        schema: bool = False,
        allow_identifiers: bool = True,
        with_collation: bool = False,
    ) -> exp.Expr | None:
        """`a::INTERVAL b`: what follows the type is a label unless it is a unit, which says nothing.

        `range < 2` compares a column, `row(1, 2) < r` a row: no type has its parts between < and >. A type remembers where it stands: its name
        is shown as it was written.
        """
        start = self._curr.start
        is_cast = self._prev and self._prev.token_type in (TokenType.DCOLON, TokenType.ALIAS)
        if self._curr.token_type in self.NESTED_TYPE_TOKENS and (
            self._next.token_type is TokenType.LT or (not is_cast and self._is_compared_call())
        ):
            return None
        is_list = self._next.token_type is TokenType.L_BRACKET
        if is_cast and not is_list and self._match(TokenType.INTERVAL):
            if self._curr.text.upper() in UNITS:
                self._advance()
            found: exp.Expr | None = self.expression(exp.DataType(this=exp.DType.INTERVAL))
        else:
            less = self._token_behind_call() if is_cast else None
            if less is not None and less.token_type is TokenType.LT:  # of `1::UNION(i INT) < x`
                less.token_type = TokenType.UNKNOWN
            else:
                less = None
            found = super()._parse_types(check_func, schema, allow_identifiers, with_collation)
            if less is not None:
                less.token_type = TokenType.LT
        if isinstance(found, exp.DataType):
            found.meta[TYPE_START] = start
        return found

    def _is_compared_call(self) -> bool:
        """Whether `name(...) <` stands here."""
        following = self._token_behind_call()
        return following is not None and following.token_type is TokenType.LT

    def _token_behind_call(self) -> Token | None:
        """The token behind `name(...)`, where that stands here."""
        depth = 0
        for place in range(self._index + 1, len(self._tokens)):
            kind = self._tokens[place].token_type
            depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
            if depth == 0:
                following = self._tokens[place + 1 : place + 2]
                return following[0] if kind is TokenType.R_PAREN and following else None
        return None

    def _parse_ordered(self, parse_method: Callable[[], exp.Expr | None] | None = None) -> exp.Ordered | None:
        """A key of ORDER BY remembers the words behind it: its name shows them as they were written."""
        ends: list[int] = []

        def parse_key() -> exp.Expr | None:
            key: exp.Expr | None = (parse_method or self._parse_disjunction)()
            ends.append(self._index)
            return key

        found: exp.Ordered | None = super()._parse_ordered(parse_key)
        if found is not None:
            words = self._tokens[ends[-1] : self._index]
            found.meta[ORDER_WORDS] = " ".join(word.text.upper() for word in words)
        return found

    def _parse_statement(self) -> exp.Expr | None:
        """`WITH a AS (...) VALUES (1)`: the rows are a query that can have a WITH."""
        is_inner = self._index > 0
        found: exp.Expr | None = super()._parse_statement()
        if is_inner and isinstance(found, exp.Values):
            return exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=found)))
        return found

    def _parse_table(self, *arguments: Any, **options: Any) -> exp.Expr | None:
        """`FROM (VALUES (1)) r(v) JOIN t ON true SELECT v`: sqlglot forgets the joins behind VALUES."""
        table: exp.Expr | None = super()._parse_table(*arguments, **options)
        if isinstance(table, exp.Values) and options.get("joins"):
            joins = list(self._parse_joins())
            if joins:
                alias = table.args.get("alias")
                table.set("alias", None)
                return self.expression(exp.Subquery(this=table, alias=alias, joins=joins))
        return table

    def _parse_derived_table_values(self, allow_value_synonym: bool = False) -> exp.Values | None:
        """`(VALUES (1) UNION SELECT 2)` only begins with VALUES: it is left to those who read queries."""
        if self._curr.token_type == TokenType.L_PAREN and self._next.token_type == TokenType.VALUES:
            depth, index = 0, self._index + 2
            while depth > 0 or self._tokens[index].token_type in (TokenType.L_PAREN, TokenType.COMMA):
                kind = self._tokens[index].token_type
                depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
                index += 1
            if self._tokens[index].token_type in _QUERY_GOES_ON:
                return None
        values: exp.Values | None = super()._parse_derived_table_values(allow_value_synonym)
        return values

    def _parse_value(self, values: bool = True) -> exp.Tuple | None:
        """A row stands in parentheses: in `VALUES (1), r` the last comma ends the rows, and `r` is their name."""
        row: exp.Tuple | None = None
        if self._curr.token_type == TokenType.L_PAREN:
            row = super()._parse_value(values)
        return row

    @property
    def token_at_hand(self) -> Token:
        """The token at which the parser stands: after an error, the one that it could not read."""
        token: Token = self._curr if self._curr else self._prev
        return token
