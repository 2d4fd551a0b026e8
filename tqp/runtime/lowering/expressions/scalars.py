"""Lowering of bound expressions: each becomes nodes of the pipeline's graph over the rows of the current space."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from tqp.core.datatypes import BOOLEAN, VARCHAR, DataType, TypeKind
from tqp.core.errors import UnsupportedError
from tqp.core.schema import Field
from tqp.operators.numbers.casts import refuse_rows, resolve_cast
from tqp.operators.rows import batches
from tqp.operators.rows.domain_tables import look_up
from tqp.operators.scalar_kernels import resolve
from tqp.operators.vectors import SIMILARITIES
from tqp.planner.algebra.element_expressions import ElementRef, OverElements, ReduceElements
from tqp.planner.algebra.expression_text import format_expression
from tqp.planner.algebra.expressions import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Parameter,
    Predict,
    PythonCall,
    Try,
)
from tqp.planner.algebra.known_fields import KnownFields
from tqp.planner.algebra.may_raise import is_failing_constant, may_raise
from tqp.planner.functions.conditions import COMPARISONS
from tqp.planner.functions.registry import SCALARS
from tqp.planner.functions.type_rules import can_cast
from tqp.runtime.lowering.expressions.arrays import lower_array_cast
from tqp.runtime.lowering.expressions.attempts import lower_try
from tqp.runtime.lowering.expressions.code_ranges import lower_code_ranges
from tqp.runtime.lowering.expressions.compare import lower_comparison, lower_distinct_from
from tqp.runtime.lowering.expressions.conditions import (
    Guard,
    Masks,
    all_of,
    lower_case,
    lower_coalesce,
    lower_condition,
    lower_connective,
)
from tqp.runtime.lowering.expressions.domain import Domain, domain_of, lower_over_domain
from tqp.runtime.lowering.expressions.elements import (
    lower_nested_cast,
    lower_nested_text,
    lower_over_elements,
)
from tqp.runtime.lowering.expressions.in_lists import lower_in_list
from tqp.runtime.lowering.expressions.json_texts import lower_json
from tqp.runtime.lowering.expressions.kernel_calls import call_kernel, lower_similarity
from tqp.runtime.lowering.expressions.numbers import lower_arithmetic, lower_numeric_cast
from tqp.runtime.lowering.expressions.parameters import lower_parameter_codes, lower_with_parameter
from tqp.runtime.lowering.expressions.predictions import lower_over_combinations, lower_predict
from tqp.runtime.lowering.expressions.python_calls import lower_python_call
from tqp.runtime.lowering.expressions.reductions import lower_reduce_elements
from tqp.runtime.lowering.expressions.value_forms import ValueForms
from tqp.runtime.lowering.graph_builder import NamedKernel, Node
from tqp.runtime.lowering.layouts import Form, Layout, canonical_layout, integer_layout
from tqp.runtime.lowering.stream import Stream, Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.program_builder import ProgramBuilder


class ExpressionLowering(ValueForms):
    """Lowers expressions into one stream. Made anew for each node of the plan."""

    def __init__(self, stream: Stream, program: ProgramBuilder) -> None:
        super().__init__(stream, program)
        #: Rows whose values count, where something before has decided the others: these must not raise.
        self.guard: Guard | None = None if stream.space.kept is None else stream.guard
        #: Columns that are not NULL in the rows that the guard lets through.
        self.present: frozenset[int] = frozenset()
        #: By the id of an `ElementRef`, the column of the stream that holds the elements.
        self.element_columns: dict[int, int] = {}
        #: What is known of a column where it takes every value of its domain.
        self.domain_fields: dict[Domain, KnownFields] = {}

    def lower(self, expression: Expression) -> Value:
        """The expression over the rows of the current space, in whatever form is cheapest."""
        match expression:
            case Literal(value, data_type):
                return _literal_value(value, data_type)
            case Parameter():
                return _parameter_value(expression)
            case ColumnRef(id):
                return self.stream.column(id)
        direct = lower_code_ranges(self, expression) or lower_parameter_codes(self, expression)
        if direct is not None:
            return direct
        domain = domain_of(self, expression)
        if domain is not None:
            return lower_over_domain(self, expression, domain)
        return self.lower_over_rows(expression)

    def _is_over_rows(self, expression: Expression) -> bool:
        """Is the expression computed row by row, and not once for each value of a column?"""
        by_code = lower_code_ranges(self, expression) or lower_parameter_codes(self, expression)
        return by_code is None and domain_of(self, expression) is None

    def lower_over_rows(self, expression: Expression) -> Value:
        """The expression computed row by row, even if its column has a small domain."""
        match expression:
            case Literal() | Parameter() | ColumnRef():
                return self.lower(expression)
            case Cast():
                return self._lower_cast(expression)
            case Case():
                return lower_case(self, expression)
            case ElementRef(id):
                return self.stream.column(self.element_columns[id])
            case OverElements():
                return lower_over_elements(self, expression)
            case ReduceElements():
                return lower_reduce_elements(self, expression)
            case Try():
                return lower_try(self, expression)
            case InList():
                return lower_with_parameter(self, expression) or lower_in_list(self, expression)
            case Call():
                return lower_with_parameter(self, expression) or self._lower_call(expression)
            case Predict():
                by_table = lower_over_combinations(self, expression) if expression.combinations else None
                return by_table or lower_predict(self, expression)
            case PythonCall():
                return lower_python_call(self, expression)
        raise UnsupportedError(f"the expression {format_expression(expression)} is not supported here")

    def fields(self) -> Mapping[int, Field]:
        """What is known of the columns in the rows that count here."""
        known = self.stream.fields
        present = {id: replace(known[id], nullable=False) for id in self.present if id in known}
        return {**known, **present} if present else known

    @contextmanager
    def only_where(self, masks: Masks | None) -> Iterator[None]:
        """What is lowered inside raises for no row but those where all masks are true, and so are those of blocks around it.

        The masks are made inside of the block, if a kernel that may raise asks for them.
        """
        outer = self.guard
        if masks is not None:
            self.guard = lambda: all_of(self.stream.builder, [*masks(), *([outer()] if outer else [])])
        yield
        self.guard = outer

    def condition(self, expression: Expression) -> Node:
        """A bool tensor that is True where the expression is true: neither false nor NULL."""
        if (
            isinstance(expression, Call)
            and expression.function in ("and", "or")
            and self._is_over_rows(expression)
        ):
            return lower_condition(self, expression)
        value = self.lower(expression)
        if value.validity is None:
            return self.tensor(value)
        return self.stream.builder.call(operator.and_, self.tensor(value), value.validity)

    def materialised(self, expression: Expression) -> Value:
        """The expression as tensors over the rows of the current space."""
        return self.materialise(self.lower(expression))

    def checked_validity(self, expression: Expression, value: Value) -> Node:
        """The validity of `expression`, lowered to `value`: where that may raise it does, though nobody reads the values."""
        validity = self.validity_node(value)
        if value.is_constant or not may_raise(expression, self.stream.fields):
            return validity
        return self.stream.builder.call(batches.when_computed, validity, value.node)

    def active(self, validity: Node | None) -> Node | None:
        """The rows for which a checking kernel may raise."""
        return self.all_valid(self.guard and self.guard(), validity)

    # expressions

    def _lower_call(self, call: Call) -> Value:
        function = call.function
        if function in ("and", "or"):
            return lower_connective(self, call)
        if function == "coalesce":
            return lower_coalesce(self, call)
        if function in SIMILARITIES:
            return lower_similarity(self, call)
        if function == "concat_operator":
            call = replace(call, arguments=tuple(_joined_strings(call)))
        arguments = self._lower_arguments(call)
        build = self.stream.builder
        if function == "null_after":
            return self._null_after(call.data_type, arguments)
        if SCALARS[function].is_null_for_null and any(value.is_null for value in arguments):
            return self._null(call, arguments[0])
        if function in COMPARISONS:
            return lower_comparison(self, function, arguments[0], arguments[1])
        match function:
            case "add" | "subtract" | "multiply":
                return lower_arithmetic(self, call, arguments[0], arguments[1])
            case "negate":
                if call.data_type.is_float:
                    node = build.call(operator.neg, self.tensor(arguments[0]))
                    return Value(arguments[0].layout, node, arguments[0].validity)
                zero = _literal_value(0, arguments[0].layout.data_type)
                return lower_arithmetic(self, replace(call, function="subtract"), zero, arguments[0])
            case "not":
                node = build.call(operator.invert, self.tensor(arguments[0]))
                return Value(arguments[0].layout, node, self.combine_validity(arguments[0]))
            case "is_null":
                node = build.call(operator.invert, self.checked_validity(call.arguments[0], arguments[0]))
                return Value(canonical_layout(BOOLEAN, False), node)
            case "is_distinct_from" | "is_not_distinct_from":
                return lower_distinct_from(self, call, arguments[0], arguments[1])
        types = tuple(argument.data_type for argument in call.arguments)
        return call_kernel(self, partial(resolve, function, types, call.data_type), call, arguments)

    def null_of(self, data_type: DataType) -> Value:
        """NULL of a type, for every row."""
        return _literal_value(None, data_type)

    def _null(self, call: Call, first: Value) -> Value:
        """NULL for every row; of a comparison not before the constant on its left is computed, which may fail."""
        null = _literal_value(None, call.data_type)
        if (
            call.function not in COMPARISONS
            or first.is_constant
            or not is_failing_constant(call.arguments[0])
        ):
            return null
        return self._null_after(call.data_type, [first])

    def _null_after(self, data_type: DataType, computed: Sequence[Value]) -> Value:
        """NULL for every row, once values are computed, which may fail."""
        null = self.materialise(self.null_of(data_type))
        validity = null.validity
        for value in computed:
            if not value.is_constant:
                parts = (value.node, value.validity)  # of NULL for every row, the latter is what is computed
                validity = self.stream.builder.call(batches.when_computed, validity, parts)
        return Value(null.layout, null.node, validity)

    def _lower_arguments(self, call: Call) -> list[Value]:
        """The arguments; a constant that fails does so for no row in which an argument before it is NULL."""
        values: list[Value] = []
        for argument in call.arguments:
            validity = None
            if values and is_failing_constant(argument) and SCALARS[call.function].is_null_for_null:
                validity = self.combine_validity(*values)
            if validity is None:
                values.append(self.lower(argument))
            else:
                with self.only_where(partial(tuple, [validity])):
                    values.append(self.lower(argument))
        return values

    def _lower_cast(self, cast: Cast) -> Value:
        value = self.lower(cast.input)
        source, target = value.layout.data_type, cast.data_type
        if source == target:
            return value
        if source.kind is TypeKind.NULL:
            raises = may_raise(cast.input, self.stream.fields)
            return self._null_after(target, [value]) if raises else _literal_value(None, target)
        if target == VARCHAR and (source.is_json or source.kind is TypeKind.BIT):
            return replace(value, layout=replace(value.layout, data_type=target))
        if target.is_json and source != VARCHAR and not value.is_null:
            return lower_json(self, value)
        if not can_cast(source, target):
            return self._lower_refused_cast(cast, value)
        if value.is_null:
            return _literal_value(None, target)
        if {source.kind, target.kind} == {TypeKind.ARRAY, TypeKind.LIST}:
            return lower_array_cast(self, cast, value)
        if source.is_nested and target == VARCHAR:
            return lower_nested_text(self, value)
        if source.is_nested and target.is_nested:
            return lower_nested_cast(self, cast, value)
        if source.kind is TypeKind.BOOLEAN and target.is_integer:
            layout = replace(integer_layout(target, (0, 1), value.layout.nullable), dtype=torch.int8)
            return Value(layout, self.to_dtype(value, torch.int8), self.combine_validity(value))
        if source.is_integer_like:
            value = self.materialise(value)
        if not value.is_constant:
            converted = lower_numeric_cast(self, cast, value)
            if converted is not None:
                return converted
            if source.kind is TypeKind.FLOAT and target.kind is TypeKind.DOUBLE:
                layout = canonical_layout(target, value.layout.nullable)
                return Value(layout, self.to_dtype(value, torch.float64), value.validity)
        if source.is_enum:
            return self._text_of_enum(value)
        return call_kernel(self, partial(resolve_cast, source, target, cast.is_try), cast, [value])

    def _text_of_enum(self, value: Value) -> Value:
        """An ENUM as VARCHAR: codes into a dictionary of its texts."""
        pool, places, dtype = self.program.texts_of_enum(value.layout.data_type.categories)
        nullable = value.layout.nullable
        node = self.stream.builder.call(
            look_up, self.stream.object(places), value.node, 0, nullable, name="text"
        )
        return Value(Layout(VARCHAR, Form.CODES, dtype, nullable, None, pool), node, value.validity)

    def _lower_refused_cast(self, cast: Cast, value: Value) -> Value:
        """A cast that no value but NULL survives."""
        null = self.materialise(_literal_value(None, cast.data_type))
        validity = self.combine_validity(value)
        if validity is not None:
            validity = self.checked_validity(cast.input, value)
        kernel = NamedKernel(refuse_rows, "refuse_cast", cast.span)
        message = f"there is no cast from {cast.input.data_type} to {cast.data_type}; TRY_CAST gives NULL"
        rows = self.stream.num_rows()
        node = self.stream.builder.call(kernel, null.node, rows, message, validity=self.active(validity))
        return Value(replace(null.layout, nullable=validity is not None), node, validity)


def _literal_value(constant: Any, data_type: Any) -> Value:
    """A literal; NULL is a nullable constant."""
    if constant is None:
        layout = canonical_layout(data_type, True, (0, 0) if data_type.is_integer_like else None)
    elif data_type.is_integer_like:
        layout = integer_layout(data_type, (constant, constant), False)
    else:
        layout = canonical_layout(data_type, False)
    return Value(layout, None, None, True, constant)


def _parameter_value(parameter: Parameter) -> Value:
    """A parameter as an operand."""
    data_type = parameter.data_type
    layout = (
        integer_layout(data_type, parameter.range, False)
        if data_type.is_integer_like
        else canonical_layout(data_type, False)
    )
    return Value(layout, None, None, True, parameter)


def _joined_strings(call: Call) -> Iterator[Expression]:
    """What a chain of || puts one after the other: all of it is joined at once."""
    pending: list[Expression] = [call]
    while pending:
        part = pending.pop()
        if isinstance(part, Call) and part.function == "concat_operator":
            pending += reversed(part.arguments)
        else:
            yield part
