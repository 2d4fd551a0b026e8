"""sqlglot's parser with DuckDB's precedence of the operators that bind closer than comparisons.

`->` binds less than all others, OR and AND among them. From loose to close, each level left to right:

    @x                             of all that follows on the levels below
    || <-> && @> <@ ^@ ->>         every operator that has no level of its own, and = ANY, < ALL, ...
    & | << >>
    ~ x
    + -
    * / // %
    ^ **
    COLLATE
    AT TIME ZONE
    -x +x
    x!
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from tqp.planner.syntax.sqlglot_parser import DuckDBParser

_OTHERS: dict[TokenType, Any] = {
    TokenType.DPIPE: exp.DPipe,
    TokenType.LR_ARROW: exp.Distance,
    TokenType.NULLSAFE_EQ: exp.CosineDistance,
    TokenType.DAMP: exp.ArrayOverlaps,
    TokenType.AT_GT: exp.ArrayContainsAll,
    TokenType.LT_AT: exp.ArrayContainedBy,
    TokenType.CARET_AT: exp.StartsWith,
}
_SHIFTS: dict[TokenType, Any] = {
    TokenType.LT: exp.BitwiseLeftShift,
    TokenType.GT: exp.BitwiseRightShift,
}
#: Of sqlglot's ranges, those that are operators of other levels, or begin what may stand in brackets alone.
_NO_RANGES = frozenset((*_OTHERS, TokenType.FOR))
#: `<=>` is none of these: it is a distance.
_EQUALITY = {token: kind for token, kind in DuckDBParser.EQUALITY.items() if token not in _OTHERS}
_COMPARISONS: dict[TokenType, Any] = {**_EQUALITY, **DuckDBParser.COMPARISON}
_QUANTIFIERS: dict[TokenType, Any] = {
    TokenType.ANY: exp.Any,
    TokenType.SOME: exp.Any,
    TokenType.ALL: exp.All,
}
_COLLATE = {TokenType.COLLATE}
#: Operands of one token, as most are.
_CONSTANTS = frozenset({TokenType.NUMBER, TokenType.STRING})
_OPERANDS = _CONSTANTS | {TokenType.VAR, TokenType.IDENTIFIER}
#: Behind an operand, what continues it on none of these levels.
_ENDS = frozenset(
    {TokenType.COMMA, TokenType.R_PAREN, TokenType.EQ, TokenType.NEQ, TokenType.LTE, TokenType.GTE}
    | {TokenType.AND, TokenType.OR, TokenType.FROM, TokenType.ALIAS, TokenType.BETWEEN, TokenType.LIKE}
    | {TokenType.IN, TokenType.THEN, TokenType.ELSE, TokenType.END, TokenType.ASC, TokenType.DESC}
)
#: The same of the levels that bind closer than * and /.
_ENDS_FACTOR = (
    _ENDS | {TokenType.STAR, TokenType.SLASH, TokenType.PLUS, TokenType.DASH} | {TokenType.LT, TokenType.GT}
)
#: What ends a part of a comparison without IN, LIKE and the like.
_ENDS_RANGE = _ENDS_FACTOR - {TokenType.BETWEEN, TokenType.LIKE, TokenType.IN}


class OperatorParser(DuckDBParser):
    """The levels of operators, each a loop that asks the next level for its operands."""

    BITWISE: ClassVar[dict[TokenType, Any]] = {
        TokenType.AMP: exp.BitwiseAnd,
        TokenType.PIPE: exp.BitwiseOr,
    }
    TERM: ClassVar[dict[TokenType, Any]] = {TokenType.PLUS: exp.Add, TokenType.DASH: exp.Sub}
    FACTOR: ClassVar[dict[TokenType, Any]] = {
        TokenType.STAR: exp.Mul,
        TokenType.SLASH: exp.Div,
        TokenType.DIV: exp.IntDiv,
        TokenType.MOD: exp.Mod,
    }
    RANGE_PARSERS: ClassVar[dict[TokenType, Any]] = {
        **{kind: parse for kind, parse in DuckDBParser.RANGE_PARSERS.items() if kind not in _NO_RANGES},
        TokenType.NOTNULL: lambda self, this: self._build_predicate(exp.Is, this, exp.Null(), negate=True),
    }
    COLUMN_POSTFIX_TOKENS: ClassVar[frozenset[TokenType]] = DuckDBParser.COLUMN_POSTFIX_TOKENS | {
        TokenType.EXCLAMATION
    }
    UNARY_PARSERS: ClassVar[dict[TokenType, Any]] = {
        **DuckDBParser.UNARY_PARSERS,
        TokenType.PLUS: lambda self: self._parse_plus(),
        TokenType.TILDE: lambda self: self._parse_complement(tilde_read=True),
        TokenType.DAT: lambda self: self._parse_magnitude(),
    }

    def _parse_disjunction(self) -> exp.Expr | None:
        """`->` binds less than all others: `j -> 'a' = 1` is `j -> ('a' = 1)`."""
        this = super()._parse_disjunction()
        while self._match(TokenType.ARROW):
            this = exp.JSONExtract(this=this, expression=super()._parse_disjunction())
        return this

    def _parse_bitwise(self) -> exp.Expr | None:
        """The loosest of these levels, where sqlglot begins."""
        this = self._parse_bits()
        while True:
            kind = self._curr.token_type
            if kind in _OTHERS:
                self._advance()
                other = _OTHERS[kind](this=this, expression=self._parse_bits())
                if isinstance(other, exp.DPipe):
                    other.set("safe", True)
                this = self.expression(other)
            elif kind is TokenType.DARROW:  # paths stay as they were written, which sqlglot would read
                self._advance()
                this = exp.JSONExtractScalar(this=this, expression=self._parse_bits())
            elif self._next.token_type in _QUANTIFIERS and kind in _COMPARISONS:
                quantifier = _QUANTIFIERS[self._next.token_type]
                self._advance(2)
                quantified = self.expression(quantifier(this=self._parse_bits()))
                this = self._build_predicate(_COMPARISONS[kind], this, quantified)
            else:
                return this

    def _parse_range(self, this: exp.Expr | None = None, parse_is: bool = False) -> exp.Expr | None:
        this = this or self._parse_bitwise()
        return this if self._curr.token_type in _ENDS_RANGE else super()._parse_range(this, parse_is)

    def _parse_operand(self) -> exp.Expr | None:
        """One of `_OPERANDS` that none of these levels continues."""
        token = self._curr
        if token.token_type not in _CONSTANTS:
            return self._parse_column() or self._parse_unary()
        self._advance()
        return self.PRIMARY_PARSERS[token.token_type](self, token)  # type: ignore[no-any-return, no-untyped-call]

    def _parse_bits(self) -> exp.Expr | None:
        if self._next.token_type in _ENDS and self._curr.token_type in _OPERANDS:
            return self._parse_operand()
        this = self._parse_complement()
        while True:
            kind = self._curr.token_type
            if kind in self.BITWISE:
                self._advance()
                this = self.expression(self.BITWISE[kind](this=this, expression=self._parse_complement()))
            elif kind in _SHIFTS and self._next.token_type == kind and self._next.start == self._curr.start:
                self._advance(2)
                this = self.expression(_SHIFTS[kind](this=this, expression=self._parse_complement()))
            else:
                return this

    def _parse_complement(self, tilde_read: bool = False) -> exp.Expr | None:
        """`~a + b` is `~(a + b)`, and so it is behind another operator."""
        if not tilde_read and self._curr.token_type != TokenType.TILDE:
            return self._parse_term()
        if not tilde_read:
            self._advance()
        return self.expression(exp.BitwiseNot(this=self._parse_complement()))

    def _parse_magnitude(self) -> exp.Expr | None:
        """`@ a - b || c` is `@ (a - b || c)`."""
        at = self._prev
        return self.expression(exp.Abs(this=self._parse_bitwise()).update_positions(at))

    def _parse_column_ops(self, this: exp.Expr | None) -> exp.Expr | None:
        """With `a!`, the factorial, which may be followed by more of them."""
        this = super()._parse_column_ops(this)
        while this is not None and self._match(TokenType.EXCLAMATION):
            call = exp.Anonymous(this="factorial", expressions=[this]).update_positions(self._prev)
            this = super()._parse_column_ops(self.expression(call))
        return this

    def _parse_plus(self) -> exp.Expr | None:
        """`+x` as a call of the function "+", as it takes numbers only; sqlglot would drop it."""
        plus = self._prev
        call = exp.Anonymous(this="+", expressions=[self._parse_unary()])
        return self.expression(call.update_positions(plus))

    def _parse_factor(self, parse_mod: bool = True) -> exp.Expr | None:
        this = self._parse_exponent()
        while self._match_set(self.FACTOR, advance=False):
            kind = self._curr.token_type
            if kind == TokenType.MOD and not parse_mod:
                return this
            self._advance()
            this = self.expression(self.FACTOR[kind](this=this, expression=self._parse_exponent()))
            if isinstance(this, exp.Div):
                this.set("typed", self.dialect.TYPED_DIVISION)
                this.set("safe", self.dialect.SAFE_DIVISION)
        return this

    def _parse_exponent(self) -> exp.Expr | None:
        if self._next.token_type in _ENDS_FACTOR and self._curr.token_type in _OPERANDS:
            return self._parse_operand()
        this = self._parse_collation()
        while self._match_set(self.EXPONENT):
            operator = self.EXPONENT[self._prev.token_type]
            this = self.expression(operator(this=this, expression=self._parse_collation()))
        return this

    def _parse_collation(self) -> exp.Expr | None:
        this = self._parse_at_time_zone(self._parse_unary())
        while self._match_set(_COLLATE):
            this = self.expression(
                exp.Collate(this=this, expression=self._parse_at_time_zone(self._parse_unary()))
            )
        return this

    def _parse_escape(self, this: exp.Expr | None) -> exp.Expr | None:
        """Behind ESCAPE stands any expression of these levels; sqlglot would read a text only."""
        if not self._match(TokenType.ESCAPE):
            return this
        return self.expression(exp.Escape(this=this, expression=self._parse_bitwise()))

    def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
        """Behind IS stands a constant, not an expression: `a IS TRUE || b` is `(a IS TRUE) || b`.

        `a IS NOT NULL` is an operator of its own: sqlglot would make it the `NOT a IS NULL` that it equals.
        """
        negate = bool(self._match(TokenType.NOT))
        if self._match_text_seq("DISTINCT", "FROM"):
            operator = exp.NullSafeEQ if negate else exp.NullSafeNEQ
            return self._build_predicate(operator, this, self._parse_is_rhs(distinct=True))
        is_unknown = self._match_text_seq("UNKNOWN")
        constant = exp.Null() if is_unknown else self._parse_null() or self._parse_boolean()
        return self._parse_column_ops(self._build_predicate(exp.Is, this, constant, negate=negate))

    def _negate_range(self, this: exp.Expr | None = None) -> exp.Expr | None:
        """`a NOT NULL` is `a IS NOT NULL`."""
        if isinstance(this, exp.Is):
            this.set("negate", True)
            return this
        return super()._negate_range(this)
