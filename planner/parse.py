"""SQL text to a sqlglot tree, of the queries that DuckDB's grammar allows."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import errors, exp
from sqlglot.dialects.duckdb import DuckDB

from tqp.core.errors import BindError, ParseError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.core.schema import TableSource
from tqp.planner.syntax.clauses import Clauses
from tqp.planner.syntax.parser import TYPE_START, Parser
from tqp.planner.syntax.parts import Part
from tqp.planner.syntax.query_grammar import Explain, Statement, not_a_query
from tqp.planner.syntax.sqlglot_tokens import spliced_tokens, sqlglot_tokens
from tqp.planner.syntax.statement_grammar import statements
from tqp.planner.syntax.tokens import Tokens, tokenize

if TYPE_CHECKING:
    from tqp.planner.catalog_protocol import View

Span = tuple[int, int]

_DIALECT = DuckDB()


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """A query's tree; positions in it are offsets into the text as the user wrote it.

    `parameter_keys`: by the place of each parameter in the text, in order: the number, from 1, of `?` and `$1`, the name of
    `$name`.
    """

    text: str
    tree: exp.Expr
    explain: Explain
    parameter_keys: Mapping[int, int | str]
    #: It is made of parts of another statement, and has only some of its parameters.
    is_part: bool = False
    #: What tells it from other queries that have this text.
    variant: Hashable = None
    #: What it looks up before what a catalog has, by name in lower case.
    inputs: Mapping[str, View | TableSource] = field(default_factory=dict)

    def reading(self, inputs: Mapping[str, View | TableSource]) -> ParsedStatement:
        """The same of these inputs, by their names."""
        return replace(self, inputs={lower_ascii(name): each for name, each in inputs.items()})


#: SQL as text, or parsed before.
Query = str | ParsedStatement


def text_of(query: Query) -> str:
    """The SQL that the user wrote."""
    return query if isinstance(query, str) else query.text


def parse(query: str) -> ParsedStatement:
    """Parse one query, perhaps under EXPLAIN. Raises ParseError with a span, UnsupportedError.

    >>> type(parse("EXPLAIN SELECT 1").tree).__name__, parse("EXPLAIN SELECT 1").explain
    ('Select', 'plan')
    """
    parsed = parse_statement(query)
    if not isinstance(parsed, ParsedStatement):
        raise not_a_query(parsed.word)
    return parsed


@dataclass(frozen=True, slots=True)
class Command:
    """A statement that is no query: what it says, and the tokens that its parts stand for. `word`: its first one.

    `common_tables`: pieces of the WITH before it; `inputs`: tables that names stand for in its queries.
    """

    text: str
    tokens: Tokens
    clauses: Clauses
    word: str
    explain: Explain = None
    common_tables: tuple[str | Part, ...] = ()
    inputs: Mapping[str, View | TableSource] = field(default_factory=dict)

    def source(self, part: Part) -> str:
        """The text of a part."""
        return self.text[self.tokens.starts[part.start] : self.tokens.stops[part.stop - 1]]

    def span(self, part: Part) -> Span:
        """The characters of a part."""
        return self.tokens.starts[part.start], self.tokens.stops[part.stop - 1]

    @property
    def parameter_keys(self) -> Mapping[int, int | str]:
        """See `ParsedStatement`."""
        return _parameter_keys(self.tokens)

    def query(self, *pieces: str | Part, of_rows: bool = False) -> ParsedStatement:
        """The query that parts of the statement, with words of ours around them, make up.

        `of_rows`: its SELECT holds a row for each of FROM: no aggregates, window functions and unnest().
        """
        if self.common_tables:
            first = pieces[0]
            word = first if isinstance(first, str) else self.tokens.kinds[first.start]
            if not word.startswith(("SELECT", "FROM")):  # but WITH, for one
                pieces = ("FROM (", *pieces, ")")
            pieces = (*self.common_tables, *pieces)
        tree = _tree(self.tokens, pieces)
        if of_rows:
            tree.meta[OF_ROWS] = self.word
        made = ParsedStatement(self.text, tree, None, self.parameter_keys, is_part=True)
        return made.reading(self.inputs) if self.inputs else made


#: Key in the meta of a SELECT that holds a row for each of FROM: the statement that it is part of.
OF_ROWS = "of rows"
#: In the meta of a cast: it is of an argument to the type of a macro's parameter, and may lose nothing.
UNASKED = "unasked"


def parse_statement(text: str) -> ParsedStatement | Command:
    """Parse one statement. Raises ParseError with a span, UnsupportedError."""
    tokens = tokenize(text)
    found = statements(tokens)
    if not found:
        raise ParseError("there is no statement in the SQL text")
    if len(found) > 1:
        raise UnsupportedError(f"the text holds {len(found)} statements; pass them one at a time")
    statement = found[0]
    if statement.is_query:
        tree = _tree(tokens, [Part(statement.start, statement.stop)])
        return ParsedStatement(text, tree, statement.explain, _parameter_keys(tokens))
    _check_known(statement)
    assert statement.clauses is not None
    return Command(text, tokens, statement.clauses, statement.word, statement.explain)


#: A text that begins as a query does and holds nothing that could end it before its end.
_ONE_QUERY = re.compile(
    r"\s*(?:EXPLAIN\s+(?:ANALYZE\s+)?)?(?:SELECT|FROM|VALUES|WITH(?!.*\b(?:INSERT|UPDATE|DELETE|MERGE|TRUNCATE)\b))\b[^;]*;?\s*",
    re.IGNORECASE | re.DOTALL,
)


def is_one_query(text: str) -> bool:
    """Whether that can be told at a glance: what is not told so may still be one."""
    return _ONE_QUERY.fullmatch(text) is not None


def split_statements(text: str) -> list[str]:
    """The statements of a text, each as a text of its own. Raises ParseError where one of them is none, UnsupportedError."""
    tokens = tokenize(text)
    found = statements(tokens)
    if not found:
        raise ParseError("there is no statement in the SQL text")
    for statement in found:
        if not statement.is_query:
            _check_known(statement)
    if len(found) == 1:
        return [text]
    ends = [tokens.stops[statement.stop - 1] for statement in found]
    starts = [0, *(tokens.starts[statement.stop] + 1 for statement in found[:-1])]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


_ONE_DATABASE = "there is one database, in memory"
#: What to do in place of statements that there are not.
_REMEDIES = {
    "ATTACH": f"{_ONE_DATABASE}. CREATE SCHEMA makes another place for tables; of a DuckDB file, EXPORT DATABASE in DuckDB makes"
    " files that IMPORT DATABASE reads",
    "DETACH": f"{_ONE_DATABASE}. DROP SCHEMA removes a place for tables",
}


def _check_known(statement: Statement) -> None:
    if statement.clauses is None:
        remedy = _REMEDIES.get(statement.word)
        raise UnsupportedError(
            f"{statement.word} statements are not supported{'' if remedy is None else f': {remedy}'}"
        )


def _tree(tokens: Tokens, pieces: Sequence[str | Part]) -> exp.Expr:
    """sqlglot's tree of a query that the grammar allows. What sqlglot cannot read is a feature that tqp lacks."""
    parser = Parser(dialect=_DIALECT)
    try:
        (tree,) = parser.parse(spliced_tokens(tokens, pieces), tokens.text)
    except errors.ParseError:
        place = parser.token_at_hand
        span = (place.start, place.end + 1)
        source = tokens.text[span[0] : span[1]]
        raise UnsupportedError(f'the syntax at or near "{source}" is not supported', span) from None
    assert tree is not None
    return tree


