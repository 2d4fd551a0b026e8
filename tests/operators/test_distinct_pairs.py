"""Distinct values by group against sets of pairs: one row of each, and how many each group has."""

import pytest
import torch

from tqp.operators.groups import distinct_pairs
from tqp.operators.groups.distinct_pairs import count_distinct_by_group, one_of_each


@pytest.mark.parametrize("num_rows", [0, 1, 9, 3000, 40_000])
@pytest.mark.parametrize("nulls", ["none", "some", "all"])
@pytest.mark.parametrize(
    ("num_groups", "low", "high", "dtype"),
    [
        (1, -(2**31), 2**31 - 2, torch.int32),
        (1, 0, 2**32 - 1, torch.int64),
        (1, -(2**63), 2**63 - 1, torch.int64),
        (9_000, -5, 2**45, torch.int64),
        (7, -3, 5, torch.int8),
        (200, 2**62, 2**62 + 300, torch.int64),
        (22_032, 1, 100_000, torch.int32),
        (50_000, -(2**63), 2**63 - 1, torch.int64),
    ],
)
def test_distinct_pairs(
    num_rows: int,
    nulls: str,
    num_groups: int,
    low: int,
    high: int,
    dtype: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = torch.Generator().manual_seed(num_rows)
    group_ids = torch.randint(0, num_groups, (num_rows,), generator=generator)
    few = torch.randint(low, high, (max(1, num_rows // 2),), generator=generator)
    few[:2] = torch.tensor([low, high])[: few.shape[0]]
    keys = few[torch.randint(0, few.shape[0], (num_rows,), generator=generator)].to(dtype)
    validity = None
    if nulls != "none":
        validity = torch.rand(num_rows, generator=generator) < (0.5 if nulls == "some" else 0)
    valid = torch.ones(num_rows, dtype=torch.bool) if validity is None else validity
    pairs = list(zip(group_ids.tolist(), keys.tolist(), valid.tolist(), strict=True))
    expected = {(group, key) for group, key, is_valid in pairs if is_valid}

    chosen = one_of_each(group_ids, [keys], validity).tolist()
    rows = [pair for pair, is_chosen in zip(pairs, chosen, strict=True) if is_chosen]
    assert len(rows) == len(expected) and {pair[:2] for pair in rows if pair[2]} == expected

    counts = [0] * num_groups
    for group, _ in expected:
        counts[group] += 1
    wide = torch.stack([(keys % 3).to(torch.int64), keys.to(torch.int64)], 1)
    for sorts_words in (True, False):
        monkeypatch.setattr(distinct_pairs, "numpy_sorts_words_faster", lambda answer=sorts_words: answer)
        assert count_distinct_by_group(group_ids, num_groups, keys, validity).tolist() == counts
        assert count_distinct_by_group(group_ids, num_groups, wide, validity).tolist() == counts
