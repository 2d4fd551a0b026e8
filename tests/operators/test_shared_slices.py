"""Rows that share few slices, as those of a dictionary do: joined and numbered as any others are."""

from __future__ import annotations

import pytest
import torch

from tqp.data.strings import Strings
from tqp.operators.string_keys.codes import distinct_slices, numbered_values
from tqp.operators.strings.join_groups import join_all, join_entries_of_groups, join_groups, join_runs
from tqp.operators.strings.layout import compact, compact_rows, from_list, take, to_list

_VALUES = {
    "one width": ["abcd", "zzzz", "ökö"[:2] + "x", "abcd"],
    "widths": ["a", "ab\0", "a\0", "longer than the others", "ö", "a", ""],
    "empty": ["", ""],
}
_ROWS = 500


def _rows(name: str) -> tuple[Strings, list[bytes]]:
    values = from_list(_VALUES[name])
    generator = torch.Generator().manual_seed(5)
    numbers = torch.randint(0, values.num_rows, (_ROWS,), generator=generator)
    strings = take(values, numbers)
    assert distinct_slices(strings, None) is not None
    return strings, to_list(strings)


def _validity(which: str) -> torch.Tensor | None:
    rows = torch.arange(_ROWS)
    return {"no NULL": None, "all valid": rows >= 0, "some": rows % 3 > 0, "none valid": rows < 0}[which]


@pytest.mark.parametrize("name", _VALUES)
@pytest.mark.parametrize("which", ["no NULL", "all valid", "some", "none valid"])
@pytest.mark.parametrize("alone", [False, True])
def test_values_are_numbered(name: str, which: str, alone: bool) -> None:
    strings, expected = _rows(name)
    validity = _validity(which)
    if validity is not None:
        strings = strings._replace(lengths=strings.lengths * validity)
    codes, values, is_valid = numbered_values(compact(strings) if alone else strings, validity)
    valid = [True] * values.num_rows if is_valid is None else is_valid.tolist()
    decoded: list[bytes | None] = [v if ok else None for v, ok in zip(to_list(values), valid, strict=True)]
    assert (is_valid is None) == (validity is None)
    assert len(set(decoded)) == len(decoded)
    assert set(codes.tolist()) == set(range(len(decoded)))  # no value without rows
    wanted = [None if validity is not None and not validity[k] else v for k, v in enumerate(expected)]
    assert [decoded[code] for code in codes.tolist()] == wanted


@pytest.mark.parametrize("name", _VALUES)
@pytest.mark.parametrize("separator", ["", ",", "--"])
@pytest.mark.parametrize("which", ["no NULL", "some", "none valid"])
def test_strings_of_groups_are_joined(name: str, separator: str, which: str) -> None:
    strings, expected = _rows(name)
    validity = _validity(which)
    ids = torch.arange(_ROWS) * 7 % 11
    joined = to_list(join_groups(strings, ids, 12, validity, separator))
    kept = [k for k in range(_ROWS) if validity is None or validity[k]]
    parts = [[expected[k] for k in kept if int(ids[k]) == group] for group in range(12)]
    assert joined == [separator.encode().join(part) for part in parts]
    assert to_list(join_groups(strings, ids.sort().values, 12, None, separator)) == [
        separator.encode().join(expected[k] for k in range(_ROWS) if int(ids.sort().values[k]) == group)
        for group in range(12)
    ]
    every = [separator.encode().join(expected[k] for k in kept)] if kept else []
    assert to_list(join_all(strings, validity, separator)) == every
    begins, ends = torch.tensor([0, 3, 3, _ROWS]), torch.tensor([2, 3, _ROWS, _ROWS])
    assert to_list(join_runs(strings, begins, ends, separator)) == [
        separator.encode().join(expected[begin:end])
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
    ]


@pytest.mark.parametrize("name", _VALUES)
def test_rows_are_copied_side_by_side(name: str) -> None:
    strings, expected = _rows(name)
    rows = torch.tensor([3, 3, 499, 0, 77], dtype=torch.int32)
    copied = compact_rows(strings, rows)
    assert to_list(copied) == [expected[row] for row in rows.tolist()]
    assert copied.data.numpy().tobytes() == b"".join(to_list(copied))
    assert to_list(compact_rows(strings, torch.zeros(0, dtype=torch.int64))) == []


@pytest.mark.parametrize("rows", [0, 3, 200])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int64])
@pytest.mark.parametrize("separator", ["", ", "])
@pytest.mark.parametrize("which", ["no NULL", "some", "none valid"])
def test_entries_of_a_dictionary_are_joined_as_their_strings_are(
    rows: int, dtype: torch.dtype, separator: str, which: str
) -> None:
    entries = from_list(["", "a", "é", "longer than the others", "ab\0"])
    validity = _validity(which)
    validity = None if validity is None else validity[:rows]
    codes = (torch.arange(rows) * 3 % 5).to(dtype)
    for ids in (torch.arange(rows) * 7 % 11, torch.arange(rows) // 20):
        of_strings = join_groups(take(entries, codes.to(torch.int64)), ids, 12, validity, separator)
        of_codes = join_entries_of_groups(entries, codes, ids, 12, validity, separator)
        assert to_list(of_codes) == to_list(of_strings)


def test_codes_of_a_dictionary_without_entries_are_all_null() -> None:
    codes, valid = torch.zeros(3, dtype=torch.int32), torch.zeros(3, dtype=torch.bool)
    assert to_list(join_entries_of_groups(from_list([]), codes, codes, 1, valid, ",")) == [b""]
