"""Methods of connections in the place of statements, COMMIT and LOAD among them, and for types by their names."""

from __future__ import annotations

from typing import Any, Self

from tqp import sql_types
from tqp.core.arguments import check_name
from tqp.core.datatypes import DataType
from tqp.core.keywords import in_quotes, quoted_text
from tqp.statements.session import Session


class Conveniences:
    """Those that a connection has, by DuckDB's names."""

    _session: Session

    list_type = staticmethod(sql_types.list_type)
    array_type = staticmethod(sql_types.array_type)
    struct_type = staticmethod(sql_types.struct_type)
    row_type = staticmethod(sql_types.row_type)
    union_type = staticmethod(sql_types.union_type)
    map_type = staticmethod(sql_types.map_type)
    decimal_type = staticmethod(sql_types.decimal_type)

    def sqltype(self, type_str: str) -> DataType:
        """The type that SQL has by this name. Raises BindError for a text that is none.

        >>> import tqp
        >>> with tqp.connect() as con:
        ...     con.sqltype("decimal(9, 2)[]")
        DECIMAL(9,2)[]
        """
        check_name("a type", type_str)
        (found,) = self._session.queries.types_of_names([type_str], self._session.catalog.state)
        return found

    def dtype(self, type_str: str) -> DataType:
        """`sqltype`."""
        return self.sqltype(type_str)

    def type(self, type_str: str) -> DataType:
        """`sqltype`."""
        return self.sqltype(type_str)

    def string_type(self, collation: str = "") -> DataType:
        """VARCHAR, with a collation if one is named."""
        return self.sqltype(f"VARCHAR COLLATE {in_quotes(collation)}" if collation else "VARCHAR")

    def commit(self) -> Self:
        """COMMIT, where BEGIN has begun a transaction; returns the connection."""
        if self._session.catalog.in_transaction:
            self._session.run("COMMIT", None, None)
        return self

    def rollback(self) -> Self:
        """ROLLBACK; returns the connection."""
        self._session.run("ROLLBACK", None, None)
        return self

    def begin(self) -> Self:
        """BEGIN; returns the connection."""
        self._session.run("BEGIN", None, None)
        return self

    def checkpoint(self) -> Self:
        """CHECKPOINT, which has nothing to write here; returns the connection."""
        self._session.run("CHECKPOINT", None, None)
        return self

    def load_extension(self, extension: str) -> None:
        """LOAD. Raises UnsupportedError for an extension that tqp has nothing of."""
        check_name("an extension", extension)
        self._session.run(f"LOAD {quoted_text(extension)}", None, None)

    def install_extension(self, /, extension: str, **options: Any) -> None:
        """INSTALL, which does nothing for what `load_extension` takes."""
        check_name("an extension", extension)
        self._session.run(f"INSTALL {quoted_text(extension)}", None, None)
