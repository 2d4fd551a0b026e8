"""Random queries over a whole query, whose columns are o0, o1, ...: COLUMNS, PIVOT and UNPIVOT, and what goes by names of columns."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.random.expressions import Column, Expressions, Scope


class AroundQueries:
    """Draws what stands around a query."""

    def __init__(self, random: Random, expressions: Expressions) -> None:
        self.random = random
        self.expressions = expressions

    def of_columns(self, sql: str) -> str:
        """Columns of a derived table by their names, o0 to o3."""
        random = self.random
        names = random.choice(
            ("'o[02]'", "*", "* EXCLUDE (o0)", "lambda c: c LIKE 'o%' AND c <> 'o1'", "['o0']")
        )
        items = random.choice(
            (
                f"COLUMNS({names})",
                f"COLUMNS({names}) IS NULL",
                f"max(COLUMNS({names})), count(*)",
                f"concat_ws(',', *COLUMNS({names}))",
                f"CASE WHEN o0 IS NULL THEN COLUMNS({names}) END AS 'c_\\0'",
                "* RENAME (o0 AS p), p",
                "* NOT LIKE 'o1'",
                f"COLUMNS({names})::VARCHAR",
                f"coalesce(NULL, *COLUMNS({names}))",
                f"COLUMNS({names}) IS DISTINCT FROM COLUMNS({names})",
                f"struct_pack(*COLUMNS({names}))",
                f"min(COLUMNS({names})) OVER (PARTITION BY o0)",
                "COLUMNS('o(\\d)') AS 'c\\1', * EXCLUDE (o0)",
                "COLUMNS(* EXCLUDE (o0)), count(*) OVER ()",
                "* REPLACE (o0 IS NULL AS o0)",
            )
        )
        where = random.choice(("", "", f" WHERE COLUMNS({names}) IS NOT NULL"))
        return f"SELECT {items} FROM ({sql}) q{where}"

    def pivoted(self, sql: str, families: Sequence[str]) -> str:
        """PIVOT of a derived table, by values that are few, or written."""
        random = self.random
        places = range(len(families))
        place, of, by = (random.choice(places) for _ in range(3))
        column = f"o{place}"
        few = {
            "int": f"{column} % 3",
            "str": f"left({column}, 1)",
            "bool": column,
            "date": f"year({column}) % 4",
            "float": f"isnan({column})",
        }.get(families[place], f"{column} IS NULL")
        values = random.sample(
            ("0", "1", "'a'", "NULL", "true", "''", "'2024-02-29'", "1.5", "b", "'-1' AS m"), 3
        )
        aggregate = random.choice(
            (f"min(o{of})", f"max(o{of})", f"count(o{of})", f"count(DISTINCT o{of})", "count(*)")
        )
        if random.random() < 0.3:
            aggregate += random.choice((" AS x", f", count(o{by}) AS y", f", max(o{by})"))
        group = random.choice(("", f" GROUP BY o{by}", f" GROUP BY o{by}"))
        written = f"({', '.join(values[: random.randint(1, 3)])})"
        ordered = random.choice(("", "", " ORDER BY ALL"))
        return random.choice(
            (
                f"PIVOT ({sql}) ON {few} USING {aggregate}{group}{ordered}",
                f"PIVOT ({sql}) ON {column} IN {written} USING {aggregate}{group}{ordered}",
                f"PIVOT ({sql}) ON {few}, o{of} IS NULL USING {aggregate}{group}{ordered}",
                f"FROM ({sql}) PIVOT ({aggregate} FOR {column} IN {written}{group}) AS p{ordered}",
                f"FROM ({sql}) PIVOT ({aggregate} FOR ({column}, o{of}) IN (({values[0]}, {values[1]})){group})",
                f"SELECT count(*) FROM (PIVOT ({sql}) ON {few}{group})",
            )
        )

    def unpivoted(self, sql: str, families: Sequence[str]) -> str:
        """UNPIVOT of columns of one family, or of all as texts."""
        random = self.random
        family = random.choice(families)
        alike = [f"o{place}" for place, each in enumerate(families) if each == family]
        chosen = ", ".join(random.sample(alike, random.randint(1, len(alike))))
        texts = ", ".join(
            f"o{place}::VARCHAR" for place, each in enumerate(families) if each not in ("float", "interval")
        )
        nulls = random.choice(("", "", "INCLUDE NULLS ", "EXCLUDE NULLS "))
        ordered = random.choice(("", "", " ORDER BY ALL"))
        return random.choice(
            (
                f"UNPIVOT ({sql}) ON {chosen} INTO NAME n VALUE v{ordered}",
                f"UNPIVOT ({sql}) ON {chosen}{ordered}",
                f"FROM ({sql}) UNPIVOT {nulls}(v FOR n IN ({chosen})) AS q{ordered}",
                f"FROM ({sql}) UNPIVOT {nulls}(v FOR n IN ({texts or chosen})) AS q{ordered}",
                f"FROM ({sql}) UNPIVOT {nulls}((v, w) FOR n IN (({alike[0]}, o0), ({alike[-1]}, o0)))",
                f"SELECT n, count(*), max(v) FROM ({sql}) UNPIVOT {nulls}(v FOR n IN ({chosen})) GROUP BY n",
            )
        )

    def by_names(self, sql: str, families: Sequence[str]) -> str:
        """A query over a query, by stars and names of columns."""
        random = self.random
        columns = [Column(f"o{index}", family) for index, family in enumerate(families)]
        name = random.choice(columns).sql
        computed = self.expressions.draw(random.choice(families), Scope(columns), 2)
        joins = ("NATURAL JOIN", "NATURAL LEFT JOIN", "NATURAL FULL JOIN")
        kept = [column.sql for column in columns if column.family != "float"] or ["o0"]
        forms = [
            f"SELECT * REPLACE ({computed} AS {name}) FROM ({sql})",
            f"FROM ({sql}) q SELECT q.*, {computed}",
            f"SELECT #{len(columns)} AS o9, count(*) FROM ({sql}) WHERE #1 IS NOT NULL GROUP BY #{len(columns)}",
            f"FROM ({sql}) WHERE {self.expressions.predicate(Scope(columns), 1)}",
            f'SELECT column_name, column_type, "null" FROM (DESCRIBE SELECT *, {computed} AS o9 FROM ({sql}))',
            f"SELECT column_name, column_type, min, count FROM (SUMMARIZE SELECT {kept[0]} FROM ({sql}))",
            f"SELECT unnest([[{name}, NULL], [{name}]], {random.choice(('recursive := true', 'max_depth := 2'))}) FROM ({sql})",
            f"({sql}) {random.choice(('UNION', 'UNION ALL'))} BY NAME (SELECT {name} FROM ({sql}))",
            f"SELECT {name}, {computed} AS o9 FROM ({sql}) UNION BY NAME ({sql}) UNION ALL BY NAME (SELECT 1 AS p, {name} FROM ({sql}))",
            f"SELECT DISTINCT ON ({name}) {name}, count(*) OVER (PARTITION BY {name}), max({kept[0]}) OVER (PARTITION BY {name}) FROM ({sql})",
            f"SELECT DISTINCT ON ({name}) {name}, dense_rank() OVER (ORDER BY {kept[0]}) AS o9 FROM ({sql}) ORDER BY {name}, o9",
            f"SELECT * FROM (SELECT {', '.join(kept)} FROM ({sql})) {random.choice(joins)} (SELECT {kept[-1]} FROM ({sql}))",
        ]
        if len(columns) > 1:
            forms.append(f"SELECT * EXCLUDE ({name}) FROM ({sql})")
            struct = ", ".join(f"'f{index}': {column.sql}" for index, column in enumerate(columns))
            forms.append(f"SELECT st.* FROM (SELECT {{{struct}}} AS st FROM ({sql}))")
            forms.append(f"SELECT unnest({{{struct}}}), {name} FROM ({sql})")
            deep = random.choice(("recursive := true", "max_depth := 2", "max_depth := 3"))
            forms.append(f"SELECT unnest([{{'f': {{{struct}}}}}, NULL], {deep}), {name} FROM ({sql})")
            forms.append(f"SELECT q.* EXCLUDE ({name}), {computed} FROM ({sql}) AS q")
        return random.choice(forms)
