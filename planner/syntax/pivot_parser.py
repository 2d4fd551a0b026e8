"""sqlglot's parser with PIVOT and UNPIVOT as DuckDB has them: what they are made of, and nothing worked out.

In FROM each is a join without a right side, as it takes all that stands before it: a Join of the method PIVOT or UNPIVOT around
an `exp.Pivot`. In the place of a SELECT it is `SELECT * FROM` the table with that join, and its other clauses.

An `exp.Pivot` has `expressions`, the aggregates of PIVOT and the names of values of UNPIVOT, and `fields`: for PIVOT a tuple of
what is compared, and of a tuple of the values, of the ENUM that has them, of a subquery that they come from, or of nothing where they
are those that the rows have. For UNPIVOT these are the name of the column of names, and the columns. `group` has names.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from tqp.planner.syntax.operators import OperatorParser

#: Meta of what stands behind ON, where a constant is no column; behind FOR it is compared as any value is.
OF_STATEMENT = "of_statement"

_WORDS = (TokenType.PIVOT, TokenType.UNPIVOT)
_QUERY_STARTS = (TokenType.SELECT, TokenType.FROM, TokenType.WITH, TokenType.VALUES, *_WORDS)
#: What ends a list in PIVOT, if no comma follows.
_ENDS = (TokenType.FOR, TokenType.USING, TokenType.INTO, TokenType.GROUP_BY, TokenType.R_PAREN)


class PivotParser(OperatorParser):
    """Of PIVOT and UNPIVOT; none of these words is a name."""

    TABLE_ALIAS_TOKENS: ClassVar[set[TokenType]] = OperatorParser.TABLE_ALIAS_TOKENS - set(_WORDS)
    ALIAS_TOKENS: ClassVar[set[TokenType]] = OperatorParser.ALIAS_TOKENS - {
        TokenType.FOR,
        TokenType.USING,
        TokenType.INTO,
    }

    def _parse_pivots(self) -> None:
        """None behind a table: they stand among the joins."""

    def _parse_join(self, *arguments: Any, **options: Any) -> exp.Join | None:
        if not self._match_set(_WORDS):
            join: exp.Join | None = super()._parse_join(*arguments, **options)
            return join
        word = self._prev
        pivot = self._unpivot_clause() if word.token_type is TokenType.UNPIVOT else self._pivot_clause()
        pivot.set("alias", self._parse_table_alias())
        return self._pivot_join(pivot.update_positions(word))

    def _pivot_join(self, pivot: exp.Expr) -> exp.Join:
        method = "UNPIVOT" if pivot.args.get("unpivot") else "PIVOT"
        joined: exp.Join = self.expression(exp.Join(this=pivot, method=method))
        return joined

    def _pivot_clause(self) -> exp.Expr:
        self._match_l_paren()
        aggregates = self._targets()
        self._match(TokenType.FOR)
        fields = []
        while self._curr.token_type not in (TokenType.R_PAREN, TokenType.GROUP_BY):
            header = self._parse_column()
            self._match(TokenType.IN)
            fields.append(self._field(header))
        group = self._group_names()
        self._match_r_paren()
        return self.expression(exp.Pivot(expressions=aggregates, fields=fields, group=group))

    def _field(self, header: exp.Expr | None) -> exp.Expr:
        """What is compared, with what stands behind IN."""
        values: exp.Expr
        if not self._match(TokenType.L_PAREN):  # an ENUM
            return self.expression(exp.Tuple(expressions=[header, self._parse_types()]))
        if self._curr.token_type in _QUERY_STARTS:
            values = self.expression(exp.Subquery(this=self._parse_statement()))
        else:
            values = self.expression(exp.Tuple(expressions=self._targets()))
        self._match_r_paren()
        return self.expression(exp.Tuple(expressions=[header, values]))

    def _unpivot_clause(self) -> exp.Expr:
        include_nulls = bool(self._match_text_seq("INCLUDE", "NULLS"))
        if not include_nulls:
            self._match_text_seq("EXCLUDE", "NULLS")
        self._match_l_paren()
        values = self._names()
        self._match(TokenType.FOR)
        name = self._parse_id_var()
        self._match(TokenType.IN)
        self._match_l_paren()
        columns = self._targets()
        self._match_r_paren()
        self._match_r_paren()
        return self._unpivot(name, values, columns, include_nulls)

    def _unpivot(
        self, name: exp.Expr | None, values: list[exp.Expr], columns: list[exp.Expr], include_nulls: bool
    ) -> exp.Expr:
        pivot = exp.Pivot(
            expressions=values, fields=[name, *columns], unpivot=True, include_nulls=include_nulls
        )
        return self.expression(pivot)

    def _names(self) -> list[exp.Expr]:
        """`a`, `a, b` or `(a, b)`"""
        in_parentheses = self._match(TokenType.L_PAREN)
        names: list[exp.Expr] = []
        while self._curr and self._curr.token_type is not TokenType.R_PAREN:
            name = self._parse_id_var()
            assert name is not None
            names.append(name)
            if not self._match(TokenType.COMMA):
                break
        if in_parentheses:
            self._match_r_paren()
        return names

    def _group_names(self) -> exp.Expr | None:
        if not self._match(TokenType.GROUP_BY):
            return None
        return self.expression(exp.Group(expressions=self._names()))

    def _targets(self) -> list[exp.Expr]:
        """Items as of SELECT, behind the last of which a comma may stand."""
        items: list[exp.Expr] = []
        while self._curr and self._curr.token_type not in _ENDS:
            item = self._parse_expression()
            if item is None:  # such as an operator that sqlglot does not know
                self.raise_error("an item")
            else:
                items.append(item)
            if not self._match(TokenType.COMMA):
                break
        return items

    # in the place of a SELECT

    #: What reads a query behind the word with which it begins.
    QUERIES: ClassVar[dict[TokenType, Any]] = {
        TokenType.PIVOT: lambda self: self._pivot_query(unpivot=False),
        TokenType.UNPIVOT: lambda self: self._pivot_query(unpivot=True),
    }

    def _parse_select_query(self, *arguments: Any, **options: Any) -> exp.Expr | None:
        if self._match_set(self.QUERIES):
            made: exp.Expr = self.QUERIES[self._prev.token_type](self)
            return self._whole(made) if options.get("parse_set_operation", True) else made
        query: exp.Expr | None = super()._parse_select_query(*arguments, **options)
        return query

    def _whole(self, query: exp.Expr | None) -> exp.Expr | None:
        """The query with what stands behind it."""
        whole: exp.Expr | None = self._parse_query_modifiers(self._parse_set_operations(query))
        return whole

    def _parse_simplified_pivot(self, is_unpivot: bool | None = None) -> Any:
        """Behind the word, where sqlglot expects this statement."""
        return self._whole(self._pivot_query(bool(is_unpivot)))

    def _pivot_query(self, unpivot: bool) -> exp.Expr:
        word = self._prev
        source = exp.From(this=self._parse_table(joins=True))
        columns: list[exp.Expr] = []
        if self._match(TokenType.ON):
            columns = self._targets() if unpivot else self._pivot_columns()
        if unpivot:
            pivot = self._unpivot(*self._unpivot_names(), columns, include_nulls=False)
        else:
            aggregates = self._targets() if self._match(TokenType.USING) else []
            group = self._group_names()
            if not columns:
                return self._grouped(source, aggregates, group)
            count = exp.Anonymous(this="count", expressions=[])
            pivot = exp.Pivot(expressions=aggregates or [count], fields=columns, group=group)
        join = self._pivot_join(pivot.update_positions(word))
        return self.expression(exp.Select(expressions=[exp.Star()], from_=source, joins=[join]))

    def _pivot_columns(self) -> list[exp.Expr]:
        columns = []
        while self._curr and self._curr.token_type not in _ENDS:
            start = self._index
            header = self._parse_column()
            is_list = self._match(TokenType.IN) and self._next.token_type is not TokenType.R_PAREN
            if header is not None and is_list:
                field = self._field(header)
            else:
                self._retreat(start)
                field = self.expression(exp.Tuple(expressions=[self._parse_disjunction()]))
            header = field.expressions[0]
            if isinstance(header, exp.Tuple):  # one value here, where it is several behind FOR
                header.replace(exp.Paren(this=header.copy()))
            field.meta[OF_STATEMENT] = True
            columns.append(field)
            if not self._match(TokenType.COMMA):
                break
        return columns

    def _unpivot_names(self) -> tuple[exp.Expr, list[exp.Expr]]:
        """The names of the column of names and of those of values."""
        if not self._match(TokenType.INTO):
            return exp.to_identifier("name"), [exp.to_identifier("value")]
        self._match_text_seq("NAME")
        name = self._parse_id_var() or self._parse_string_as_identifier()
        self._advance()  # VALUE or VALUES
        assert name is not None
        return name, self._names()

    def _grouped(self, source: exp.Expr, aggregates: list[exp.Expr], group: exp.Expr | None) -> exp.Expr:
        """Without ON there are no columns to be made: PIVOT t USING sum(x) GROUP BY a."""
        keys = [exp.Column(this=name) for name in (group.expressions if group else ())]
        select = exp.Select(expressions=[*(key.copy() for key in keys), *aggregates], from_=source)
        if keys:
            select.set("group", exp.Group(expressions=keys))
        return self.expression(select)
