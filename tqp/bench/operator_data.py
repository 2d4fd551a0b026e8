"""Tables for the operator benchmark, the same on every machine: made by numpy from fixed seeds, whole columns at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Integers = npt.NDArray[np.int64]

_SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu".split()

#: Four hundred words of four letters, of which texts are made.
WORDS = tuple(first + second for first in _SYLLABLES for second in _SYLLABLES)


def join_tables(rows: int) -> dict[str, pa.Table]:
    """`facts` of `rows` rows; `dims` with a fifth of them, each key once; `twins`: 1:1; `details`: two a key.

    In `facts`, every key has its partner in `dims`, but for those named `some_...`: three in ten have none.
    """
    random = np.random.default_rng(1)
    size = max(1, rows // 5)
    keys = random.permutation(size)
    facts = random.integers(0, size, rows)
    some = random.integers(0, max(1, size * 10 // 7), rows)
    details = random.integers(0, size, 2 * size)
    # Zipf's distribution with exponent 1: the k-th key comes up in proportion to 1 / k.
    ranks = np.exp(random.random(rows) * np.log(size)).astype(np.int64) - 1
    return {
        "facts": pa.table(
            {
                **_keys(facts),
                **{f"some_{name}": column for name, column in _keys(some).items()},
                "skewed_id": keys[np.clip(ranks, 0, size - 1)],
                "serial": random.permutation(rows),
                "value": random.integers(0, 10_000, rows),
            }
        ),
        "dims": pa.table({**_keys(keys), "weight": random.integers(0, 1000, size)}),
        "twins": pa.table({"serial": random.permutation(rows), "weight": random.integers(0, 1000, rows)}),
        "details": pa.table(
            {"id": details, "code": _scattered(details), "weight": random.integers(0, 1000, 2 * size)}
        ),
    }


def range_tables(rows: int) -> dict[str, pa.Table]:
    """`points` at random integers; `events` about every 30 seconds, unordered; intervals of about ten points each.

    `intervals` has a tenth as many rows, some overlap; `long_intervals` besides one in a thousand that spans a hundredth of
    all points, `shelves` are 200 that cover every point once, `marks` 16 moments, `limits` 1,000 numbers.
    """
    random = np.random.default_rng(7)
    size, span = max(1, rows // 10), 10 * rows
    starts = random.integers(0, span, size)
    lengths = random.integers(0, 200, size)
    long = np.where(random.integers(0, 1000, size) == 0, span // 100, random.integers(0, 50, size))
    shelves = np.arange(200) * (span // 200)
    moments = random.integers(0, 30_000_000 * rows, rows)
    weight = random.integers(0, 100, size)
    return {
        "points": pa.table({"x": random.integers(0, span, rows), "value": random.integers(0, 100, rows)}),
        "events": pa.table({"moment": _moments(moments), "value": random.integers(0, 100, rows)}),
        "intervals": pa.table({"low": starts, "high": starts + lengths, "weight": weight}),
        "long_intervals": pa.table({"low": starts, "high": starts + long, "weight": weight}),
        "shelves": pa.table(
            {"low": shelves, "high": np.append(shelves[1:] - 1, span), "shelf": np.arange(200)}
        ),
        "marks": pa.table({"mark": _moments(np.sort(random.integers(0, 30_000_000 * rows, 16)))}),
        "limits": pa.table({"bound": random.integers(0, span, 1000)}),
    }


def _moments(microseconds: Integers) -> pa.Array:
    return pa.array(microseconds).cast(pa.timestamp("us"))


def group_tables(rows: int) -> dict[str, pa.Table]:
    """`events`: keys with the number of distinct values in their names (`k` integers, `s` strings), and amounts."""
    random = np.random.default_rng(2)
    columns: dict[str, object] = {}
    for count in (6, 1000, 100_000, 2_500_000):
        key = random.integers(0, count, rows)
        columns[f"k{count}"] = key
        columns[f"s{count}"] = _text("group ", key)
    columns["sparse100000"] = _scattered(random.integers(0, 100_000, rows))
    for name in "uvw":
        columns[name] = random.integers(0, 10, rows)
    columns["item"] = random.integers(0, 10_000, rows)
    columns["amount"] = random.integers(0, 10_000, rows)
    columns["weight"] = random.random(rows)
    return {"events": pa.table(columns)}


def sort_tables(rows: int) -> dict[str, pa.Table]:
    """`records`, half of `rows`: unique integers, doubles and strings in random order, and `a` and `c` with many ties."""
    random = np.random.default_rng(3)
    size = max(1, rows // 2)
    serial = random.permutation(size)
    return {
        "records": pa.table(
            {
                "i": _scattered(serial),
                "x": random.standard_normal(size),
                "s": _text("", _scattered(serial + size)),
                "a": random.integers(0, 100, size),
                "c": _text("kind ", random.integers(0, 1000, size)),
                "serial": np.arange(size),
            }
        )
    }


def text_tables(rows: int) -> dict[str, pa.Table]:
    """`texts`, half of `rows`: nine words and a number in the middle, all different, about 50 bytes each."""
    random = np.random.default_rng(4)
    size = max(1, rows // 2)
    words = pa.array(WORDS)
    before, after = ([words.take(random.integers(0, len(WORDS), size)) for _ in range(n)] for n in (4, 5))
    number = pa.array(random.permutation(size)).cast(pa.string())
    text = pc.binary_join_element_wise(*before, number, *after, " ")
    return {"texts": pa.table({"text": text, "serial": np.arange(size)})}


def scalar_tables(rows: int) -> dict[str, pa.Table]:
    """`measures`: integers below a million, doubles below one, money, days and instants of ten years."""
    random = np.random.default_rng(5)
    days = random.integers(_DAY_2015, _DAY_2025, rows)
    instants = days * 86_400_000_000 + random.integers(0, 86_400_000_000, rows)
    return {
        "measures": pa.table(
            {
                "n": random.integers(0, 1_000_000, rows),
                "quantity": random.integers(1, 51, rows),
                "x": random.random(rows),
                "y": random.random(rows),
                "price": _decimals(random.integers(100, 10_000_000, rows), 12),
                "cost": _decimals(random.integers(100, 1_000_000, rows), 12),
                "discount": _decimals(random.integers(0, 11, rows), 4),
                "tax": _decimals(random.integers(0, 9, rows), 4),
                "day": pa.array(random.permutation(days).astype(np.int32), pa.int32()).cast(pa.date32()),
                "instant": pa.array(instants, pa.timestamp("us")),
            }
        )
    }


_DAY_2015, _DAY_2025 = 16_436, 20_089


def written_tables(rows: int) -> dict[str, pa.Table]:
    """`written`: words, labels and paths of letters; `greek` has other letters; values of each kind, and their texts.

    Texts are mostly distinct, but for `label`, which has a thousand values.
    """
    random = np.random.default_rng(6)
    words = pa.array(WORDS)
    first, second, third = (words.take(random.integers(0, len(WORDS), rows)) for _ in range(3))
    number = random.integers(0, 1_000_000, rows)
    digits = pa.array(number).cast(pa.string())
    far = _scattered(random.permutation(rows))
    days = pa.array(random.integers(_DAY_2015, _DAY_2025, rows).astype(np.int32)).cast(pa.date32())
    seconds = random.integers(_DAY_2015 * 86_400, _DAY_2025 * 86_400, rows)
    instants = pa.array(seconds * 1_000_000, pa.timestamp("us"))
    clock = pa.array(random.integers(0, 86_400, rows) * 1_000_000, pa.time64("us"))
    money = _decimals(random.integers(100, 10_000_000, rows), 12)
    letters = pa.array([word.translate(_GREEK) for word in WORDS])
    spaces = pa.array([" " * count for count in range(4)]).take(random.integers(0, 4, rows))
    join = pc.binary_join_element_wise
    return {
        "written": pa.table(
            {
                "n": number,
                "far": far,
                "money": money,
                "x": random.random(rows) * 1000,
                "hundredths": random.integers(0, 100_000, rows) / 100,
                "f": (random.integers(0, 100_000, rows) / 100).astype(np.float32),
                "flag": random.random(rows) < 0.5,
                "day": days,
                "instant": instants,
                "clock": clock,
                "word": join(first, second, digits, ""),
                "label": _text("label ", random.integers(0, 1000, rows)),
                "path": join(first, digits, second, third, "/"),
                "greek": join(letters.take(random.integers(0, len(WORDS), rows)), digits, first, " "),
                "padded": join(spaces, first, digits, spaces, ""),
                "far_text": pa.array(far).cast(pa.string()),
                "money_text": money.cast(pa.string()),
                "x_text": pa.array(random.random(rows) * 1000).cast(pa.string()),
                "day_text": days.cast(pa.string()),
                "instant_text": pa.array(seconds, pa.timestamp("s")).cast(pa.string()),
                "clock_text": clock.cast(pa.time32("s")).cast(pa.string()),
                "flag_text": pa.array(["true", "false", "t", "no"]).take(random.integers(0, 4, rows)),
                "mixed_text": pa.array(["12", "1.5", "none", "", "x7"]).take(random.integers(0, 5, rows)),
            }
        )
    }


def nested_tables(rows: int) -> dict[str, pa.Table]:
    """`carts`, a fifth of `rows`: lists of no to ten integers, doubles and words, pairs of structs, maps of three keys, and arrays.

    One list in fifty is NULL. The keys of `carts` have the number of distinct values in their names.
    """
    random = np.random.default_rng(8)
    size = max(1, rows // 5)
    ends = np.cumsum(random.integers(0, 11, size))
    count = int(ends[-1])
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32), mask=random.random(size + 1) < 0.02)
    words = pa.array(WORDS).take(random.integers(0, len(WORDS), count))
    lists = {
        "items": random.integers(0, 1000, count),
        "prices": random.random(count),
        "words": words,
        "lines": pa.StructArray.from_arrays(
            [pa.array(random.integers(0, 1000, count)), pa.array(random.random(count))], ["item", "price"]
        ),
    }
    keys = pa.array(["red", "green", "blue"] * size)
    thirds = pa.array(np.arange(0, 3 * size + 1, 3, dtype=np.int32))
    vectors = pa.array(random.random(16 * size).astype(np.float32))
    return {
        "carts": pa.table(
            {
                "serial": np.arange(size),
                **{f"k{number}": random.integers(0, number, size) for number in (6, 1000, 100_000)},
                "word": pa.array(WORDS).take(random.integers(0, len(WORDS), size)),
                **{
                    name: pa.ListArray.from_arrays(offsets, pa.array(values))
                    for name, values in lists.items()
                },
                "point": pa.StructArray.from_arrays(
                    [pa.array(random.integers(0, 100, size)), pa.array(random.random(size))], ["x", "y"]
                ),
                "colors": pa.MapArray.from_arrays(thirds, keys, pa.array(random.integers(0, 1000, 3 * size))),
                "vector": pa.FixedSizeListArray.from_arrays(vectors, 16),
                "line": pc.binary_join(
                    pa.ListArray.from_arrays(pa.array(np.append(0, ends)).cast("int32"), words), " "
                ),
            }
        )
    }


def json_tables(rows: int) -> dict[str, pa.Table]:
    """`documents`, a tenth of `rows`: JSON with a number in `$.a.b`, all different and `short` or of about 90 bytes (`long`); `few` are a thousand long ones."""
    random = np.random.default_rng(9)
    size = max(1, rows // 10)
    number = pa.array(random.permutation(size)).cast(pa.string())
    join = pc.binary_join_element_wise
    word = pa.array(WORDS).take(random.integers(0, len(WORDS), size))
    short = join('{"a": {"b": ', number, "}}", "")
    long = join(
        '{"name": "', word, '", "tags": ["x", "', word, '", null], "price": 12.5, "a": {"c": true, "b": ', number, "}}", "",
    )  # fmt: skip
    few = long.take(random.integers(0, min(1000, size), size))
    return {"documents": pa.table({"short": short, "long": long, "few": few})}


_GREEK = str.maketrans("abcdefghijklmnopqrstuvwxyz", "αβγδεζηθικλμνξοπρστυφχψωάέ")


def _keys(numbers: Integers) -> dict[str, object]:
    """One key in every form: dense, scattered over 64 bits, as two integers, and as a string."""
    return {
        "id": numbers,
        "code": _scattered(numbers),
        "first": numbers // 1024,
        "second": numbers % 1024,
        "name": _text("item ", numbers),
    }


def _scattered(numbers: Integers) -> Integers:
    """Each number as another 64-bit integer, no two the same: the mixing steps of splitmix64, which can be undone."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))).view(np.int64)


def _text(prefix: str, numbers: Integers) -> pa.Array:
    return pc.binary_join_element_wise(pa.scalar(prefix), pa.array(numbers).cast(pa.string()), "")


def _decimals(hundredths: Integers, precision: int) -> pa.Array:
    """DECIMAL(precision, 2) of numbers that are not negative."""
    words = np.zeros((len(hundredths), 2), np.int64)
    words[:, 0] = hundredths
    return pa.Array.from_buffers(
        pa.decimal128(precision, 2), len(hundredths), [None, pa.py_buffer(words.tobytes())]
    )
