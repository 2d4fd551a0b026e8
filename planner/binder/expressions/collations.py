"""COLLATE: texts are compared and sorted as a function of them, which a collation names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import JSON, VARCHAR, TypeKind
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.parse import head_span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder

#: By name in lower case: what stands for a text.
_FUNCTIONS = {
    "nocase": "lower",
    "noaccent": "strip_accents",
    "nfc": "nfc_normalize",
    **dict.fromkeys(("c", "posix", "binary")),
}
#: What is compared under a collation.
_TEXTS = (TypeKind.VARCHAR, TypeKind.ENUM, TypeKind.NULL)

#: Functions that search one text in another, under a collation that one of them has.
_SEARCHES = frozenset(("contains", "starts_with", "strpos", "instr"))


def collated(binder: ExpressionBinder, nodes: Sequence[exp.Expr]) -> Sequence[exp.Expr]:
    """What is compared in the place of the nodes: under a collation that one of them names, functions of them all.

    Raises BindError for a collation that there is not or of what is no VARCHAR, UnsupportedError for one of a language, and for two.
    """
    if not binder.context.may_collate:
        return nodes
    inner = [meant(binder, node) for node in nodes]
    found = {
        tuple(map(lower_ascii, collation_names(node))): node
        for node in inner
        if isinstance(node, exp.Collate)
    }
    if not found:
        return nodes
    if len(found) > 1:
        raise UnsupportedError(
            "a comparison of texts with two collations is not supported", span_of(nodes[0])
        )
    ((names, node),) = found.items()
    functions = [_function(name, node) for name in names]
    plain = [each.this if isinstance(each, exp.Collate) else each for each in inner]
    uses = binder.scope.uses
    before = len(uses or ())
    types = [binder.bind(each).data_type for each in plain]
    if uses is not None:
        del uses[before:]  # what is compared may be a key of GROUP BY where the texts are none
    for each, data_type in zip(inner, types, strict=True):
        if isinstance(each, exp.Collate) and data_type not in (VARCHAR, JSON):
            raise BindError(f"a collation is for VARCHAR, not for {data_type}", span_of(each))
    is_beside_json = any(
        data_type.is_json and not isinstance(each, exp.Collate)
        for each, data_type in zip(inner, types, strict=True)
    )
    if not is_beside_json and all(data_type.kind in _TEXTS for data_type in types):
        return [_applied(functions, each) for each in plain]
    # Compared as what the other operand is, where no collation counts; it is no literal, whose type would be open.
    return [
        exp.Cast(this=each.copy(), to=exp.DataType.build("VARCHAR"))
        if isinstance(node, exp.Collate)
        else each
        for node, each in zip(inner, plain, strict=True)
    ]


def meant(binder: ExpressionBinder, node: exp.Expr) -> exp.Expr:
    """The node without parentheses, or the text with a collation whose alias it is."""
    node = node.unnest()
    if isinstance(node, exp.Column) and not node.table and binder.aliases:
        item = binder.aliases.get(lower_ascii(node.name))
        collate = None if item is None else collation_of(item.node)
        if collate is not None and not binder.scope.has_column(node.name, None):
            return collate
    return node


def collation_of(node: exp.Expr | None) -> exp.Collate | None:
    """The text with a collation that a node is; None for any other."""
    inner = None if node is None else node.unnest()
    return inner if isinstance(inner, exp.Collate) else None


def searched(binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr]) -> Sequence[exp.Expr]:
    """The arguments of a function: functions of them where it searches texts under a collation."""
    if name not in _SEARCHES or not binder.context.may_collate:
        return nodes
    if not any(isinstance(node.unnest(), exp.Collate) for node in nodes):
        return nodes
    plain = [
        each.this if isinstance(each, exp.Collate) else each for each in (node.unnest() for node in nodes)
    ]
    if any(binder.bind(each).data_type.kind not in _TEXTS for each in plain):
        raise UnsupportedError(
            f"{name}() of a text with a collation in what is no text is not supported", span_of(nodes[0])
        )
    return collated(binder, nodes)


def key_of(node: exp.Expr) -> exp.Expr:
    """What is compared in the place of a text with a collation; other nodes as they are."""
    if not isinstance(node, exp.Collate):
        return node.copy()
    names = map(lower_ascii, collation_names(node))
    return _applied([_function(name, node) for name in names], node.this.copy())


def collation_names(node: exp.Collate) -> Sequence[str]:
    """The names of the collations that are applied one after the other, as they are written."""
    written = node.expression
    parts = written.parts if isinstance(written, exp.Column) else [written]
    return [part.name for part in parts]


def _function(name: str, node: exp.Collate) -> str | None:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if len(name) in (2, 5) or name.startswith("icu"):
        raise UnsupportedError(f'the collation "{name}" is not supported', head_span(node.expression))
    raise BindError(f'there is no collation "{name}"', head_span(node.expression))


def _applied(functions: Sequence[str | None], node: exp.Expr) -> exp.Expr:
    for name in functions:
        if name is not None:
            node = exp.Anonymous(this=name, expressions=[node.copy()])
    return node
