"""Random queries: SELECT with all its clauses, set operations, CTEs, and parameters in place of literals.

The rows of every query are determined: LIMIT only ever follows an ORDER BY over all columns.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from random import Random

from tests.random.around import AroundQueries
from tests.random.expressions import Column, Expressions, PlainExpressions, Scope
from tests.random.relations import Relations
from tests.random.tables import RandomTable
from tests.random.templates import TAKES_ONE_VALUE
from tests.random.tokens import text_of, tokens_of

#: Of queries, how many have plain expressions.
_PLAIN_SHARE = 0.25
#: Of windows that order rows by all their columns.
_MAX_KEYS = 16
_DIRECTIONS = ("", "", " DESC", " NULLS FIRST", " DESC NULLS LAST", " ASC NULLS LAST", " DESC NULLS FIRST")


@dataclass(frozen=True)
class RandomQuery:
    """A text with parameters $p0, $p1, ... (values by name), and how they are to be written: "?", "$1" or "$name"."""

    sql: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    style: str = "$name"

    def rendered(self) -> tuple[str, list[object] | dict[str, object] | None]:
        """The text and the parameters as both engines take them."""
        if not self.parameters:
            return self.sql, None
        tokens = tokens_of(self.sql)
        used = [token[1:] for token in tokens if token[1:] in self.parameters and token[0] == "$"]
        if self.style == "$name" or not used:
            return self.sql, {name: self.parameters[name] for name in used} or None
        if self.style == "?":
            text = text_of(["?" if token[0] == "$" and token[1:] in used else token for token in tokens])
            return text, [self.parameters[name] for name in used]
        order = list(dict.fromkeys(used))
        numbers = {f"${name}": f"${index + 1}" for index, name in enumerate(order)}
        return text_of([numbers.get(token, token) for token in tokens]), [
            self.parameters[name] for name in order
        ]


def random_query(random: Random, tables: Mapping[str, RandomTable]) -> RandomQuery:
    """One query over these tables; the same for the same state of `random`."""
    is_plain = random.random() < _PLAIN_SHARE
    sql = Queries(random, tables, PlainExpressions if is_plain else Expressions).query()
    return _with_parameters(random, sql) if random.random() < 0.12 else RandomQuery(sql)


class Queries:
    """Draws one query; its parts refer to each other through this object."""

    def __init__(
        self,
        random: Random,
        tables: Mapping[str, RandomTable],
        expressions: type[Expressions] = Expressions,
    ) -> None:
        self.random = random
        self.expressions = expressions(random, self.subquery)
        self.relations = Relations(random, tables, self.expressions, self.select)
        self.around = AroundQueries(random, self.expressions)

    def query(self) -> str:
        """A whole query."""
        random = self.random
        prefixes = []
        for index in range(random.choice((0, 0, 0, 0, 1, 1, 2))):
            body, families = self.select(random.choice((0, 1)), (), None)
            self.relations.ctes.append((f"w{index}", families))
            names = f"({', '.join(f'o{i}' for i in range(len(families)))})" if random.random() < 0.2 else ""
            materialized = random.choice(("", "", "", "MATERIALIZED ", "NOT MATERIALIZED "))
            prefixes.append(f"w{index}{names} AS {materialized}({body})")
        recursive = ""
        if random.random() < 0.04:
            prefixes.append(f"w9{self._recursive()}")
            self.relations.ctes.append(("w9", ("int", "int")))
            recursive = "RECURSIVE "
        prefix = f"WITH {recursive}{', '.join(prefixes)} " if prefixes else ""
        sql, families = self.select(2, (), None)
        if random.random() < 0.04:
            return prefix + self.around.of_columns(sql)
        if random.random() < 0.04:
            form = self.around.pivoted if random.random() < 0.6 else self.around.unpivoted
            return prefix + form(sql, families)
        if random.random() < 0.4:
            sql = (
                f"SELECT * FROM ({sql})"
                if " UNION" in sql or " EXCEPT" in sql or " INTERSECT" in sql
                else sql
            )
            sql += self.ordered(len(families))
        elif random.random() < 0.15:
            sql = self.around.by_names(sql, families)
        return prefix + sql

    def _recursive(self) -> str:
        """Two columns of integers, and at most six iterations."""
        random = self.random
        first, _ = self.select(0, (), ("int", "int"))
        relations, scope = self.relations.from_clause(0, ())
        item = self.expressions.draw("int", Scope(scope.columns), 1)
        joined = random.choice(
            (
                "w9",
                f"w9, (SELECT {item} AS o9{relations} ORDER BY ALL LIMIT 3) x",
                f"w9, (SELECT {random.choice(('max(o1)', 'count(*)', 'sum(o0)'))} AS o9 FROM recurring.w9) x",
            )
        )
        step = random.choice(("o0 + 1", "coalesce(o0, 1)", "o0 % 3", "x.o9" if "x" in joined else "o0 // 2"))
        operator = random.choice(("UNION", "UNION ALL"))
        first = f"SELECT 0 AS o0, 0 AS o1 UNION ALL ({first} ORDER BY ALL LIMIT 3)"
        later = f"SELECT {step}, o1 + 1 FROM {joined} WHERE o1 BETWEEN 0 AND {random.randint(0, 5)}"
        if random.random() < 0.5:
            return f" AS ({first} {operator} {later})"
        # of several rows of one key in an iteration, any may be the last
        keys = random.choice(("o0", "o0", "o1, o0", "o0, max(o1)", "o0, sum(o1)"))
        one = "SELECT k AS o0, max(v) AS o1 FROM ({}) t(k, v) GROUP BY k"
        return f" USING KEY ({keys}) AS (({one.format(first)}) {operator} {one.format(later)})"

    def ordered(self, num_columns: int) -> str:
        """ORDER BY over all columns, with LIMIT now and then."""
        random = self.random
        positions = random.sample(range(num_columns), num_columns)
        keys = ", ".join(f"o{position}{random.choice(_DIRECTIONS)}" for position in positions)
        if random.random() < 0.15:
            keys = f"ALL{random.choice(('', ' DESC'))}"
        limit = random.choice(("", "", f" LIMIT {random.randint(0, 12)}"))
        if limit and random.random() < 0.2:
            limit = random.choice(
                (f" LIMIT {random.randint(0, 100)}%", f" LIMIT (SELECT {random.randint(0, 9)})")
            )
        offset = f" OFFSET {random.randint(0, 5)}" if random.random() < 0.1 else ""
        return f" ORDER BY {keys}{limit}{offset}"

    def select(
        self, depth: int, outer: Sequence[Column], families: Sequence[str] | None
    ) -> tuple[str, tuple[str, ...]]:
        """SELECT ... AS o0, ... AS o1; `depth` bounds what is nested in it, `families` what columns it has."""
        random = self.random
        if depth > 0 and random.random() < 0.12:
            return self._set_operation(depth, outer, families)
        relations, scope = self.relations.from_clause(depth, outer)
        if random.random() < 0.03:
            relations, scope = "", Scope((), outer, depth)
        has_where = random.random() < 0.55
        if has_where:
            relations += f" WHERE {self.expressions.predicate(scope, random.choice((0, 1, 1, 2)))}"
        if families is None:
            wanted = [self.expressions.family(scope) for _ in range(random.randint(1, 4))]
        else:
            wanted = list(families)
        if random.random() < 0.35:
            return self._grouped(relations, scope, wanted), tuple(wanted)
        items: list[str] = []
        for family in wanted:
            before = Scope([Column(f"o{index}", wanted[index]) for index in range(len(items))])
            # an alias stands for what it names, unless a table has such a column
            named = before if items and random.random() < 0.06 else scope
            items.append(self.expressions.draw(family, named, random.choice((0, 1, 2, 2, 3))))
        if random.random() < 0.04:
            aliases = Scope([Column(f"o{index}", family) for index, family in enumerate(wanted)])
            relations += f" {'AND' if has_where else 'WHERE'} {self.expressions.predicate(aliases, 1)}"
        if scope.columns and random.random() < 0.15:
            rows = replace(scope, unique_keys=_unique_keys(scope.columns))
            place = random.randrange(len(items))
            items[place] = self.expressions.window(wanted[place], rows)
            if random.random() < 0.15:
                items[place], definition = _with_named_window(items[place])
                relations += f" WINDOW win AS {definition}"
            if random.random() < 0.3:
                ranks = self.expressions.window("int", rows)
                relations += f" QUALIFY {ranks} {random.choice(('<=', '=', '>'))} {random.randint(0, 3)}"
        distinct = "DISTINCT " if random.random() < 0.15 else ""
        if (
            random.random() < 0.04
        ):  # the keys are all columns, so that it does not matter which row is the first
            distinct = f"DISTINCT ON ({', '.join(f'o{index}' for index in range(len(items)))}) "
        sql = f"SELECT {distinct}{_named(items)}{relations}"
        if depth < 2 and random.random() < 0.06:
            sql += self.ordered(len(wanted))
        return sql, tuple(wanted)

    def _set_operation(
        self, depth: int, outer: Sequence[Column], families: Sequence[str] | None
    ) -> tuple[str, tuple[str, ...]]:
        left, wanted = self.select(0, outer, families)
        right, _ = self.select(0, outer, wanted)
        operators = "UNION ALL,UNION,UNION,EXCEPT,EXCEPT ALL,INTERSECT,INTERSECT ALL"
        operator = self.random.choice(operators.split(","))
        if self.random.random() < 0.15:
            names = ", ".join(self.random.sample([f"o{place}" for place in range(len(wanted))], len(wanted)))
            operator, right = f"{operator.partition(' ')[0]} BY NAME", f"SELECT {names} FROM ({right})"
            return (
                f"({left}) {operator.replace('EXCEPT', 'UNION').replace('INTERSECT', 'UNION ALL')} ({right})",
                wanted,
            )
        if self.random.random() < 0.2:
            return (
                f"({left}) {operator} ({right}) {self.random.choice(('UNION', 'UNION ALL'))} ({left})",
                wanted,
            )
        return f"({left}) {operator} ({right})", wanted

    def _grouped(self, relations: str, scope: Scope, families: list[str]) -> str:
        """Grouped, or one row of aggregates; `families` may change where a key takes the place of an item."""
        random = self.random
        expressions = self.expressions
        inner = Scope(scope.columns, scope.outer, 0)
        keys: list[str] = []
        items: list[str] = []
        computed: list[Column] = []  # keys and aggregates so far
        windows: list[int] = []  # places of window functions
        for family in families:
            form = random.random()
            if form < 0.45:
                key = expressions.column(family, Scope(scope.columns))
                equal = [known.sql for known in computed if known.family == family and known.sql in keys]
                if equal and random.random() < 0.15:  # several items of one key
                    keys.append(random.choice(equal))
                elif key and random.random() < 0.7:
                    keys.append(key.sql)
                else:
                    keys.append(expressions.draw(family, Scope(scope.columns), 1))
                items.append(keys[-1])
                computed.append(Column(keys[-1], family))
            elif form < 0.48 and computed:
                windows.append(len(items))
                items.append("")
            elif form < 0.6 and computed:
                outer = scope.outer if random.random() < 0.3 else ()
                items.append(expressions.draw(family, Scope(computed, outer), 2))
            else:
                call = expressions.aggregate(family, inner, keys)
                computed.append(Column(call, family))
                nested = "{} {} {}" if family in ("int", "dec", "float") and random.random() < 0.2 else ""
                items.append(
                    nested.format(call, random.choice("+-*"), random.choice((1, 2))) if nested else call
                )
        for place in windows:
            groups = Scope(computed, unique_keys=() if _has_floats(computed) else keys)
            items[place] = expressions.window(families[place], groups)
        if not keys and random.random() < 0.5:
            return f"SELECT {_named(items)}{relations}{self._having(inner, [], computed, 0.2)}"
        form = random.random()
        hidden = expressions.draw(expressions.family(scope), Scope(scope.columns), 1)
        if form < (0.05 if windows else 0.2):
            group = "ALL"
        elif form < 0.35:
            group = ", ".join(str(index + 1) for index, item in enumerate(items) if item in keys) or hidden
        elif form < 0.45:
            group = ", ".join(f"o{index}" for index, item in enumerate(items) if item in keys) or hidden
        else:
            group = ", ".join((*keys, hidden) if not windows and random.random() < 0.15 else keys) or hidden
        in_sets = form >= 0.2 and random.random() < 0.25
        if in_sets and not windows and not any(map(TAKES_ONE_VALUE.search, items)):
            group = self._sets(group.split(", ") if form < 0.45 else [*keys] or [hidden])
            numbers = [place for place, family in enumerate(families) if family == "int"]
            places = [place for place in numbers if items[place] not in keys]
            if places and keys:
                bits = random.sample(keys, random.randint(1, len(keys)))
                items[random.choice(places)] = f"grouping({', '.join(bits)})"
        having = self._having(inner, () if in_sets else keys, computed, 0.3)
        return f"SELECT {_named(items)}{relations} GROUP BY {group}{having}"

    def _sets(self, keys: Sequence[str]) -> str:
        """GROUPING SETS, ROLLUP or CUBE of the keys, or of some beside the others."""
        random = self.random
        chosen = random.sample(keys, min(len(keys), random.randint(1, 3)))
        others = [key for key in keys if key not in chosen]
        form = random.random()
        if form < 0.35:
            sets = f"ROLLUP ({', '.join(chosen)})"
        elif form < 0.6:
            sets = f"CUBE ({', '.join(chosen)})"
        else:
            subsets = [
                random.sample(chosen, random.randint(0, len(chosen))) for _ in range(random.randint(1, 3))
            ]
            sets = "GROUPING SETS (" + ", ".join(f"({', '.join(subset)})" for subset in subsets) + ")"
        return ", ".join((*others, sets))

    def _having(self, scope: Scope, keys: Sequence[str], computed: Sequence[Column], share: float) -> str:
        """HAVING over aggregates, keys, or nothing of the rows at all."""
        random = self.random
        if random.random() >= share:
            return ""
        if computed and random.random() < 0.4:
            return f" HAVING {self.expressions.predicate(Scope(computed, scope.outer), 1)}"
        family = random.choice(("int", "int", "float", "str", "date"))
        call = self.expressions.aggregate(family, scope, keys)
        if keys and random.random() < 0.4:
            return f" HAVING {random.choice(keys)} IS {random.choice(('', 'NOT '))}NULL"
        form = random.choice(
            ("{} IS NOT NULL", "{} > {}", "{} <> {}", "NOT ({} = {})", "coalesce({} < {}, TRUE)")
        )
        return " HAVING " + form.format(call, self.expressions.literal(family))

    def subquery(self, scope: Scope, family: str | None, is_scalar: bool) -> str:
        """A query inside an expression of `scope`, correlated with it more often than not."""
        random = self.random
        outer = scope.visible() if random.random() < 0.6 else ()
        relations, inner = self.relations.from_clause(0, outer)
        inner = Scope(inner.columns, inner.outer, scope.num_subqueries - 1)
        conditions = []
        pairs = [
            (one.sql, other.sql) for one in inner.columns for other in outer if one.family == other.family
        ]
        if pairs and random.random() < 0.85:
            one, other = random.choice(pairs)
            conditions.append(f"{one} {random.choice(('=', '=', '=', '<', '<>'))} {other}")
        if random.random() < 0.35:
            conditions.append(self.expressions.predicate(inner, 1))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        if family is None:
            return f"SELECT {random.choice(('1', '*', 'NULL'))}{relations}{where}"
        local = Scope(inner.columns)
        if is_scalar:
            if random.random() < 0.15:
                item = self.expressions.draw(family, local, 1)
                return f"SELECT {item} AS o0{relations}{where} ORDER BY o0 LIMIT 1"
            return f"SELECT {self.expressions.aggregate(family, local, ())}{relations}{where}"
        return f"SELECT {self.expressions.draw(family, local, 1)}{relations}{where}"


def _with_named_window(call: str) -> tuple[str, str]:
    """A call over a window called `win`, and what `win` is, brackets included."""
    begin = call.rindex("OVER (") + len("OVER ")
    end = next(
        place + 1
        for place in range(begin, len(call))
        if call[begin : place + 1].count("(") == call[begin : place + 1].count(")")
    )
    return f"{call[:begin]}win{call[end:]}", call[begin:end]


def _unique_keys(columns: Sequence[Column]) -> list[str]:
    """All columns, if they are few and none has values that another computation gives a last digit of its own."""
    return [] if len(columns) > _MAX_KEYS or _has_floats(columns) else [column.sql for column in columns]


def _has_floats(columns: Sequence[Column]) -> bool:
    return any(column.family == "float" for column in columns)


def _named(items: Sequence[str]) -> str:
    return ", ".join(f"{item} AS o{index}" for index, item in enumerate(items))


#: Between these a literal is part of a type, of a typed literal, of a clause that takes no parameter, or a name of a STRUCT.
_NOT_BEFORE = {"DATE", "TIME", "TIMESTAMP", "INTERVAL", "BY", "LIMIT", "OFFSET", "ESCAPE"}
_NOT_AFTER = {"::", ":"}


def _with_parameters(random: Random, sql: str) -> RandomQuery:
    """The query with some of its literals given as parameters."""
    tokens = tokens_of(sql)
    parameters: dict[str, object] = {}
    in_type = in_group = False
    share = random.choice((0.1, 0.3, 1.0))
    for index, token in enumerate(tokens[:-1]):
        before = tokens[index - 1].upper() if index else ""
        in_type = before.startswith("DECIMAL") or before in ("FLOAT", "ENUM") or (in_type and token != ")")
        in_group = token == "BY" or (in_group and token not in (")", "HAVING", "LIMIT"))
        is_literal = token[0] == "'" or token[0].isdigit()
        if not is_literal or in_type or in_group or before in _NOT_BEFORE or tokens[index + 1] in _NOT_AFTER:
            continue
        if random.random() < share:
            name = f"p{len(parameters)}"
            parameters[name] = _parameter(random, token)
            tokens[index] = f"${name}"
    return RandomQuery(text_of(tokens), parameters, random.choice(("?", "$1", "$name")))


def _parameter(random: Random, token: str) -> object:
    if token[0] == "'":
        text = token[1:-1].replace("''", "'")
        try:
            return datetime.date.fromisoformat(text) if random.random() < 0.7 else text
        except ValueError:
            return None if random.random() < 0.05 else text
    if token.isdigit():
        return int(token)
    if "e" in token.lower():
        return float(token)
    return Decimal(token) if random.random() < 0.8 else float(token)
