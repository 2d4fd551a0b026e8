"""The ways out of an answer, for what has one: connections and cursors, of what they executed last, and relations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.result import Result

if TYPE_CHECKING:
    import pandas
    import polars


class WaysOut(ABC):
    """`fetchone`, `fetchmany` and `fetchall` go on where the last of them has ended, the others give all rows."""

    @abstractmethod
    def _result(self) -> Result:
        """Raises an error where nothing has been executed."""

    @property
    def description(self) -> Sequence[tuple[str, DataType, None, None, None, None, None]] | None:
        """Name and type of each column, as PEP 249 has it."""
        return self._result().description

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None behind the last."""
        return self._result().fetchone()

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """The next rows, `size` at most."""
        return self._result().fetchmany(size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        answer = self._result()
        return answer.fetchmany(len(answer))

    def iter_rows(self) -> Iterator[tuple[Any, ...]]:
        """See `Result.iter_rows`."""
        return self._result().iter_rows()

    def to_dicts(self) -> list[dict[str, Any]]:
        """See `Result.to_dicts`."""
        return self._result().to_dicts()

    def fetchnumpy(self) -> dict[str, NDArray[Any]]:
        """See `Result.fetchnumpy`."""
        return self._result().fetchnumpy()

    def df(self) -> pandas.DataFrame:
        """See `Result.to_pandas`."""
        return self._result().to_pandas()

    def fetchdf(self) -> pandas.DataFrame:
        """See `Result.to_pandas`."""
        return self._result().to_pandas()

    def fetch_df(self) -> pandas.DataFrame:
        """See `Result.to_pandas`."""
        return self._result().to_pandas()

    def fetch_df_chunk(self, vectors_per_chunk: int = 1) -> pandas.DataFrame:
        """See `Result.fetch_df_chunk`."""
        return self._result().fetch_df_chunk(vectors_per_chunk)

    def to_df(self) -> pandas.DataFrame:
        """See `Result.to_pandas`."""
        return self._result().to_pandas()

    def to_pandas(self) -> pandas.DataFrame:
        """See `Result.to_pandas`."""
        return self._result().to_pandas()

    @overload
    def pl(self, *, lazy: Literal[False] = False) -> polars.DataFrame: ...

    @overload
    def pl(self, *, lazy: Literal[True]) -> polars.LazyFrame: ...

    def pl(self, *, lazy: bool = False) -> polars.DataFrame | polars.LazyFrame:
        """See `Result.pl`."""
        result = self._result()
        return result.pl(lazy=True) if lazy else result.pl()

    def to_polars(self) -> polars.DataFrame:
        """See `Result.to_polars`."""
        return self._result().to_polars()

    def arrow(self) -> pa.Table:
        """See `Result.to_arrow`."""
        return self._result().to_arrow()

    def to_arrow(self) -> pa.Table:
        """See `Result.to_arrow`."""
        return self._result().to_arrow()

    def to_arrow_table(self) -> pa.Table:
        """See `Result.to_arrow`."""
        return self._result().to_arrow()

    def fetch_arrow_table(self) -> pa.Table:
        """See `Result.to_arrow`."""
        return self._result().to_arrow()

    def to_arrow_reader(self, batch_size: int = 1_000_000) -> pa.RecordBatchReader:
        """See `Result.to_arrow_reader`."""
        return self._result().to_arrow_reader(batch_size)

    def fetch_record_batch(self, rows_per_batch: int = 1_000_000) -> pa.RecordBatchReader:
        """See `Result.to_arrow_reader`."""
        return self._result().to_arrow_reader(rows_per_batch)

    def to_torch(self) -> dict[str, Tensor]:
        """See `Result.to_torch`."""
        return self._result().to_torch()

    def torch(self) -> dict[str, Tensor]:
        """See `Result.to_torch`."""
        return self._result().to_torch()
