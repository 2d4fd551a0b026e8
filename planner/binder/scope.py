"""Names: which column a name means, in the FROM clause at hand or in one around it.

Columns come into being when they are first referred to (`ScopeColumn.field`), so that a scan reads only what the query
uses, `SELECT *` in a derived table notwithstanding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.core.keywords import lower_ascii
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import Call, ColumnRef, Expression, walk
from tqp.planner.binder.expressions.coercion import unify
from tqp.planner.parse import Span

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.aggregates.aggregates import AggregateCollector


@dataclass(slots=True, eq=False)
class ScopeColumn:
    """A column that may be named: its field is made on first use. `*` does not stand for a hidden one."""

    name: str
    _make: Callable[[], Field]
    _reference: ColumnRef | None = None
    is_hidden: bool = False

    @property
    def id(self) -> int | None:
        """The id of its field, if that has been made."""
        return None if self._reference is None else self._reference.id

    def reference(self) -> ColumnRef:
        if self._reference is None:
            made = self._make()
            self._reference = ColumnRef.of(made)
        return self._reference

    def renamed(self, name: str) -> ScopeColumn:
        return ScopeColumn(name, self.field)

    def field(self) -> Field:
        """What stands for the column in a plan that renames it."""
        reference = self.reference()
        return Field(reference.id, reference.name, reference.data_type)


class QualifiedTable(NamedTuple):
    """What stands before a column's name: that of a table, and the schemas one of which it stands in."""

    name: str
    schemas: tuple[str, ...]


#: None before a name without one.
Qualifier = str | QualifiedTable | None


class Relation:
    """A table, derived table or CTE in FROM, under the name it has there. The second column "a" of it is "a_1"."""

    __slots__ = ("alias", "by_name", "columns", "is_padded", "schema")

    def __init__(self, alias: str, columns: Sequence[ScopeColumn]) -> None:
        self.alias = alias
        #: In lower case, of a table or view without an alias.
        self.schema: str | None = None
        #: An outer join may put NULLs in place of a whole row.
        self.is_padded = False
        #: By name in lower case.
        self.by_name: dict[str, ScopeColumn] = {}
        last_numbers: dict[str, int] = {}
        for column in columns:
            name = column.name
            while lower_ascii(name) in self.by_name:
                number = last_numbers[lower_ascii(column.name)] = (
                    last_numbers.get(lower_ascii(column.name), 0) + 1
                )
                name = f"{column.name}_{number}"
            self.by_name[lower_ascii(name)] = column if name == column.name else column.renamed(name)
        self.columns = tuple(column for column in self.by_name.values() if not column.is_hidden)

    def is_named(self, qualifier: Qualifier) -> bool:
        """Whether `qualifier.column` may mean a column of it; None is no qualifier."""
        if isinstance(qualifier, QualifiedTable):
            return self.schema in qualifier.schemas and self.is_named(qualifier.name)
        return qualifier is None or lower_ascii(self.alias) == lower_ascii(qualifier)


@dataclass(slots=True)
class MergedColumn:
    """The one column that USING or NATURAL makes of its parts: `primary`, or after FULL JOIN the first that has a value."""

    name: str
    parts: tuple[ScopeColumn, ...]
    primary: ScopeColumn | None
    span: Span | None

    def expression(self) -> Expression:
        """What it stands for; each part by itself may be asked for, too."""
        if self.primary is not None:
            return self.primary.reference()
        values, common = unify([part.reference() for part in self.parts], "USING", self.span)
        return Call("coalesce", tuple(values), common, self.span)


#: By name in lower case; several of one name make it ambiguous.
MergedColumns = Mapping[str, tuple[MergedColumn, ...]]


def both_merged(left: MergedColumns, right: MergedColumns) -> MergedColumns:
    """The merged columns of two trees beside each other."""
    return {name: (*left.get(name, ()), *right.get(name, ())) for name in (*left, *right)} if right else left


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """A place where an expression names a column of the block; `correlated` if it stands in a subquery.

    The name stands for `whole`, which several columns make up if FULL JOIN has merged them.
    """

    reference: ColumnRef
    whole: Expression
    name: str
    span: Span | None
    correlated: bool = False

    @property
    def id(self) -> int:
        return self.reference.id


@dataclass(slots=True)
class CteDefinition:
    """WITH name(columns) USING KEY (keys) AS (tree): bound when it is first referred to, in the surroundings it was written in."""

    name: str
    tree: object
    columns: Sequence[str]
    scope: Scope | None
    bound: object = None  # what `ctes.py` made of it
    is_recursive: bool = False
    keys: Sequence[exp.Expr] | None = None  # names and aggregates