def _parameter_keys(tokens: Tokens) -> dict[int, int | str]:
    if "?" not in tokens.text and "$" not in tokens.text:
        return {}
    keys: dict[int, int | str] = {}
    questions = 0
    for index, kind in enumerate(tokens.kinds):
        if kind == "?":
            questions += 1
            keys[tokens.starts[index]] = questions
        elif kind == "$":
            name = sqlglot_tokens(tokens, index + 1, index + 2)[0].text  # without quotes, and "_" in numbers
            keys[tokens.starts[index]] = int(name) if name.isdecimal() else name
    return keys


def check_parameters(
    params: Sequence[object] | Mapping[str, object] | None, used: Collection[int | str], what: str
) -> None:
    """Raises BindError for values that no parameter of the query or statement uses."""
    given = () if params is None else params
    keys = given if isinstance(given, Mapping) else range(1, len(given) + 1)
    names = set(map(str, used))
    extra = [f"${key}" for key in keys if str(key) not in names]
    if extra:
        plural = "s" if len(extra) > 1 else ""
        raise BindError(f"the {what} does not use the parameter{plural} {', '.join(extra)}")


def span_of(node: object) -> Span | None:
    """The characters that a node covers: from the first to the last position known in it. Remembered in the node."""
    return _covered(node) if isinstance(node, exp.Expr) else None


def _covered(node: exp.Expr) -> Span | None:
    meta = node.meta
    if _COVERED in meta:
        known: Span | None = meta[_COVERED]
        return known
    spans = [(meta["start"], meta["end"] + 1)] if "start" in meta else []
    for value in node.args.values():
        for part in value if type(value) is list else (value,):
            inner = _covered(part) if isinstance(part, exp.Expr) else None
            if inner is not None:
                spans.append(inner)
    covered = meta[_COVERED] = (min(spans)[0], max([stop for _, stop in spans])) if spans else None
    return covered


_COVERED = "covered"  # key in a node's meta


def without_places(tree: exp.Expr) -> exp.Expr:
    """The tree, changed to say no more where in a text it stands."""
    for node in tree.walk():
        for key in ("start", "end", "line", "col", TYPE_START):
            node.meta.pop(key, None)
    return tree


def placed(node: exp.Expr, span: Span | None) -> exp.Expr:
    """The node, changed to say that it stands there."""
    if span is not None:
        node.meta.update(start=span[0], end=span[1] - 1)
    return node


def without_parentheses(node: exp.Expr) -> exp.Expr:
    """What stands in any number of parentheses around a query."""
    while isinstance(node, (exp.Subquery, exp.Paren)):
        node = node.this
    return node


def written_fields(node: exp.Expr) -> list[exp.Expr] | None:
    """The fields of a row that is written out, (a, b) or row(a, b); None of anything else."""
    written = without_parentheses(node)
    if isinstance(written, exp.Tuple) or (
        isinstance(written, exp.Anonymous) and lower_ascii(written.name) == "row" and written.expressions
    ):
        return list(written.expressions)
    return None


def chain_of(node: exp.Connector) -> list[exp.Expr]:
    """The operands of a chain of ANDs or of ORs, whatever parentheses stand between these."""
    parts: list[exp.Expr] = []
    pending: list[exp.Expr] = [node]
    while pending:
        part = pending.pop()
        inner = part.unnest()
        if type(inner) is type(node):
            pending += (inner.expression, inner.this)
        else:
            parts.append(part)
    return parts


def head_span(node: object) -> Span | None:
    """The node's own position (for a call: its name), or that of its first descendant with one."""
    if not isinstance(node, exp.Expr):
        return None
    pending: list[exp.Expr] = [node]
    while pending:
        part = pending.pop()
        meta = part._meta
        if meta and "start" in meta:
            return meta["start"], meta["end"] + 1
        pending.extend(part.iter_expressions(reverse=True))
    return None
