"""`python -m tests.random.run [--minutes N] [--processes N] [--seed S]`: random queries through tqp and DuckDB.

Query I of seed S is the same every time: `--seed S --only I` runs just that one and prints it. Tables and settings
(batch size, threads, a rule switched off, the backend, tables in files that queries stream) are drawn per group of queries. Differences are reduced and grouped.
A run that is stopped by SIGINT or SIGTERM reports what it has found until then.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import active_children, get_context
from random import Random
from types import MappingProxyType
from typing import Any

from tests.random.comparison import Engines, Verdict
from tests.random.findings import Finding, Findings, finding_of, first_guess
from tests.random.mutations import mutated
from tests.random.queries import RandomQuery, random_query
from tests.random.reduction import Case, reduced
from tests.random.stopping import begin_worker, stop_request
from tests.random.tables import RandomTable, random_tables
from tests.settings import fuse_everything, switchable_rules

#: Queries that share tables and settings.
GROUP_SIZE = 20
#: Of these, how many are mutated.
MUTATED_SHARE = 0.25
#: Differences of one likely cause that are reduced; the others are only counted.
MAX_REDUCED = 3
MAX_REDUCED_ROWS = 40
#: Groups that a process runs before it reports.
CHUNK = 5
#: How often a run looks whether it was asked to stop, and how long its processes have for the query at hand then.
LOOK_SECONDS = 0.5
STOP_SECONDS = 20.0


@dataclass
class Outcome:
    """What became of a run: how many queries ended how, what was not supported, and what differed."""

    outcomes: Counter[str] = field(default_factory=Counter)
    unsupported: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """Queries run."""
        return self.outcomes.total()


def run(
    seed: int,
    groups: Collection[int],
    *,
    fixed: Mapping[str, Any] = MappingProxyType({}),
    only: int | None = None,
    seen: Counter[str] | None = None,
    reduce_seconds: float = 12.0,
) -> Outcome:
    """Runs all queries of the groups, or query `only`; `seen` are the likely causes already known, with counts.

    `fixed` are settings of `tqp.connect` that take the place of those drawn.
    """
    outcome = Outcome(seen=Counter(seen))
    for group in groups:
        random = Random(f"group {seed} {group}")
        tables = random_tables(random)
        settings = {**_settings(random, tables), **fixed}
        numbers = range(group * GROUP_SIZE, (group + 1) * GROUP_SIZE) if only is None else (only,)
        with Engines(tables, settings) as engines:
            for number in numbers:
                if stop_request.is_made:
                    return outcome
                query, is_mutated = query_of(seed, number, tables)
                verdict = _compared(engines, query, is_mutated)
                outcome.outcomes[verdict.outcome] += 1
                if verdict.outcome == "unsupported":
                    outcome.unsupported[verdict.signature] += 1
                if verdict.is_difference:
                    guess = first_guess(verdict)
                    outcome.seen[guess] += 1
                    most = MAX_REDUCED_ROWS if verdict.outcome in ("wrong", "unnoticed") else MAX_REDUCED
                    if outcome.seen[guess] <= most:
                        case = Case(tables, query, settings, is_mutated, verdict)
                        again = f"python -m tests.random.run --seed {seed} --only {number}"
                        outcome.findings.append(finding_of(_reduced(case, reduce_seconds), again))
    return outcome


def _compared(engines: Engines, query: RandomQuery, is_mutated: bool) -> Verdict:
    """The verdict; a defect of the comparison itself is a finding too, and the run goes on."""
    try:
        return engines.compare(query, is_mutated)
    except Exception as error:  # noqa: BLE001
        return Verdict(
            "crash", f"comparison: {type(error).__name__}", traceback.format_exc()[-600:], None, error
        )


def _reduced(case: Case, seconds: float) -> Case:
    try:
        return reduced(case, seconds)
    except Exception:  # noqa: BLE001 - better a large case than none
        return case


def query_of(seed: int, number: int, tables: dict[str, RandomTable]) -> tuple[RandomQuery, bool]:
    """Query `number` of a seed over the tables of its group, and whether it was mutated."""
    random = Random(f"query {seed} {number}")
    query = random_query(random, tables)
    if random.random() >= MUTATED_SHARE:
        return query, False
    other = random_query(random, tables)
    return RandomQuery(mutated(random, query.sql, other.sql), query.parameters, query.style), True


def _settings(random: Random, tables: Mapping[str, RandomTable]) -> dict[str, Any]:
    settings: dict[str, Any] = {"threads": random.choice((1, 2, 2, 4))}
    batch_rows = random.choice((None, None, None, 1, 3, 7, 1000))
    if batch_rows is not None and max(table.num_rows for table in tables.values()) > 1000:
        batch_rows = 1000  # thousands of batches of a row each take long and show nothing
    if batch_rows is not None:
        settings["batch_rows"] = batch_rows
    if random.random() < 0.4:
        settings["disabled_rules"] = (random.choice(switchable_rules()),)
    if random.random() < 0.4:
        settings["backend"] = "torch"
    if random.random() < 0.25:
        settings["files"] = True
    return settings


class Run:
    """A run of several processes: chunks of groups are handed out until time or count is up."""

    def __init__(self, seed: int, fixed: Mapping[str, Any], findings_path: str | None) -> None:
        self.seed = seed
        self.fixed = fixed
        self.findings_path = findings_path
        self.outcome = Outcome()
        self.findings = Findings()
        self.lost: list[str] = []

    def go(self, processes: int, num_groups: int, minutes: float | None) -> None:
        """Runs groups 0, 1, ... until there are `num_groups`, `minutes` have passed, or it is asked to stop."""
        deadline = None if minutes is None else time.monotonic() + 60 * minutes
        chunks = iter(range(0, num_groups, CHUNK))
        exhausted = False
        while not exhausted:
            with ProcessPoolExecutor(processes, get_context("spawn"), begin_worker) as pool:
                pending: dict[Future[Outcome], int] = {}
                try:
                    while not exhausted or pending:
                        while len(pending) < processes and not exhausted:
                            first = next(chunks, None)
                            if first is None or (deadline is not None and time.monotonic() > deadline):
                                exhausted = True
                                break
                            groups = range(first, min(first + CHUNK, num_groups))
                            job = pool.submit(run_chunk, self.seed, groups, self.fixed, self.outcome.seen)
                            pending[job] = first
                        done, _ = wait(pending, LOOK_SECONDS, FIRST_COMPLETED)
                        for job in done:
                            self._take(job.result())
                            del pending[job]
                        if stop_request.is_made:
                            self._stop(pending)
                            return
                except BrokenProcessPool:
                    # The process died: which of the chunks it was, running them one by one will tell.
                    self._lose("a process died", pending.values())

    def _stop(self, pending: Mapping[Future[Outcome], int]) -> None:
        """Takes what the processes have, which are asked to stop; one that does not in time is killed."""
        for process in active_children():
            process.terminate()
        wait(pending, STOP_SECONDS)
        for process in active_children():
            process.kill()
        for job, first in pending.items():
            if job.done() and job.exception() is None:
                self._take(job.result())
            else:
                self._lose("stopped", (first,))

    def _lose(self, why: str, chunks: Iterable[int]) -> None:
        self.lost += [f"{why} in groups {first} to {first + CHUNK - 1}" for first in chunks]

    def _take(self, part: Outcome) -> None:
        self.outcome.outcomes += part.outcomes
        self.outcome.unsupported += part.unsupported
        for guess, count in part.seen.items():
            self.outcome.seen[guess] = max(self.outcome.seen[guess], count)
        for finding in part.findings:
            if self.findings.add(finding):
                print(f"\n{finding.text}", flush=True)
                if self.findings_path is not None:
                    with open(self.findings_path, "a", encoding="utf-8") as file:
                        file.write(finding.line + "\n")
            else:
                print(f"-- and {finding.again}", flush=True)
        if sys.stderr.isatty():
            print(f"\r{self.outcome.total} queries", end="", file=sys.stderr)

    def report(self, seconds: float) -> None:
        """Prints what was found, how often, and what was run."""
        counts = ", ".join(f"{count} {outcome}" for outcome, count in self.outcome.outcomes.most_common())
        print(f"\nseed {self.seed}: {self.outcome.total} queries in {seconds / 60:.1f} minutes; {counts}")
        for guess, count in self.outcome.seen.most_common():
            print(f"{count:6} x {guess}")
        for message, count in self.outcome.unsupported.most_common(40):
            print(f"{count:6} x unsupported: {message}")
        for line in self.lost:
            print(line)


def run_chunk(seed: int, groups: Collection[int], fixed: Mapping[str, Any], seen: Counter[str]) -> Outcome:
    """`run` in a process of its own."""
    if "fuse" in fixed:
        fuse_everything()
    return run(seed, groups, fixed=fixed, seen=seen)


def main(arguments: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.random.run", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--minutes", type=float, default=None, help="stop after so long")
    parser.add_argument("--count", type=int, default=None, help="stop after so many queries (default: 5000)")
    parser.add_argument("--processes", type=int, default=1, help="how many at a time (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="default: from the clock")
    parser.add_argument(
        "--only", type=int, default=None, help="run one query of the seed, print and reduce it"
    )
    parser.add_argument("--findings", default=None, help="append what is found to this file, as JSON lines")
    parser.add_argument("--fuse", action="store_true", help="compile elementwise parts, however small (slow)")
    parser.add_argument("--device", default=None, help="compute there, for example cuda (default: cpu)")
    options = parser.parse_args(arguments)
    fixed = {"fuse": "on"} if options.fuse else {}
    if options.device is not None:
        fixed |= {"device": options.device}
    seed = int(time.time()) if options.seed is None else options.seed
    start = time.monotonic()
    if options.only is not None:
        group = options.only // GROUP_SIZE
        query, _ = query_of(seed, options.only, random_tables(Random(f"group {seed} {group}")))
        print(*query.rendered(), sep="\n")
        outcome = run(seed, (group,), fixed=fixed, only=options.only, reduce_seconds=60)
        print(dict(outcome.outcomes), *(finding.text for finding in outcome.findings), sep="\n")
        return 1 if outcome.findings else 0
    count = options.count or (5000 if options.minutes is None else 10**9)
    whole = Run(seed, fixed, options.findings)
    with stop_request.by_signals():
        whole.go(options.processes, -(-count // GROUP_SIZE), options.minutes)
    whole.report(time.monotonic() - start)
    return 1 if whole.outcome.seen or whole.lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
