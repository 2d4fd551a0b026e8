"""Differences grouped by likely cause, printed, and written as JSON lines."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.random.comparison import Verdict
from tests.random.engines import Rows
from tests.random.reduction import Case
from tests.random.tokens import CLAUSES, tokens_of


@dataclass
class Finding:
    """A reduced difference, where it comes from, and how often its like was seen."""

    cause: str
    outcome: str
    text: str
    line: str
    again: str
    count: int = 1


@dataclass
class Findings:
    """All findings of a run by likely cause. Of each cause a few are reduced, the others only counted."""

    by_cause: dict[str, Finding] = field(default_factory=dict)
    #: How often a verdict was seen before it was reduced.
    seen: Counter[str] = field(default_factory=Counter)

    def add(self, finding: Finding) -> bool:
        """Adds it, or counts it with those of the same cause; is it new?"""
        known = self.by_cause.get(finding.cause)
        if known is None:
            self.by_cause[finding.cause] = finding
            return True
        known.count += finding.count
        if len(finding.line) < len(known.line):
            known.text, known.line, known.again = finding.text, finding.line, finding.again
        return False

    def sorted(self) -> list[Finding]:
        """The most frequent first."""
        return sorted(self.by_cause.values(), key=lambda finding: -finding.count)


def first_guess(verdict: Verdict) -> str:
    """The likely cause before anything is reduced."""
    return f"{verdict.outcome}: {verdict.signature}"


def finding_of(case: Case, again: str) -> Finding:
    """What is known of a reduced case."""
    verdict = case.verdict
    cause = first_guess(verdict)
    if verdict.outcome in ("wrong", "unnoticed") or (verdict.outcome == "accepted" and "Parser" not in cause):
        cause += f" in {_words(case.query.sql)}"
    sql, parameters = case.query.rendered()
    tables = [" ".join(table.statements()) for table in case.tables.values()]
    record: dict[str, Any] = {
        "class": verdict.outcome,
        "tables": tables,
        "query": sql,
        "params": repr(parameters),
        "duckdb": _answer(verdict.duckdb),
        "tqp": _answer(verdict.tqp),
    }
    if case.settings:
        record["settings"] = repr(dict(case.settings))
    lines = [*(table[:1500] for table in tables), f"{sql};", f"-- {verdict.outcome}: {verdict.detail}"]
    if parameters:
        lines.append(f"-- parameters: {parameters}")
    lines += [f"-- DuckDB: {_short(record['duckdb'])}", f"-- tqp:    {_short(record['tqp'])}"]
    if case.settings:
        lines.append(f"-- with {dict(case.settings)}")
    lines.append(f"-- again: {again}")
    return Finding(cause, verdict.outcome, "\n".join(lines), json.dumps(record, ensure_ascii=False), again)


def _words(sql: str) -> str:
    """The functions, operators and keywords of a query, each once."""
    tokens = tokens_of(sql)
    words = {
        token.upper()
        for token, following in zip(tokens, [*tokens[1:], ""], strict=True)
        if following == "(" or token.upper() in CLAUSES or not (token[0].isalnum() or token[0] in "'\"$(),.")
    }
    return " ".join(sorted(words - {"AS", "SELECT", "FROM", "*"}))


def _answer(answer: Rows | BaseException | None) -> list[Any]:
    if isinstance(answer, Rows):
        rows = sorted((list(map(str, row)) for row in answer.rows), key=repr)
        return ["rows", list(answer.types), rows[:40]]
    return ["err", type(answer).__name__, str(answer)[:600]]


def _short(answer: list[Any]) -> str:
    return " ".join(str(part) for part in answer[1:]).replace("\n", " ")[:300]
