"""Wrong queries made from right ones: a token dropped, doubled, swapped, or replaced by one of another query."""

from __future__ import annotations

from random import Random

from tests.random.tokens import text_of, tokens_of

#: Words that queries of the generator rarely have.
_WORDS = (
    *"AS NULL END CASE WHEN THEN ELSE DISTINCT ALL ANY NOT IN IS BY ON USING FROM WHERE HAVING WITH LATERAL EXISTS".split(),
    *(
        "(",
        ")",
        ",",
        ".",
        "*",
        "-",
        "=",
        "::",
        "||",
        "1",
        "'a'",
        "?",
        "$1",
        ";",
        "[",
        "]",
        "|",
        "&",
        ":",
        "!",
        "@",
        "#",
    ),
    *(
        "NULLS",
        "FIRST",
        "UNION",
        "ORDER",
        "GROUP",
        "LIMIT",
        "CAST",
        "VALUES",
        "SELECT",
        "TRUE",
        "k",
        "o0",
        "r0",
        "t0",
    ),
)


def mutated(random: Random, sql: str, other: str) -> str:
    """`sql` with one or two tokens changed; `other` lends tokens."""
    tokens = tokens_of(sql)
    lent = tokens_of(other)
    for _ in range(random.choice((1, 1, 1, 2))):
        index = random.randrange(len(tokens))
        form = random.random()
        if form < 0.3 and len(tokens) > 1:
            del tokens[index]
        elif form < 0.45:
            tokens.insert(index, tokens[index])
        elif form < 0.6 and len(tokens) > 1:
            place = random.randrange(len(tokens) - 1)
            tokens[place], tokens[place + 1] = tokens[place + 1], tokens[place]
        elif form < 0.75:
            tokens[index] = random.choice(lent)
        elif form < 0.88:
            tokens[index] = random.choice(_WORDS)
        else:
            tokens.insert(index, random.choice(_WORDS))
    return text_of(tokens)
