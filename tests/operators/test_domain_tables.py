"""Look-ups by code against Python's: widths of codes, ranges that begin anywhere, codes under NULL, few and many rows."""

from __future__ import annotations

import pytest
import torch

from tqp.operators.rows.domain_tables import look_up


@pytest.mark.parametrize("rows", [0, 5, 40_000])  # many are taken otherwise than few
@pytest.mark.parametrize("low", [0, -100, 3])
@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("nullable", [False, True])
def test_look_up(rows: int, low: int, dtype: torch.dtype, nullable: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    places = torch.randint(0, 100, (rows,), generator=generator)
    codes = (places + low).to(dtype)
    validity = torch.ones(rows, dtype=torch.bool)
    if nullable:  # what stands under NULL may be anything
        validity = torch.rand(rows, generator=generator) < 0.9
        limits = torch.iinfo(dtype)
        codes = torch.where(validity, codes, torch.where(places < 50, limits.min, limits.max).to(dtype))
    for table in (torch.arange(100) * 7, torch.arange(200, dtype=torch.int8).reshape(100, 2)):
        expected = table[places][validity]
        assert torch.equal(look_up(table, codes, low, nullable)[validity], expected)
        array = look_up(table.numpy(), codes.numpy(), low, nullable)
        assert torch.equal(torch.from_numpy(array)[validity], expected)


@pytest.mark.parametrize("low", [2**40, -(2**40), -(2**31) - 5])
def test_look_up_far_from_zero(low: int) -> None:
    places = torch.arange(40_000) % 100
    table = torch.arange(100)
    assert torch.equal(look_up(table, places + low, low), places)
    if low == -(2**31) - 5:
        codes = places.clamp(min=5) + low
        assert torch.equal(look_up(table, codes.to(torch.int32), low), places.clamp(min=5))
