"""SQL text to tokens, cut as DuckDB cuts it.

What Python calls a blank (U+2028, U+0085) may be a letter here, and the other way round (U+200B). A run of operator
characters is one operator, known or not, as in PostgreSQL; `x=-1` is the exception that makes minus a sign.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

from tqp.core.errors import ParseError
from tqp.core.keywords import KEYWORDS
from tqp.planner.syntax.words import END, LABELS, NAME, NUMBER, OPERATOR, TEXT

#: Operators that the grammar tells apart; all others are alike to it.
KNOWN_OPERATORS = frozenset(
    "+ - * / // % ^ ** & | << >> = == <> != < > <= >= -> => ! ~ ~* ~~ ~~* ~~~ !~ !~* !~~ !~~*".split()
)

#: Blanks beside those of ASCII.
WIDE_BLANKS = "\u00a0\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff"
_BLANK = rf" \t-\r{WIDE_BLANKS}"
_OPERATOR = r"\-+*/%^<>=~!@&|"
_PUNCTUATION = r"(){}\[\],:?$\#;.\\"

#: What stands in the quotes of a text, which may go on in the next line.
PIECES = re.compile(r"'((?:[^']|'')*)'")
#: A token with the blanks before it, which would cost a match of their own otherwise. The group says what it is.
_TOKEN = re.compile(
    rf"""
    [{_BLANK}]* (?:
      ( [nNxXbB]?'[^']*(?:''[^']*)*' | [eE]'[^'\\]*(?:(?:''|\\.)[^'\\]*)*' )
    | ( [^0-9'"`{_OPERATOR}{_PUNCTUATION}{_BLANK}] (?:[^'"`{_OPERATOR}{_PUNCTUATION}{_BLANK}]|\$)* )
    | ( :=(?=--|/\*|[-+]*(?![{_OPERATOR}])) | ::(?![{_OPERATOR}]) | \.(?!\d) | [(){{}}\[\],:?\#;\\] )
    | ( [\d.]+ (?:(?<!\.)_\d[\d.]*)* (?:[eE][-+]?[\d.]+(?:(?<!\.)_\d[\d.]*)*)* (?:[eE][-+]?\Z)? )
    | ( --[^\n\r]* )
    | ( /\* )
    | ( (?: (?!--|/\*) [{_OPERATOR}] )+ )
    | ( "[^"]*(?:""[^"]*)*" | `[^`]*(?:``[^`]*)*` )
    | ( \$(?P<tag>(?!\d)[\w\x80-\U0010ffff]*)\$.*?\$(?P=tag)\$ | \$(?![\w\x80-\U0010ffff]*\$|\Z) | \$(?=\d))
    )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_TEXT, _WORD, _PUNCTUATION_MARK, _NUMBER, _COMMENT, _LONG_COMMENT, _SIGNS, _QUOTED = range(1, 9)
_BLANKS = re.compile(f"[{_BLANK}]*")
#: How many END stand at the end, so that a grammar may look ahead without asking whether there is more.
_LOOK_AHEAD = 6
_NUMBER_FORM = re.compile(r"[\d_]*\.?[\d_]*(?:[eE][-+]?[\d_]+)?")
_HEXADECIMAL, _BINARY = re.compile("([0-9a-fA-F]{2})*"), re.compile("[01]*")
#: What stands in a text, by the letter before it.
_DIGITS = {"x": _HEXADECIMAL, "X": _HEXADECIMAL, "b": _BINARY, "B": _BINARY}
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_NEW_LINE = re.compile("[\n\r]")
_COMMENT_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class Tokens:
    """`kinds[i]`: a keyword in capitals, an operator or mark as it is, or what `words.py` calls the rest. The last
    ones are END.

    `starts[i]` and `stops[i]` are the offsets in `text` at which the token lies.
    """

    text: str
    kinds: list[str]
    starts: list[int]
    stops: list[int]
    #: Places of names, be they keywords elsewhere. The grammar finds them.
    names: set[int] = field(default_factory=set)
    #: Places of commas behind the last item of a list of a query's clause. The grammar finds them.
    last_commas: set[int] = field(default_factory=set)
    #: Places of ARRAY behind a type, `INTEGER ARRAY[3]`. The grammar finds them.
    array_words: set[int] = field(default_factory=set)

    def source(self, index: int) -> str:
        """The token as the user wrote it."""
        return self.text[self.starts[index] : self.stops[index]]

    def name(self, index: int) -> str:
        """The token as a name, without the quotes that it may stand in."""
        source = self.source(index)
        if source[0] in '"`':
            return source[1:-1].replace(source[0] * 2, source[0])
        return source


def tokenize(text: str) -> Tokens:
    """Cut `text` into tokens. Raises ParseError for a text, name or comment that is never closed, for `1.2.3` and `x'0'`."""
    kinds: list[str] = []
    starts: list[int] = []
    stops: list[int] = []
    digits: list[int] = []
    match, position = _TOKEN.match, 0
    while (found := match(text, position)) is not None:
        group = found.lastindex
        assert group is not None
        start, position = found.span(group)
        if group == _WORD:
            word = text[start:position].upper()
            kinds.append(word if word in KEYWORDS and text[start:position].isascii() else NAME)
        elif group == _PUNCTUATION_MARK:
            kinds.append(text[start:position])
        elif group == _NUMBER:
            _check_number(text, start, position)
            kinds.append(NUMBER)
        elif group == _SIGNS:
            position = _end_of_operator(text, start, position)
            sign = text[start:position]
            kinds.append(sign if sign in KNOWN_OPERATORS else OPERATOR)
        elif group == _QUOTED:
            if position - start == 2:
                raise ParseError(
                    'syntax error at or near """": a name has at least one character', (start, position)
                )
            kinds.append(NAME)
        elif group == _TEXT or text[position - 1] == "$" and position - start > 1:
            if kinds and kinds[-1] == TEXT and _NEW_LINE.search(text, stops[-1], start):
                stops[-1] = position  # a text goes on in the next line
                continue
            if text[start] in _DIGITS:
                digits.append(len(kinds))
            kinds.append(TEXT)
        elif group == _COMMENT:
            continue
        elif group == _LONG_COMMENT:
            position = _end_of_comment(text, start)
            continue
        else:
            kinds.append("$")
        starts.append(start)
        stops.append(position)
    rest = _BLANKS.match(text, position)
    assert rest is not None
    if rest.end() < len(text):
        raise _never_closed(text, rest.end())
    for index in digits:
        _check_digits(text, starts[index], stops[index])
    kinds.extend([END] * _LOOK_AHEAD)
    starts.append(len(text))
    stops.append(len(text))
    return Tokens(text, kinds, starts, stops)


def dotted_names(text: str) -> tuple[str, ...] | None:
    """The names in a text of nothing but names, with dots between; None of any other text.

    >>> dotted_names('s."a b"'), dotted_names("a b")
    (('s', 'a b'), None)
    """
    try:
        tokens = tokenize(text)
    except ParseError:
        return None
    kinds = tokens.kinds[: tokens.kinds.index(END)]
    if len(kinds) % 2 == 0 or any(kind != "." for kind in kinds[1::2]) or not LABELS.issuperset(kinds[::2]):
        return None
    return tuple(tokens.name(index) for index in range(0, len(kinds), 2))


def between_commas(text: str) -> list[str]:
    """The parts of a list, which may hold commas in brackets; none of an empty text. Raises ParseError.

    >>> between_commas("a, f(b, 1)")
    ['a', 'f(b, 1)']
    """
    tokens = tokenize(text)
    cuts, depth = [-1], 0
    for kind, start in zip(tokens.kinds, tokens.starts, strict=False):
        if kind == "," and not depth:
            cuts.append(start)
        depth += (kind in _OPENING) - (kind in _CLOSING)
    pieces = pairwise([*cuts, len(text)])
    return [text[start + 1 : stop].strip() for start, stop in pieces] if text.strip() else []


def _check_number(text: str, start: int, stop: int) -> None:
    """Refuse `1.2.3`, `1e5e`, and an exponent without digits at the end of the text: `1e` before a blank is the number 1 as e."""
    number = text[start:stop]
    has_exponent = "e" in number or "E" in number
    if _NUMBER_FORM.fullmatch(number) is None or (has_exponent and text[stop : stop + 1] in ("e", "E")):
        raise ParseError(f'syntax error at or near "{number}": this is no number', (start, stop))


def _check_digits(text: str, start: int, stop: int) -> None:
    form, digits = _DIGITS[text[start]], "".join(PIECES.findall(text, start, stop))
    if form.fullmatch(digits) is None:
        wanted = "two hexadecimal digits for each byte" if form is _HEXADECIMAL else "the digits 0 and 1"
        raise ParseError(f"syntax error at or near {text[start:stop]}: it takes {wanted}", (start, stop))


def _end_of_operator(text: str, start: int, stop: int) -> int:
    """Plus and minus at the end of an operator are signs of what follows, unless the operator looks unusual."""
    if (
        stop - start > 1
        and text[stop - 1] in "+-"
        and not any(sign in text[start:stop] for sign in "~!@%^&|")
    ):
        while stop - start > 1 and text[stop - 1] in "+-":
            stop -= 1
    return stop


def _end_of_comment(text: str, start: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise ParseError("the comment that starts here is never closed: */ is missing", (start, start + 2))


def _never_closed(text: str, start: int) -> ParseError:
    mark = text[start] if text[start] in "'\"`$" else "'"
    return ParseError(f"the text that starts here is never closed: {mark} is missing", (start, start + 1))
