"""The text of lists, structs, subscripts, fields and lambdas in the names of output columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from sqlglot import exp

from tqp.core.keywords import quoted
from tqp.planner.syntax.parser import ARRAY_WORD, OPEN_END


def is_path(node: exp.Expr) -> bool:
    """Is it the name of a column, or of a field of one: a.b.c?"""
    while isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        node = node.this
    return isinstance(node, exp.Column | exp.Identifier)


class NestedNames:
    """What writes nested values; the rest of an expression is written by `Names`."""

    @abstractmethod
    def text(self, node: Any) -> str:
        """The text of any expression."""

    @abstractmethod
    def _call(self, name: str, arguments: Iterable[Any]) -> str:
        """The text of a call."""

    def _subscript(self, node: exp.Bracket) -> str:
        return f"{self.text(node.this)}[{self.text(node.expressions[0])}]"

    def _slice(self, node: exp.Slice) -> str:
        first, last, step = (
            "" if part is None else "-" if part.meta.get(OPEN_END) else self.text(part)
            for part in (node.this, node.expression, node.args.get("step"))
        )
        return f"{first}:{last or '-'}:{step}" if step else f"{first}:{last}"

    def _struct(self, node: exp.Struct) -> str:
        return f"struct_pack({', '.join(map(self._named, node.expressions))})"

    def _named(self, node: exp.PropertyEQ) -> str:
        return f"{quoted(node.this.name)} := {self.text(node.expression)}"

    def _field(self, node: exp.Dot) -> str:
        """A field of an expression, or a function of it written behind it."""
        field = node.expression
        base = node.this
        is_name = is_path(base)
        if isinstance(field, exp.Anonymous):
            if is_name:
                return f"{self.text(base)}.{self.text(field)}"
            call = field.copy()
            call.set("expressions", [base.copy(), *call.expressions])
            return self.text(call)
        return f"{self.text(base) if is_name else f'({self.text(base)})'}.{quoted(field.name)}"

    def _lambda(self, names: Sequence[str], body: str) -> str:
        return f"(lambda {', '.join(map(quoted, names))}: {body})"

    def _comprehension(self, node: exp.Comprehension) -> str:
        """DuckDB computes the condition and the outcome together, and takes the outcomes of those that it keeps."""
        operand, body, condition = (
            None if part is None else self.text(part)
            for part in (node.args["iterator"], node.this, node.args.get("condition"))
        )
        names = [each.name for each in (node.expression, node.args.get("position")) if each is not None]
        if condition is None:
            return f"list_apply({operand}, {self._lambda(names, str(body))})"
        both = self._lambda(names, f'struct_pack("filter" := {condition}, result := {body})')
        kept, result = (
            self._lambda(["elem"], f"struct_extract(elem, '{part}')") for part in ("filter", "result")
        )
        return f"list_apply(list_filter(list_apply({operand}, {both}), {kept}), {result})"

    def _list(self, node: exp.Array) -> str:
        if node.expressions and isinstance(node.expressions[0], exp.Comprehension):
            return self._comprehension(node.expressions[0])
        elements = ", ".join(map(self.text, node.expressions))
        return f"(ARRAY[{elements}])" if node.meta.get(ARRAY_WORD) else f"list_value({elements})"
