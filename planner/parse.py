"""SQL text to a sqlglot tree, of the queries that DuckDB's grammar allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import errors, exp
from sqlglot.dialects.duckdb import DuckDB

from tqp.core.errors import ParseError, UnsupportedError
from tqp.planner.syntax.parser import Parser
from tqp.planner.syntax.query_grammar import Explain, Statement, not_a_query, statements
from tqp.planner.syntax.sqlglot_tokens import sqlglot_tokens
from tqp.planner.syntax.tokens import Tokens, tokenize

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


#: SQL as text, or parsed before.
Query = str | ParsedStatement


def text_of(query: Query) -> str:
    """The SQL that the user wrote."""
    return query if isinstance(query, str) else query.text


def parse(query: str) -> ParsedStatement:
    """Parse one SELECT-like statement, perhaps under EXPLAIN. Raises ParseError with a span, UnsupportedError.

    >>> type(parse("EXPLAIN SELECT 1").tree).__name__, parse("EXPLAIN SELECT 1").explain
    ('Select', 'plan')
    """
    tokens = tokenize(query)
    found = statements(tokens)
    if not found:
        raise ParseError("there is no statement in the SQL text")
    if len(found) > 1:
        raise UnsupportedError(f"the text holds {len(found)} statements; pass them one at a time")
    statement = found[0]
    if not statement.is_query:
        raise not_a_query(statement.word)
    tree = _tree(tokens, statement)
    return ParsedStatement(query, tree, statement.explain, _parameter_keys(query, tree))


def _tree(tokens: Tokens, statement: Statement) -> exp.Expr:
    """sqlglot's tree of a statement that the grammar allows. What sqlglot cannot read is a feature that tqp lacks."""
    parser = Parser(dialect=_DIALECT)
    try:
        (tree,) = parser.parse(sqlglot_tokens(tokens, statement.start, statement.stop), tokens.text)
    except errors.ParseError:
        place = parser.token_at_hand
        span = (place.start, place.end + 1)
        source = tokens.text[span[0] : span[1]]
        raise UnsupportedError(f'the syntax at or near "{source}" is not supported', span) from None
    assert tree is not None
    return tree


def _parameter_keys(query: str, tree: exp.Expr) -> dict[int, int | str]:
    if "?" not in query and "$" not in query:
        return {}
    found = sorted(tree.find_all(exp.Placeholder), key=lambda node: node.meta["start"])
    keys: dict[int, int | str] = {}
    questions = 0
    for node in found:
        text = node.args.get("this")
        if text is None:
            questions += 1
            keys[node.meta["start"]] = questions
        else:
            name = text.name if isinstance(text, exp.Expr) else str(text)
            keys[node.meta["start"]] = int(name) if name.isdigit() else name
    return keys


def span_of(node: object) -> Span | None:
    """The characters that a node covers: from the first to the last position known in it. Remembered in the node."""
    if not isinstance(node, exp.Expr):
        return None
    meta = node.meta
    if _COVERED in meta:
        known: Span | None = meta[_COVERED]
        return known
    start, stop = (meta["start"], meta["end"] + 1) if "start" in meta else (None, 0)
    for value in node.args.values():
        for part in value if type(value) is list else (value,):
            inner = span_of(part) if isinstance(part, exp.Expr) else None
            if inner is not None:
                start = inner[0] if start is None else min(start, inner[0])
                stop = max(stop, inner[1])
    covered = meta[_COVERED] = None if start is None else (start, stop)
    return covered


_COVERED = "covered"  # key in a node's meta


def without_parentheses(node: exp.Expr) -> exp.Expr:
    """What stands in any number of parentheses around a query."""
    while isinstance(node, (exp.Subquery, exp.Paren)):
        node = node.this
    return node


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