@dataclass(slots=True)
class Scope:
    """The names that expressions of one query block may use.

    `used`: the local columns referred to, by id. `uses`: every place outside aggregates that names one, while the
    clauses that may hold aggregates are bound.
    """

    relations: list[Relation] = field(default_factory=list)
    parent: Scope | None = None
    ctes: Mapping[str, CteDefinition] = field(default_factory=dict)
    merged: MergedColumns = field(default_factory=dict)
    used: dict[int, tuple[str, Span | None]] = field(default_factory=dict)
    uses: list[ColumnUse] | None = None
    row_number: ColumnRef | None = None  # of the rows of FROM, where WHERE draws random numbers
    open_aggregates: AggregateCollector | None = None  # set while a clause is bound that may hold aggregates
    aliases: Iterable[str] = ()  # of SELECT, in lower case
    alias_of: Callable[[str, Span | None], Expression] | None = (
        None  # while a subquery is bound: what an alias is in it
    )

    def outside(self) -> Scope | None:
        """The enclosing query, if there is one, and the CTEs that are defined here: what a query in place of this one sees."""
        return Scope(parent=self.parent, ctes=self.ctes) if self.ctes else self.parent

    @contextmanager
    def with_aliases(self, alias_of: Callable[[str, Span | None], Expression]) -> Iterator[Scope]:
        """This scope, in which `alias_of` tells what an alias stands for in a subquery; it may raise BindError."""
        before, self.alias_of = self.alias_of, alias_of
        try:
            yield self
        finally:
            self.alias_of = before

    def resolve(
        self, name: str, qualifier: Qualifier, span: Span | None, aliases: bool = True
    ) -> Expression | None:
        """What the name means in a subquery: a column or an alias here, or in an enclosing query; None if there is no such."""
        found = self.resolve_here(name, qualifier, span)
        may_be_alias = aliases and qualifier is None and self.alias_of is not None
        if found is None and may_be_alias and lower_ascii(name) in self.aliases:
            assert self.alias_of is not None
            return self.alias_of(lower_ascii(name), span)
        if found is None and self.parent is not None:
            return self.parent.resolve(name, qualifier, span, aliases)
        if found is not None:
            self.record_use(found, name, span, correlated=True)
        return found

    def value_of(self, column: ScopeColumn | MergedColumn) -> Expression:
        """What a star stands for in one of its places."""
        value = column.expression() if isinstance(column, MergedColumn) else column.reference()
        self._note(value, column.name, None)
        return value

    def outer_ids(self) -> frozenset[int]:
        """The columns of enclosing queries that have been named so far."""
        return frozenset() if self.parent is None else self.parent.outer_ids() | self.parent.used.keys()

    def record_use(self, found: Expression, name: str, span: Span | None, correlated: bool = False) -> None:
        """Add what a name stands for to `uses`, if they are recorded."""
        if self.uses is not None:
            self.uses += [
                ColumnUse(part, found, name, span, correlated)
                for part in walk(found)
                if isinstance(part, ColumnRef)
            ]

    def uses_in(self, expression: Expression) -> Iterator[ColumnUse]:
        """The columns of the block that a bound expression holds."""
        for part in walk(expression):
            if isinstance(part, ColumnRef) and part.id in self.used:
                yield ColumnUse(part, part, *self.used[part.id])

    def resolve_here(self, name: str, qualifier: Qualifier, span: Span | None) -> Expression | None:
        lowered = lower_ascii(name)
        merged = self.merged.get(lowered, ()) if qualifier is None else ()
        if len(merged) == 1:
            _check_names(self.relations, span, lowered)
            expression = merged[0].expression()
            self._note(expression, name, span)
            return expression
        owners = [each for each in self.relations if each.is_named(qualifier) and lowered in each.by_name]
        if not owners:
            return None
        if len(owners) > 1 and qualifier is not None:
            raise _stands_twice(owners[0].alias, span)
        if len(owners) > 1:
            choices = " or ".join(f'"{owner.alias}.{name}"' for owner in owners)
            raise BindError(f'column "{name}" is ambiguous; write {choices}', span)
        reference = owners[0].by_name[lowered].reference()
        self.used[reference.id] = (name, span)
        return reference

    def says_alias(self, node: exp.Column) -> bool:
        """Whether `alias.x` means the x of SELECT: no table or column is called "alias"."""
        if node.args.get("table") is None or len(node.parts) != 2 or lower_ascii(node.table) != "alias":
            return False
        return not (self.has_relation(node.table) or self.has_column(node.table, None))

    def column_at(self, place: int, span: Span | None) -> ScopeColumn:
        """The column of FROM that `#place` means; what USING merged counts as its parts. Raises BindError beyond the last."""
        columns = [column for relation in self.relations for column in relation.columns]
        if place > len(columns):
            raise BindError(f"there is no column #{place}: FROM has {len(columns)} columns", span)
        return columns[place - 1]

    def display_name(self, name: str, qualifier: str | None) -> str:
        """The column's name as its table spells it."""
        lowered = lower_ascii(name)
        for relation in self.relations:
            if relation.is_named(qualifier) and lowered in relation.by_name:
                return relation.by_name[lowered].name
        return name if self.parent is None else self.parent.display_name(name, qualifier)

    def _note(self, expression: Expression, name: str, span: Span | None) -> None:
        for part in walk(expression):
            if isinstance(part, ColumnRef):
                self.used[part.id] = (name, span)

    def has_column(self, name: str, qualifier: str | None) -> bool:
        """Whether the name is a column here, without referring to it."""
        return any(each.is_named(qualifier) and lower_ascii(name) in each.by_name for each in self.relations)

    def has_relation(self, alias: str) -> bool:
        return any(relation.is_named(alias) for relation in self._all_relations())

    def has_schema(self, name: str) -> bool:
        """Whether a table of the schema is in FROM, here or around."""
        return any(relation.schema == lower_ascii(name) for relation in self._all_relations())

    def star(
        self,
        qualifier: str | None,
        span: Span | None = None,
        excluded: Collection[tuple[str, str]] = (),
    ) -> Iterator[tuple[str, ScopeColumn | MergedColumn]]:
        """What `*` or `qualifier.*` stands for, in order; a merged column stands where its first part does that is not excluded.

        `excluded` are columns by table, or "" for any table or none, and name, in lower case.
        """
        relations = [relation for relation in self.relations if relation.is_named(qualifier)]
        if qualifier is None:
            _check_names(relations, span, excluded=excluded)
        elif len(relations) > 1:
            raise _stands_twice(qualifier, span)
        given: list[MergedColumn] = []
        for relation in relations:
            for column in relation.columns:
                name = lower_ascii(column.name)
                of_name = self.merged.get(name, ()) if qualifier is None else ()
                merged = next((each for each in of_name if column in each.parts), None)
                if ("", name) in excluded or (lower_ascii(relation.alias), name) in excluded:
                    continue
                if merged is None:
                    yield column.name, column
                elif not any(merged is each for each in given):
                    given.append(merged)
                    yield column.name, merged

    def unknown_column(
        self, name: str, qualifier: str | None, span: Span | None
    ) -> BindError | UnsupportedError:
        """The error for a column that is nowhere, with the nearest names."""
        if qualifier is not None and not self.has_relation(qualifier):
            if any(lower_ascii(qualifier) in relation.by_name for relation in self._all_relations()):
                return UnsupportedError(f'fields of columns ("{qualifier}.{name}") are not supported', span)
            aliases = [relation.alias for relation in self._all_relations()]
            return BindError(
                f'no table "{qualifier}" in FROM{nearest(qualifier, aliases)}' + _listing("tables", aliases),
                span,
            )
        relations = [relation for relation in self._all_relations() if relation.is_named(qualifier)]
        names = list(dict.fromkeys(column.name for relation in relations for column in relation.columns))
        place = f'table "{qualifier}"' if qualifier is not None else "any table of FROM"
        if not names:
            return BindError(f'column "{name}" does not exist: there is no FROM clause to take it from', span)
        return BindError(
            f'no column "{name}" in {place}{nearest(name, names)}' + _listing("columns", names), span
        )

    def _all_relations(self) -> Iterable[Relation]:
        yield from self.relations
        if self.parent is not None:
            yield from self.parent._all_relations()


def _check_names(
    relations: Iterable[Relation],
    span: Span | None,
    name: str | None = None,
    excluded: Collection[tuple[str, str]] = (),
) -> None:
    """Refuse tables of one name in one schema that share a column (`name`, if given): neither `*` nor USING tells which is meant."""
    seen: dict[tuple[str, str], set[str | None]] = {}
    for relation in relations:
        if not relation.alias:
            continue
        for column in relation.by_name if name is None else relation.by_name.keys() & {name}:
            pair = lower_ascii(relation.alias), column
            if ("", column) in excluded:
                continue
            schemas = seen.setdefault(pair, set())
            # EXCLUDE says no schema: its table may stand in one of them only
            if schemas and (relation.schema in schemas) != (pair in excluded):
                raise _stands_twice(relation.alias, span)
            schemas.add(relation.schema)


def _stands_twice(alias: str, span: Span | None) -> BindError:
    """The error for `alias.column` or `alias.*` where it may mean either of two tables."""
    return BindError(f'the name "{alias}" stands twice in FROM; give one of them an alias', span)


def _listing(what: str, names: Sequence[str]) -> str:
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f" ({what}: {shown})" if names else ""
