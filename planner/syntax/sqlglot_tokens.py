"""DuckDB's tokens as those of sqlglot's parser.

sqlglot cuts texts in its own way: it knows other blanks, other keywords and other operators. Its parser gets our tokens
instead, so that what the grammar allowed is what is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import Token, TokenType

from tqp.core.errors import UnsupportedError
from tqp.core.keywords import KEYWORDS
from tqp.planner.syntax.parts import Part
from tqp.planner.syntax.tokens import PIECES, Tokens, tokenize
from tqp.planner.syntax.words import NAME, NUMBER, TEXT

_KEYWORDS: dict[str, TokenType] = {
    **DuckDB.Tokenizer.KEYWORDS,
    "GUID": TokenType.UUID,
    "PIVOT_WIDER": TokenType.PIVOT,
    "PIVOT_LONGER": TokenType.UNPIVOT,
    "ASCENDING": TokenType.ASC,
    "DESCENDING": TokenType.DESC,
}
#: DuckDB's names of types that sqlglot knows as well; what else is a type there is a name as any other.
_TYPE_WORDS = frozenset(
    """
    BIGNUM BITSTRING BLOB BOOL BPCHAR BYTEA DATE DATETIME FLOAT4 FLOAT8 GEOMETRY GUID HUGEINT INT1 INT128 INT16 INT2 INT32 INT4
    INT64 INT8 JSON LIST LOGICAL LONG NVARCHAR SHORT SIGNED STRING TEXT TIMESTAMPTZ TIMESTAMP_MS TIMESTAMP_NS TIMESTAMP_S
    TIMESTAMP_US TIMETZ TIME_NS TINYINT UBIGINT UHUGEINT UINT128 UINTEGER USMALLINT UTINYINT UUID VARBINARY VARIANT
    """.split()
)
#: Words that are types to sqlglot alone.
FOREIGN_TYPES = frozenset(
    word
    for word, kind in DuckDB.Tokenizer.KEYWORDS.items()
    if kind in DuckDB.Parser.TYPE_TOKENS and word.isidentifier() and word not in _TYPE_WORDS | KEYWORDS
)

#: Pairs of words that are one token: the second word by the first.
_PAIRS: dict[str, dict[str, TokenType]] = {}
for _pair in (
    "GROUP BY",
    "ORDER BY",
    "PARTITION BY",
    "GROUPING SETS",
    "SIMILAR TO",
    "DOUBLE PRECISION",
    "CHARACTER VARYING",
    "CHAR VARYING",
):
    _first, _second = _pair.split()
    _PAIRS.setdefault(_first, {})[_second] = _KEYWORDS[_pair]

#: Marks and operators. Some are several tokens to sqlglot.
_MARKS: dict[str, tuple[TokenType, ...]] = {
    **{sign: (kind,) for sign, kind in DuckDB.Tokenizer.SINGLE_TOKENS.items() if sign not in "@!'`\"\\"},
    **{sign: (kind,) for sign, kind in _KEYWORDS.items() if not re.search(r"[\w{}?]", sign)},
    "<<": (TokenType.LT, TokenType.LT),
    ">>": (TokenType.GT, TokenType.GT),
    "~~~": (TokenType.GLOB,),
    "@": (TokenType.DAT,),
    "!": (TokenType.EXCLAMATION,),
    "!~~": (TokenType.NOT, TokenType.LIKE),
    "!~~*": (TokenType.NOT, TokenType.ILIKE),
    "!~": (TokenType.NOT, TokenType.TILDE),
    "!~*": (TokenType.NOT, TokenType.IRLIKE),
}


def sqlglot_tokens(tokens: Tokens, start: int, stop: int) -> list[Token]:
    """The tokens from `start` to before `stop`, positions being offsets in the whole text.

    Raises UnsupportedError for operators that sqlglot does not know.
    """
    made: list[Token] = []
    kinds, starts, stops, text = tokens.kinds, tokens.starts, tokens.stops, tokens.text
    index = start
    while index < stop:
        kind, first, last = kinds[index], starts[index], stops[index] - 1
        source = text[first : last + 1]
        index += 1
        if index - 1 in tokens.array_words:  # INTEGER ARRAY[3] is INTEGER[3], and without a size INTEGER[]
            if kinds[index] != "[":
                made.append(_token(TokenType.L_BRACKET, source, first, last))
                made.append(_token(TokenType.R_BRACKET, source, first, last))
        elif kind == NAME and source[0] not in '"`' or kind in KEYWORDS:
            upper = source.upper()
            pairs = _PAIRS.get(upper)
            if pairs is not None and kinds[index] in pairs:
                token_type, source = pairs[kinds[index]], f"{upper} {kinds[index]}"
                last = stops[index] - 1
                index += 1
            elif index - 1 in tokens.names or index - 2 >= start and kinds[index - 2] == "$":
                token_type = TokenType.VAR
            elif upper == "GROUPS" and index - 3 >= start and kinds[index - 3] == "OVER":
                token_type = TokenType.ROWS  # OVER (GROUPS ...; behind ORDER BY sqlglot knows it by itself
            elif upper in FOREIGN_TYPES:
                token_type = TokenType.IDENTIFIER
            else:
                token_type = _KEYWORDS.get(upper, TokenType.VAR)
            made.append(_token(token_type, source, first, last))
        elif kind == NAME:
            made.append(_token(TokenType.IDENTIFIER, tokens.name(index - 1), first, last))
        elif kind == NUMBER:
            if source[0] == ".":
                made.append(_token(TokenType.DOT, ".", first, first))
                first += 1
            made.append(_token(TokenType.NUMBER, source.lstrip(".").replace("_", ""), first, last))
        elif kind == TEXT:
            made.append(_text(source, first, last))
        elif kind == "," and (kinds[index] in ("SELECT", "FROM") or index - 1 in tokens.last_commas):
            continue  # behind the last item of a list
        else:
            types = _MARKS.get(source)
            if types is None:
                raise UnsupportedError(f"the operator {source} is not supported", (first, last + 1))
            for token_type in types:
                made.append(_token(token_type, source, first, last))
    return made


def spliced_tokens(tokens: Tokens, pieces: Sequence[str | Part]) -> list[Token]:
    """A query made of parts of the text, and of words of ours, which stand where the part behind them begins."""
    made: list[Token] = []
    place = len(tokens.text)
    for piece in reversed(pieces):
        if isinstance(piece, Part):
            part = sqlglot_tokens(tokens, piece.start, piece.stop)
            place = tokens.starts[piece.start] if piece.stop > piece.start else place
        else:
            words = tokenize(piece)
            own = sqlglot_tokens(words, 0, len(words.stops) - 1)
            part = [_token(token.token_type, token.text, place, place) for token in own]
        made[:0] = part
    return made


def _token(token_type: TokenType, text: str, first: int, last: int) -> Token:
    return Token(token_type, text, 1, 1, first, last)


def _text(source: str, first: int, last: int) -> Token:
    mark = source[0]
    if mark == "'":
        return _token(TokenType.STRING, "".join(PIECES.findall(source)).replace("''", "'"), first, last)
    if mark == "$":
        tag = source.index("$", 1) + 1
        return _token(TokenType.STRING, source[tag:-tag], first, last)
    if mark in "nN":
        return _token(TokenType.STRING, source[2:-1].replace("''", "'"), first, last)
    if mark in "bB":
        return _token(TokenType.BIT_STRING, "".join(PIECES.findall(source)), first, last)
    if mark in "xX":
        return _token(TokenType.HEX_STRING, "".join(PIECES.findall(source)), first, last)
    (token,) = _ESCAPES.tokenize(source)
    return _token(token.token_type, token.text, first, last)


#: For single texts with escapes, e'\\n'.
_ESCAPES = DuckDB.Tokenizer(dialect=DuckDB())
