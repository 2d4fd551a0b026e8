"""Tables for `tqp bench analyses`, the same on every machine: what sensors send, a shop sells, visitors click, and markets quote."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tqp.bench.operator_data import WORDS

_STATUS = ("new", "paid", "shipped", "returned", "cancelled")
_KINDS = ("view", "view", "view", "search", "cart", "buy")
_REFERRERS = ("mail", "ad", "organic")
_SYMBOLS = ("AAPL", "AMD", "AMZN", "GOOG", "META", "MSFT", "NVDA", "TSLA")
_COUNTRIES = ("BR", "DE", "FR", "JP", "US", None)
_DOMAINS = ("corp.example", "mail.example", "post.example", "web.example")
_SECOND = 1_000_000
_CENT = Decimal("0.01")

_Array = npt.NDArray[np.generic]


def sensor_tables(rows: int) -> dict[str, pa.Table]:
    """`readings` every 15 seconds, in order of time, of 500 `sensors` in turn at random; two in a hundred lack the pressure."""
    random = np.random.default_rng(11)
    instants = _day("2024-01-01") + np.arange(rows) * 15 * _SECOND + random.integers(0, 6 * _SECOND, rows)
    return {
        "readings": pa.table(
            {
                "ts": _instants(instants),
                "sensor": random.integers(0, 500, rows).astype(np.int32),
                "temp": 20 + 5 * np.sin(np.arange(rows) / 5760) + random.random(rows),
                "pressure": pa.array(1000 + 30 * random.random(rows), mask=random.random(rows) < 0.02),
                "alarm": random.random(rows) < 0.01,
            }
        ),
        "sensors": pa.table(
            {
                "id": np.arange(500, dtype=np.int32),
                "plant": [f"plant-{number % 7}" for number in range(500)],
                "tag": [f"S{number:04}" for number in range(500)],
            }
        ),
    }


def shop_tables(rows: int) -> dict[str, pa.Table]:
    """`orders`, half as many as rows, of a twentieth as many `users`, some of whom order often; three `items` an order of 5,000
    `products`, in no order."""
    random = np.random.default_rng(12)
    num_orders, num_users, num_products = max(1, rows // 2), max(1, rows // 20), 5000
    num_items = 3 * num_orders
    users, products = np.arange(num_users), np.arange(num_products)
    return {
        "users": pa.table(
            {
                "id": users,
                "email": [f"user{number}@{_DOMAINS[number * number % 7 % 4]}" for number in users.tolist()],
                "country": _chosen(random, _COUNTRIES, num_users),
                "signup": pa.array(random.integers(18_993, 19_723, num_users).astype("datetime64[D]")),
                "age": random.integers(18, 78, num_users).astype(np.int16),
            }
        ),
        "orders": pa.table(
            {
                "id": np.arange(num_orders),
                "user_id": _skewed(random, num_users, num_orders, 2),
                "placed": _instants(_day("2023-01-01") + random.integers(0, 365 * 86_400, num_orders) * _SECOND),
                "amount": _cents(random, 500, 20_500, num_orders, 10),
                "status": _chosen(random, _STATUS, num_orders),
                "channel": _chosen(random, ("web", "app", "store"), num_orders),
            }
        ),
        "items": pa.table(
            {
                "order_id": random.integers(0, num_orders, num_items),
                "product": _skewed(random, num_products, num_items, 3),
                "qty": random.integers(1, 5, num_items).astype(np.int8),
                "price": _cents(random, 100, 10_000, num_items, 8),
            }
        ),
        "products": pa.table(
            {
                "id": products,
                "name": [f"{WORDS[number % 400]} {WORDS[number // 13]} {('red', 'blue')[number % 2]}" for number in products.tolist()],
                "category": [f"cat{number % 40}" for number in products.tolist()],
                "size": [("S", "M", "L", "XL")[number % 4] for number in products.tolist()],
            }
        ),
    }  # fmt: skip


def click_tables(rows: int) -> dict[str, pa.Table]:
    """`events` of a fortieth as many users, in no order, on 9,000 addresses."""
    random = np.random.default_rng(13)
    pages, referrers = random.integers(0, 3000, rows).tolist(), random.integers(0, 3, rows).tolist()
    return {
        "events": pa.table(
            {
                "user_id": _skewed(random, max(1, rows // 40), rows, 2),
                "ts": _instants(_day("2024-03-01") + random.integers(0, 14 * 86_400_000, rows) * 1000),
                "kind": _chosen(random, _KINDS, rows),
                "url": [f"/p/{page}?ref={_REFERRERS[by]}" for page, by in zip(pages, referrers, strict=True)],
                "ms": np.exp(7 * random.random(rows)).astype(np.int32),
            }
        )
    }


def market_tables(rows: int) -> dict[str, pa.Table]:
    """`ticks` of eight symbols and half as many `quotes`, both in order of time, on one day."""
    random = np.random.default_rng(14)
    begin, span = _day("2024-06-03") + 34_200 * _SECOND, 23_400 * _SECOND
    num_quotes = max(1, rows // 2)
    places = np.arange(num_quotes)
    bids = 100 + 10 * np.sin(places / 50_000) + random.random(num_quotes)
    return {
        "ticks": pa.table(
            {
                "ts": _instants(begin + np.arange(rows) * span // rows),
                "sym": _chosen(random, _SYMBOLS, rows),
                "price": 100 + 10 * np.sin(np.arange(rows) / 100_000) + random.random(rows),
                "size": random.integers(1, 500, rows).astype(np.int32),
            }
        ),
        "quotes": pa.table(
            {
                "ts": _instants(begin + places * span // num_quotes),
                "sym": _chosen(random, _SYMBOLS, num_quotes),
                "bid": bids,
                "ask": bids + 0.1,
            }
        ),
    }


def _day(text: str) -> int:
    return int(np.datetime64(text, "us").astype(np.int64))


def _instants(microseconds: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(microseconds, pa.int64()).cast(pa.timestamp("us"))


def _chosen(random: np.random.Generator, words: tuple[str | None, ...], rows: int) -> pa.Array:
    """One of the words in each row, as plain text."""
    return pa.array(words, pa.string()).take(pa.array(random.integers(0, len(words), rows)))


def _skewed(random: np.random.Generator, size: int, rows: int, power: int) -> _Array:
    """Numbers below `size`, the small ones often."""
    return (random.random(rows) ** power * size).astype(np.int64)


def _cents(random: np.random.Generator, low: int, high: int, rows: int, precision: int) -> pa.Array:
    """Decimals of two digits."""
    cents = pa.array(random.integers(low, high, rows)).cast(pa.decimal128(19, 0))
    return pc.multiply(cents, pa.scalar(_CENT)).cast(pa.decimal128(precision, 2))
