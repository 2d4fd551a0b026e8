"""Documents read all at once, against the parser that reads one at a time."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import torch

from tqp.core.errors import Error
from tqp.core.json.paths import MISSING, Path
from tqp.core.json.values import parse_json, type_name, write_json
from tqp.core.text.numbers import ParseFailure
from tqp.data.nested import Lists
from tqp.data.strings import Strings
from tqp.operators.strings import bit_words, json_documents, json_expression, layout
from tqp.operators.strings.json_documents import Documents, Parts
from tqp.operators.text.json_parts import type_names

KEYS = ["a", "b", "id", "naïve", "a b", "", 'x"y', "q\\"]
LEAVES = [
    None,
    True,
    False,
    0,
    -1,
    12,
    1.5,
    -0.25,
    0.0,
    0.001,
    0.05,
    123456789.25,
    -0.0,
    100.0,
    1e30,
    10**17,
    10**18,
    10**25,
]
LEAVES += ["", "x", "a,b", "{}", "ü😀", "tab\there", 'q"uote', "back\\slash", "nul\0", ":", "]"]
ODD = [
    "",
    "  ",
    "1 2",
    "-0",
    "-",
    "01",
    "-01",
    "1.",
    ".5",
    "1e5",
    "1E+",
    "1e+5",
    "1.5E-3x",
    "1.50",
    "0.0",
    "+1",
    "--1",
    "1-",
]
ODD += [
    "[1,]",
    '{"a":1,}',
    "[,1]",
    "{,}",
    '{"a"}',
    '{"a":}',
    "{1:2}",
    '["a":1]',
    '{"a":1 "b":2}',
    "[1 2]",
    "][",
    "[}",
    "{]",
]
ODD += [
    "nan",
    "true",
    "tru",
    "truee",
    "null ",
    " null",
    '"',
    '"\\',
    '\\"a"',
    '"a"b',
    '"a""b"',
    '"\\u00e4"',
    '"\\x"',
    "\ufeff1",
    "1" * 70,
    "0." + "1" * 62,
    "[" + "1" * 9 + ",1234567a, 12345678 ]",
    "{}" + " " * 30,
    '["a"' + " " * 30 + "]",
]
ODD += [
    '{"a":1,"a":2}',
    '{"\\u0061":1}',
    "[" * 17 + "]" * 17,
    "[" * 101 + "]" * 101,
    '"tab\there"',
    "\t[\n1\r]",
    "é",
]
STEPS = ["a", "b", "id", "", "naïve", 'x"y', 'a": "x', 0, 1, -1, 2, -3, 2**62]


def _value(random: random.Random, depth: int) -> Any:
    kind = random.random()
    if depth and kind < 0.3:
        return {random.choice(KEYS): _value(random, depth - 1) for _ in range(random.randrange(4))}
    if depth and kind < 0.5:
        return [_value(random, depth - 1) for _ in range(random.randrange(4))]
    return random.choice([*LEAVES, round(random.random() * 1000, random.randrange(9)), random.random()])


def _document(random: random.Random) -> str:
    if random.random() < 0.2:
        return random.choice(ODD)
    separators = random.choice([(",", ":"), (", ", ": "), (" ,\n", "\t: ")])
    text = json.dumps(_value(random, 4), ensure_ascii=random.random() < 0.3, separators=separators)
    for _ in range(random.randrange(3) if random.random() < 0.4 else 0):
        place, byte = random.randrange(len(text) + 1), random.choice('{}[],:"\\ \n\t01-+.eEtrufalsn/')
        text = text[:place] + random.choice([byte, ""]) + text[place + random.randrange(2) :]
    return text


def _strings(documents: list[str]) -> Strings:
    return layout.from_list([each.encode() for each in documents], torch.device("cpu"))


def _are_plain(documents: list[str]) -> list[bool]:
    are_plain: list[bool] = Documents(_strings(documents)).are_plain().tolist()
    return are_plain


def _parsed(text: str) -> Any:
    try:
        return parse_json(text)
    except (ParseFailure, Error):
        return MISSING


def _lists(lists: Lists) -> list[list[str]]:
    texts = [each.decode() for each in layout.to_list(lists.elements.values)]
    slices = zip(lists.starts.tolist(), lists.lengths.tolist(), strict=True)
    return [texts[start : start + length] for start, length in slices]


def _check(documents: list[str], steps: tuple[str | int, ...], parts: Parts) -> None:
    columns = (parts.is_plain, parts.is_found, parts.is_simple, parts.sizes(), _lists(parts.keys()))
    names = layout.to_list(type_names(parts)[1])
    texts = layout.to_list(parts.texts)
    rows = zip(documents, *map(list, columns), parts.kinds.tolist(), names, texts, strict=True)
    for document, is_plain, is_found, is_simple, size, keys, kind, name, text in rows:
        if not is_plain:
            assert not is_found
            continue
        value = _parsed(document)
        assert value is not MISSING, document
        expected = Path(steps).value(value)
        assert is_found == (expected is not MISSING), (document, steps)
        if is_found:
            assert repr(parse_json(text.decode())) == repr(expected), (document, steps)
            assert not is_simple or write_json(expected) == text.decode()
            assert size == (len(expected) if isinstance(expected, list | tuple) else 0)
            assert keys == ([key for key, _ in expected] if isinstance(expected, tuple) else [])
            assert not kind or name.decode() == type_name(expected)


@pytest.mark.parametrize("seed", range(40))
def test_parts_are_those_that_a_parser_finds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    if seed % 2:  # as on a device
        monkeypatch.setattr(json_documents, "host_form", lambda tensor: tensor)
    monkeypatch.setattr(json_expression, "_MANY_BYTES", chance.choice([0, 1 << 20]))
    monkeypatch.setattr(bit_words, "_CACHED_BYTES", chance.choice([8, 64, 1 << 17]))
    monkeypatch.setattr(json_documents, "_BLOCK_BYTES", chance.choice([1, 200, 1 << 20]))
    documents = [_document(chance) for _ in range(chance.choice([1, 40, 300]))]
    steps: tuple[Any, ...] = tuple(chance.choices(STEPS, k=chance.randrange(4)))
    found = Documents(_strings(documents)).parts_at(
        tuple(each.encode() if isinstance(each, str) else each for each in steps)
    )
    _check(documents, steps, found)


@pytest.mark.parametrize("many", [0, 1 << 20])
def test_each_odd_document_alone_and_among_others(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_expression, "_MANY_BYTES", many)
    whole = _are_plain(ODD)
    assert whole == [_are_plain([each])[0] for each in ODD]
    plain = {each for each, is_plain in zip(ODD, whole, strict=True) if is_plain}
    assert plain == {
        "-0",
        "1e5",
        "1e+5",
        "1.50",
        "0.0",
        "true",
        "null ",
        " null",
        '{"a":1,"a":2}',
        "\t[\n1\r]",
        "1" * 70,
        "0." + "1" * 62,
        "{}" + " " * 30,
        '["a"' + " " * 30 + "]",
    }


@pytest.mark.parametrize("seed", range(10))
def test_what_the_expression_matches_is_what_is_plain_of_few_levels(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_expression, "_MANY_BYTES", 1 << 20)
    chance = random.Random(seed)
    documents = [*ODD, *(_document(chance) for _ in range(500))]
    plain = _are_plain(documents)
    monkeypatch.setattr(json_expression, "_MANY_BYTES", 0)
    matched = json_expression.match_plain(_strings(documents)).tolist()
    for document, is_plain, is_matched in zip(documents, plain, matched, strict=True):
        assert is_matched == (is_plain and _levels(parse_json(document)) <= 3), document


def _levels(value: Any) -> int:
    if isinstance(value, tuple):  # an object
        value = [each for _, each in value]
    return 1 + max(map(_levels, value), default=0) if isinstance(value, list) else 0


def test_ordinary_documents_are_plain() -> None:
    documents = [json.dumps({"a": {"b": [each, 1.5, None, 'x \\ " / \n']}}) for each in range(100)]
    assert all(_are_plain(documents))
    parts = Documents(_strings(documents)).parts_at((b"a", b"b", -4))
    assert layout.to_list(parts.texts) == [str(each).encode() for each in range(100)]
    assert all(parts.is_simple.tolist())
    assert not any(Documents(_strings(documents)).parts_at((b"a", b"b", 3)).is_simple.tolist())


def test_nothing() -> None:
    assert Documents(_strings([])).parts_at((b"a",)).texts.num_rows == 0
    assert _are_plain(["", ""]) == [False, False]
