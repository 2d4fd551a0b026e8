"""BEGIN, COMMIT and ROLLBACK."""

from __future__ import annotations

from tqp.planner.syntax.clauses import Transaction
from tqp.result import Result
from tqp.statements.execution import Execution, done


def transaction(execution: Execution) -> Result:
    """Begins or ends the transaction of the connection, which all its threads share."""
    clauses, catalog = execution.command.clauses, execution.session.catalog
    assert isinstance(clauses, Transaction)
    if clauses.action == "begin":
        catalog.begin(clauses.only_reads)
    else:
        catalog.end(keep=clauses.action == "commit")
    return done()
