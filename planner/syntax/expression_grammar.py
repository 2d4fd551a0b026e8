"""The grammar of expressions.

Operators of one level are read in a loop, so a chain of 5,000 costs no stack; a pair of parentheses costs a few frames.
"""

from __future__ import annotations

from tqp.core.keywords import FUNCTION_WORDS
from tqp.planner.syntax.operand_grammar import CONSTANTS, OperandGrammar
from tqp.planner.syntax.words import COLUMN_NAMES, END, NUMBER, OPERATOR, TEXT

COMPARISONS = frozenset(("=", "==", "<>", "!=", "<", ">", "<=", ">="))
_PATTERNS = frozenset("LIKE ILIKE GLOB ~ ~* ~~ ~~* ~~~ !~ !~* !~~ !~~*".split())
#: Operators of two operands that bind closer than IN, LIKE and comparisons.
_INFIX = frozenset(("+", "-", "*", "/", "//", "%", "^", "**", "&", "|", "<<", ">>", "=>", OPERATOR))
_QUANTIFIED = COMPARISONS | {"~", "~*", "!~", "!~*"}
_SIGNS = frozenset(("+", "-", "~"))
#: Operators that may stand before the first operand of a chain.
_PREFIX = frozenset(("/", "//", "%", "^", "**", "&", "|", "<<", ">>", "=>", "!", OPERATOR)) | _SIGNS


_OPERAND_STARTS = (
    COLUMN_NAMES
    | {TEXT, NUMBER, "(", "[", "{", "?", "$", "#", "*"}
    | CONSTANTS
    | {"CASE", "CAST", "NOT", "ARRAY", "LAMBDA", "UNION"}
)
_EXPRESSION_STARTS = (_OPERAND_STARTS | _PREFIX) - {"UNION"}


_BEHIND_FUNCTIONS = ("(", TEXT, ".", ":=", "=>")
_ANY_OPERATOR = _PREFIX | COMPARISONS | _PATTERNS | {"*", "->"}
_LABEL_ENDS = (END, ")", ",", ";", "FROM")
_TESTS = ("NULL", "TRUE", "FALSE", "UNKNOWN")
_PREDICATES_AFTER_NOT = _PATTERNS | {"BETWEEN", "SIMILAR"}
_PREDICATES = _PREDICATES_AFTER_NOT | {"IN", "NOT"}


class ExpressionGrammar(OperandGrammar):
    """Expressions, from AND and OR down to names and literals."""

    def starts_expression(self) -> bool:
        """Whether the token at hand can begin an expression."""
        kind = self.kind
        return kind in _EXPRESSION_STARTS or kind in FUNCTION_WORDS and self.next_kind() in _BEHIND_FUNCTIONS

    def expressions(self) -> int:
        """a, b, c, and how many"""
        return self.items(self.expression, self.starts_expression)

    def expression(self, operand_read: bool = False) -> None:
        """Any expression; with `operand_read`, what follows its first operand in parentheses."""
        while True:
            if not operand_read:
                while self.kind == "NOT":
                    self.advance()
            self._truth(operand_read)
            operand_read = False
            if self.kind not in ("AND", "OR", "->"):
                return
            self.advance()

    def _truth(self, operand_read: bool) -> None:
        """Comparisons and IS. `a < b < c` is refused; IS NULL and IS DISTINCT FROM each begin anew."""
        self._predicate(operand_read)
        compared = distinct = tested = False
        while True:
            kind = self.kind
            if tested and (kind in _INFIX or self._is_quantified()):
                self.arithmetic_tail()
            elif kind in COMPARISONS:
                if compared:
                    self.complain("comparisons cannot be chained; combine them with AND")
                compared = True
                self.advance()
                if self.kind == "NOT":
                    while self.kind == "NOT":
                        self.advance()
                    self._truth(False)
                else:
                    self._predicate(False)
            elif kind == "IS":
                self.advance()
                self.skip("NOT")
                if self.skip("DISTINCT"):
                    if distinct:
                        self.complain("comparisons cannot be chained; combine them with AND")
                    self.expect("FROM")
                    self._predicate(False)
                    compared, distinct = False, True
                else:
                    self.expect_any(_TESTS, "NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
                    compared, distinct, tested = False, False, True
            elif kind == "ISNULL" or kind == "NOTNULL" or kind == "NOT" and self.next_kind() == "NULL":
                self.advance(2 if kind == "NOT" else 1)
                compared, distinct, tested = False, False, True
            elif tested and kind == "::":
                self.advance()
                self.type()
            else:
                return

    def _predicate(self, operand_read: bool) -> None:
        """IN any number of times, then BETWEEN or a pattern once."""
        if operand_read:
            self.indirections()
            self.arithmetic_tail()
        else:
            self.arithmetic()
        kind = self.kind
        if kind not in _PREDICATES:
            return
        while kind == "IN" or kind == "NOT" and self.next_kind() == "IN":
            self.advance(2 if kind == "NOT" else 1)
            if self.kind == "(" and self.next_kind() != ")":
                self.parentheses()
            else:
                self.arithmetic()
            while self.skip("::"):
                self.type()
            kind = self.kind
        if kind == "NOT":
            if self.next_kind() not in _PREDICATES_AFTER_NOT:
                return
            self.advance()
            kind = self.kind
        if kind == "BETWEEN":
            if self.next_kind() in _LABEL_ENDS:
                return  # a label
            self.advance()
            self.skip("ASYMMETRIC")
            self.arithmetic()
            self.expect("AND")
            self.arithmetic()
        elif kind in _PATTERNS or kind == "SIMILAR" and self.next_kind() == "TO":
            self.advance(2 if kind == "SIMILAR" else 1)
            self.arithmetic()
            if self.skip("ESCAPE"):
                self.arithmetic()

    def arithmetic(self) -> None:
        """Operands with operators between that bind closer than predicates and comparisons."""
        while self.kind in _PREFIX and self.kind != "~":
            self.advance()
        self._operand()
        self.arithmetic_tail()

    def arithmetic_tail(self) -> None:
        """What follows the first operand."""
        while True:
            kind = self.kind
            if kind in _INFIX:
                if kind == "%" and self.next_kind() not in _OPERAND_STARTS and self.next_kind() not in _SIGNS:
                    return  # LIMIT 10 %
                self.advance()
            elif kind == "COLLATE":
                self.advance()
            elif kind == "AT" and self.next_is("TIME", "ZONE"):
                self.advance(3)
            elif self._is_quantified():
                self.advance(2)
            else:
                self._refuse_named_operator()
                return
            self._operand()

    def _is_quantified(self) -> bool:
        """`= ANY`, `< ALL`, ..., which bind closer than `=` and `<`."""
        return self.kind in _QUANTIFIED and self.next_kind() in ("ANY", "SOME", "ALL")

    def _refuse_named_operator(self) -> None:
        """`OPERATOR(+)` or `OPERATOR(schema.+)`, not a call of a function of that name."""
        is_sign = self.next_kind(2) in _ANY_OPERATOR or self.next_kind(3) == "."
        if self.kind == "OPERATOR" and self.next_kind() == "(" and is_sign:
            self.lacks("OPERATOR()")

    def _operand(self) -> None:
        while self.kind == "~":
            self.advance()
        while self.kind in ("+", "-"):
            self.advance()
        self._refuse_named_operator()
        self.primary()
        self.indirections()
