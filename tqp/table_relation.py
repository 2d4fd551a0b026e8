"""Relations that stand in FROM by themselves: tables of a connection, whose rows can be changed, too, and files."""

from __future__ import annotations

from collections.abc import Mapping

from tqp.clauses import condition_text
from tqp.core.arguments import check_name
from tqp.core.errors import BindError
from tqp.core.keywords import in_quotes
from tqp.expressions import Sql, operand
from tqp.planner.catalog_protocol import View
from tqp.planner.parse import parse
from tqp.planner.syntax.parts import Name
from tqp.relation import UNNAMED, Relation, Tables
from tqp.statements.session import Session


class TableRelation(Relation):
    """A table or view by its name. What is made of it may say all that a query of the table may, such as `rowid` and `s.t.a`."""

    def __init__(self, session: Session, name: Name) -> None:
        self._name = name.in_quotes
        super().__init__(session, View(name.text, parse(f"FROM {self._name}")))

    def _closed(self) -> Tables:
        return self._name, {self.alias: None}

    def insert(self, values: object) -> None:
        """Insert a row of these values, or of one that is no list or tuple.

        >>> import tqp
        >>> with tqp.connect() as con:
        ...     _ = con.execute("CREATE TABLE t (a INTEGER, b VARCHAR)")
        ...     con.table("t").insert([1, "x"])
        ...     con.table("t").update({"a": tqp.col("a") + 1}, condition="b = 'x'")
        ...     con.table("t").fetchall()
        [(2, 'x')]
        """
        row = list(values) if isinstance(values, (list, tuple)) else [values]
        self._session.run(f"INSERT INTO {self._name} VALUES ({', '.join('?' * len(row))})", row, None)

    def update(self, set: Mapping[str, object], *, condition: Sql | None = None) -> None:
        """Give columns these values, or those of expressions, in all rows, or where the condition is true.

        Raises BindError for a text, which may be meant for either: `tqp.col` names a column, `tqp.lit` makes a value.
        """
        if not isinstance(set, Mapping) or not set:
            raise BindError("update() takes a dict from columns to what they become")
        for name, value in set.items():
            check_name("a column", name)
            if isinstance(value, str):
                raise BindError(
                    f'update(): "{name}" becomes {value!r}; say whether that is col({value!r}) or lit({value!r})'
                )
        changes = ", ".join(f"{in_quotes(name)} = {operand(value)}" for name, value in set.items())
        where = "" if condition is None else f"WHERE ({condition_text(condition)})"
        self._session.run(f"UPDATE {self._name} SET {changes} {where}", None, None)


class FileRelation(Relation):
    """A call that reads files. What is made of it may name columns that `*` leaves out, such as `filename`."""

    def __init__(self, session: Session, call: str, alias: str = UNNAMED) -> None:
        self._call = call
        super().__init__(session, View(alias, parse(f"FROM {call}")))

    def _closed(self) -> Tables:
        return f"{self._call} AS {in_quotes(self.alias)}", {self.alias: None}

    def set_alias(self, alias: str) -> Relation:
        """The same under another name."""
        check_name("a relation", alias)
        return FileRelation(self._session, self._call, alias)
