"""Gradients through SQL: against torch written by hand, by finite differences, and what has none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import tqp
from tqp.planner.optimizer import REQUIRED, RULES
from tqp.planner.physical.planner import PHYSICAL_RULES

ROWS, GROUPS = 60, 5


class Data:
    """Two tables with a join key, their float columns leaves of autograd."""

    def __init__(self) -> None:
        random = torch.Generator().manual_seed(0)

        def numbers(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=random, dtype=torch.float64)

        self.x = numbers(ROWS).requires_grad_()
        self.y = (numbers(ROWS).abs() + 0.5).requires_grad_()
        self.w = numbers(GROUPS - 1).requires_grad_()
        self.e = numbers(ROWS, 3).float().requires_grad_()
        self.k = torch.randint(0, GROUPS, (ROWS,), generator=random)
        self.fixed = numbers(ROWS)
        self.words = np.array(["a", "b", "c"])[torch.randint(0, 3, (ROWS,), generator=random).numpy()]

    def register(self, con: tqp.Connection) -> None:
        rows = {"id": torch.arange(ROWS), "k": self.k, "x": self.x, "y": self.y, "f": self.fixed, "e": self.e}
        con.register("t", {**rows, "word": self.words})
        con.register("s", {"k": torch.arange(GROUPS - 1), "w": self.w})
        con.register("none", {"k": torch.arange(0), "z": torch.zeros(0, requires_grad=True)})


@pytest.fixture
def con() -> Iterator[tqp.Connection]:
    with tqp.connect(threads=2) as connection:
        yield connection


@pytest.fixture
def data(con: tqp.Connection) -> Data:
    made = Data()
    made.register(con)
    return made


def by_group(d: Data, values: Tensor) -> Tensor:
    return torch.zeros(GROUPS, dtype=torch.float64).index_add(0, d.k, values)


def weights(d: Data) -> Tensor:
    """The weight of each row's key, 0 where there is none."""
    return torch.cat([d.w, torch.zeros(1, dtype=torch.float64)])[d.k]


CASES: list[tuple[str, Callable[[Data], Tensor]]] = [
    ("SELECT x * y + 2 * x - f / y AS v FROM t ORDER BY id", lambda d: d.x * d.y + 2 * d.x - d.fixed / d.y),
    ("SELECT sqrt(y) + exp(x) - ln(y) + abs(x) + power(y, 2.5) AS v FROM t ORDER BY id",
     lambda d: d.y.sqrt() + d.x.exp() - d.y.log() + d.x.abs() + d.y**2.5),
    ("SELECT tanh(x) + sin(x) * cos(y) - degrees(atan(x)) AS v FROM t ORDER BY id",
     lambda d: d.x.tanh() + d.x.sin() * d.y.cos() - torch.rad2deg(d.x.atan())),
    ("SELECT x FROM t WHERE f > 0 AND word <> 'a' ORDER BY f DESC LIMIT 7",
     lambda d: d.x[(keep := ((d.fixed > 0) & torch.from_numpy(d.words != "a")).nonzero()[:, 0])][
         d.fixed[keep].argsort(descending=True)][:7]),
    ("SELECT CASE WHEN f > 0 THEN x * y WHEN k = 1 THEN 3 ELSE -y END AS v FROM t ORDER BY id",
     lambda d: torch.where(d.fixed > 0, d.x * d.y, torch.where(d.k == 1, torch.tensor(3.0).double(), -d.y))),
    ("SELECT CASE WHEN f > 0 THEN x ELSE 0 END AS v FROM t ORDER BY id",
     lambda d: torch.where(d.fixed > 0, d.x, 0.0)),
    ("SELECT greatest(x, f, 0) - least(x, y) AS v FROM t ORDER BY id",
     lambda d: torch.maximum(d.x, d.fixed).clamp(min=0) - torch.minimum(d.x, d.y)),
    ("SELECT sum(x * y) AS v FROM t", lambda d: (d.x * d.y).sum()[None]),
    ("SELECT k, sum(x * y) AS v FROM t GROUP BY k ORDER BY k", lambda d: by_group(d, d.x * d.y)),
    ("SELECT avg(x) FILTER (WHERE f > 0) AS v FROM t GROUP BY word ORDER BY word",
     lambda d: torch.stack([d.x[torch.from_numpy(d.words == w) & (d.fixed > 0)].mean() for w in "abc"])),
    ("SELECT count(*) * sum(x) / count(x) + min(y) - max(x) AS v FROM t",
     lambda d: (d.x.sum() + d.y.min() - d.x.max())[None]),
    ("SELECT k, max(x) - min(y) AS v FROM t GROUP BY k ORDER BY k",
     lambda d: torch.stack([d.x[d.k == k].max() - d.y[d.k == k].min() for k in range(GROUPS)])),
    ("SELECT x * w AS v FROM t JOIN s USING (k) ORDER BY id",
     lambda d: (d.x * weights(d))[d.k < GROUPS - 1]),
    ("SELECT x * coalesce(w, y) AS v FROM t LEFT JOIN s USING (k) ORDER BY id",
     lambda d: d.x * torch.where(d.k < GROUPS - 1, weights(d), d.y)),
    ("SELECT k, sum(w * x) AS v FROM s JOIN t USING (k) WHERE f < 1 GROUP BY k ORDER BY k",
     lambda d: by_group(d, torch.where(d.fixed < 1, d.x * weights(d), 0.0))[:-1]),
    ("SELECT sum(a.x * b.y) AS v FROM t a JOIN t b ON a.k = b.k AND a.f < b.f",
     lambda d: (d.x[:, None] * d.y * ((d.k[:, None] == d.k) & (d.fixed[:, None] < d.fixed))).sum()[None]),
    ("SELECT sum(x * w) AS v FROM t, s WHERE t.k > s.k",
     lambda d: (d.x[:, None] * d.w * (d.k[:, None] > torch.arange(GROUPS - 1))).sum()[None]),
    ("SELECT x / (SELECT sum(y) FROM t) AS v FROM t ORDER BY id", lambda d: d.x / d.y.sum()),
    ("SELECT x - (SELECT avg(x) FROM t b WHERE b.k = t.k) AS v FROM t ORDER BY id",
     lambda d: d.x - (by_group(d, d.x) / by_group(d, torch.ones_like(d.x)))[d.k]),
    ("SELECT x FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.k = t.k) ORDER BY id",
     lambda d: d.x[d.k < GROUPS - 1]),
    ("SELECT v FROM (SELECT 0 AS o, id, x AS v FROM t UNION ALL SELECT 1, k, w FROM s) q ORDER BY o, id",
     lambda d: torch.cat([d.x, d.w])),
    ("SELECT sum(v * v) AS v FROM (SELECT k, sum(x) AS v FROM t GROUP BY k) q",
     lambda d: (by_group(d, d.x) ** 2).sum()[None]),
    ("WITH q AS (SELECT k, avg(x) AS m, any_value(k) FROM t GROUP BY k) SELECT sum((x - m) * (x - m)) AS v FROM t JOIN q USING (k)",
     lambda d: ((d.x - (by_group(d, d.x) / by_group(d, torch.ones_like(d.x)))[d.k]) ** 2).sum()[None]),
    ("SELECT array_inner_product(e, [1, 2, 3]::FLOAT[3]) + array_distance(e, [0, 1, 0]::FLOAT[3]) AS v FROM t ORDER BY id",
     lambda d: d.e @ torch.tensor([1.0, 2, 3]) + (d.e - torch.tensor([0.0, 1, 0])).norm(dim=1)),
    ("SELECT array_cosine_similarity(a.e, b.e) AS v FROM t a JOIN t b ON a.id = b.id + 1 ORDER BY a.id",
     lambda d: nn.functional.cosine_similarity(d.e[1:], d.e[:-1])),
    ("SELECT (x::FLOAT)::DOUBLE AS v FROM t ORDER BY id", lambda d: d.x.float().double()),
    ("SELECT sum(CASE WHEN k > 0 THEN x / k ELSE y END) AS v FROM t",
     lambda d: torch.where(d.k > 0, d.x / d.k.clamp(min=1), d.y).sum()[None]),
    ("SELECT sum(x / nullif(k, 0) + ln(nullif(k, 0)) * y) AS v FROM t",
     lambda d: ((d.x / d.k.clamp(min=1) + d.k.clamp(min=1).log() * d.y) * (d.k > 0)).sum()[None]),
    ("SELECT sum(x / w) AS v FROM t LEFT JOIN s USING (k)",
     lambda d: (d.x[d.k < GROUPS - 1] / d.w[d.k[d.k < GROUPS - 1]]).sum()[None]),
    ("SELECT sum(CASE WHEN k > 0 THEN sqrt(y * k) + power(y * k, 0.5 + k / k) - 1 / (x * k) END) AS v FROM t",
     lambda d: (d.y * d.k)[d.k > 0].sqrt().sum()[None] + (d.y * d.k)[d.k > 0].pow(1.5).sum() - (1 / (d.x * d.k)[d.k > 0]).sum()),
    ("SELECT sum(CASE WHEN k > 0 THEN array_cosine_similarity(e, array_value(k::FLOAT, k::FLOAT, 0::FLOAT)) END) AS v FROM t",
     lambda d: nn.functional.cosine_similarity(d.e[d.k > 0], torch.tensor([1.0, 1.0, 0.0])[None]).sum()[None]),
    ("SELECT sum(z) AS n, sum(x) AS v FROM t LEFT JOIN none USING (k)", lambda d: d.x.sum()[None]),
]  # fmt: skip


@pytest.mark.parametrize(("query", "by_hand"), CASES, ids=[query for query, _ in CASES])
def test_values_and_gradients_are_those_of_torch(
    con: tqp.Connection, data: Data, query: str, by_hand: Callable[[Data], Tensor]
) -> None:
    program = con.compile(query, differentiable=True)
    leaves = [data.x, data.y, data.w, data.e]
    for _ in range(2):  # as it is interpreted at first, and compiled
        found = program()["v" if "AS v" in query or "v FROM" in query else "x"].cpu()
        wanted = by_hand(data)
        torch.testing.assert_close(found, wanted, check_dtype=False)
        seed = torch.linspace(-1, 1, wanted.numel(), dtype=torch.float64) + 0.1
        ours = torch.autograd.grad((found * seed).sum(), leaves, allow_unused=True)
        theirs = torch.autograd.grad((wanted * seed).sum(), leaves, allow_unused=True)
        for mine, other, leaf in zip(ours, theirs, leaves, strict=True):
            zero = torch.zeros_like(leaf)
            torch.testing.assert_close(zero if mine is None else mine, zero if other is None else other)


def test_gradients_agree_with_finite_differences(con: tqp.Connection, data: Data) -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    con.register_model("net", net, inputs=["x", "w"])
    program = con.compile(
        "SELECT t.k, sum(net(x, w) * y) / count(*) AS v FROM t JOIN s USING (k) GROUP BY t.k ORDER BY t.k",
        differentiable=True,
    )
    leaves = [data.x, data.y, data.w, *net.parameters()]
    assert torch.autograd.gradcheck(lambda *_: program()["v"], leaves)


def test_rows_that_case_leaves_out_are_not_in_gradients_of_a_model(con: tqp.Connection, data: Data) -> None:
    net = nn.Linear(1, 1).double()
    con.register_model("net", net, inputs=["a"])
    program = con.compile("SELECT sum(CASE WHEN k > 0 THEN net(f / k) END) AS v FROM t", differentiable=True)
    found = torch.autograd.grad(program()["v"], [*net.parameters()])
    ratios = (data.fixed / data.k)[data.k > 0]
    torch.testing.assert_close(found[0], ratios.sum()[None, None])
    assert found[1].tolist() == [len(ratios)]


JOINED = """
    SELECT t.k, sum(x * coalesce(w, y)) + avg(c.v) AS v FROM t LEFT JOIN s USING (k)
    JOIN (SELECT word, max(y) AS v FROM t GROUP BY word) c USING (word)
    WHERE EXISTS (SELECT 1 FROM t b WHERE b.k = t.k AND b.word = t.word AND b.id <> t.id)
    GROUP BY t.k ORDER BY t.k"""


@pytest.mark.parametrize("rule", [*(name for name, _ in RULES if name not in REQUIRED), *PHYSICAL_RULES])
def test_gradients_do_not_depend_on_the_plan(data: Data, con: tqp.Connection, rule: str) -> None:
    leaves = [data.x, data.y, data.w]
    wanted = torch.autograd.grad(con.compile(JOINED, differentiable=True)()["v"].sum(), leaves)
    with tqp.connect(threads=2, batch_rows=2, disabled_rules=[rule]) as other:
        data.register(other)
        found = torch.autograd.grad(other.compile(JOINED, differentiable=True)()["v"].sum(), leaves)
    torch.testing.assert_close(found, wanted)


@pytest.mark.cpu
def test_a_model_stays_what_it_is(con: tqp.Connection, data: Data) -> None:
    net = nn.Linear(1, 1).double()
    con.register_model("net", net, inputs=["x"])
    program = con.compile("SELECT avg(net(f)) AS v, count(*) AS n, sum(k) AS s FROM t", differentiable=True)
    assert [id(each) for each in program.parameters()] == [id(each) for each in net.parameters()]
    assert "net(" in program.code
    made = program()
    assert made["n"].tolist() == [ROWS] and not made["n"].requires_grad and made["s"].dtype is torch.int64
    with torch.no_grad():
        assert not program()["v"].requires_grad
        before = program()["v"].clone()
        net.bias += 1
    torch.testing.assert_close(program()["v"], before + 1)
    made["v"].sum().backward()
    assert torch.allclose(net.weight.grad, data.fixed.mean()) and torch.allclose(
        net.bias.grad, torch.ones(1).double()
    )  # type: ignore[arg-type]


def test_many_rows_are_one_batch_for_the_model(con: tqp.Connection) -> None:
    seen = []

    class Noted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, features: Tensor) -> Tensor:
            seen.append(features.shape[0])
            return features[:, 0] * self.scale

    con.register("many", {"x": torch.rand(200_000)})
    con.register_model("noted", Noted(), inputs=["x"])
    con.compile("SELECT sum(noted(x)) AS v FROM many", differentiable=True)()["v"].backward()
    assert seen[-1] == 200_000


def test_null_comes_with_its_validity(con: tqp.Connection, data: Data) -> None:
    made = con.compile("SELECT w, x FROM t LEFT JOIN s USING (k) ORDER BY id", differentiable=True)()
    assert made["w__validity"].tolist() == (data.k < GROUPS - 1).tolist()
    assert "x__validity" not in made


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT round(x) FROM t", r"round \(round\(x\)"),
        ("SELECT floor(x) FROM t", "floor"),
        ("SELECT sign(x) FROM t", "sign"),
        ("SELECT x::INTEGER FROM t", r"CAST\(x AS INTEGER\)"),
        ("SELECT x::DECIMAL(9, 2) FROM t", r"CAST\(x AS DECIMAL"),
        ("SELECT x FROM t ORDER BY x", r"ORDER BY \(x\)"),
        ("SELECT x FROM t ORDER BY x + y LIMIT 3", r"ORDER BY \(x \+ y"),
        ("SELECT y FROM t WHERE x > 0", "WHERE x > 0"),
        ("SELECT x % 2 FROM t", "modulo"),
        ("SELECT count(*) FROM t GROUP BY x", r"GROUP BY \(x\)"),
        ("SELECT DISTINCT x FROM t", r"GROUP BY \(x\)"),
        ("SELECT sum(DISTINCT x) FROM t", "DISTINCT"),
        ("SELECT stddev(x) FROM t", "standard deviations"),
        ("SELECT median(x) FROM t", "median"),
        ("SELECT t.x FROM t JOIN s ON t.x = s.w", "ordered_bits"),
        ("SELECT t.x FROM t JOIN s ON t.x < s.w", "inner join"),
        ("SELECT CASE WHEN x > 0 THEN x ELSE y END FROM t", "CASE WHEN x > 0"),
        ("SELECT x IN (1, 2) FROM t", "x IN"),
        ("SELECT x::VARCHAR FROM t", "is VARCHAR"),
        ("SELECT word, sum(x) FROM t GROUP BY word", '"word" is VARCHAR'),
        ("SELECT net(x) FROM t WHERE net(x) > 0", "WHERE net"),
        ("SELECT sum(x) FROM t HAVING sum(x) > 0", "WHERE sum"),
        ("SELECT sum(x) OVER (ORDER BY id) FROM t", "window functions"),
    ],
)
def test_what_has_no_gradient_is_refused_when_compiled(
    con: tqp.Connection, data: Data, query: str, message: str
) -> None:
    con.register_model("net", nn.Linear(1, 1), inputs=["x"])
    con.sql(query)  # without gradients it runs
    with pytest.raises(tqp.UnsupportedError, match=message):
        con.compile(query, differentiable=True)


def test_a_query_without_a_gradient_is_refused(con: tqp.Connection, data: Data) -> None:
    with pytest.raises(tqp.BindError, match="no output has a gradient"):
        con.compile("SELECT sum(f) FROM t", differentiable=True)
    frozen = nn.Linear(1, 1).requires_grad_(False)
    con.register_model("frozen", frozen, inputs=["f"])
    with pytest.raises(tqp.BindError, match="no output has a gradient"):
        con.compile("SELECT sum(frozen(f)) FROM t", differentiable=True)
    with pytest.raises(tqp.BindError, match="EXPLAIN"):
        con.compile("EXPLAIN SELECT x FROM t", differentiable=True)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_training_through_a_join(optimizer: Callable[..., torch.optim.Optimizer]) -> None:
    """Customers have features, invoices say only what each order cost: the loss is an aggregate over the join."""
    random = torch.Generator().manual_seed(1)
    customers, orders = 200, 2_000
    age, income = (torch.rand(customers, generator=random) for _ in range(2))
    customer = torch.randint(0, customers, (orders,), generator=random)
    paid = (3 * age - 2 * income + 0.5)[customer]
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    with tqp.connect() as con:
        con.register("customers", {"id": torch.arange(customers), "age": age, "income": income})
        con.register("orders", {"customer": customer, "paid": paid})
        con.register_model("spend", model, inputs=["age", "income"])
        loss = con.compile(
            """SELECT avg(error * error) AS loss FROM (
                 SELECT spend(age, income) - paid AS error
                 FROM orders JOIN customers ON orders.customer = customers.id) q""",
            differentiable=True,
        )
        stepping = optimizer(loss.parameters(), lr=0.3 if optimizer is torch.optim.SGD else 0.05)
        for _ in range(300):
            stepping.zero_grad()
            loss()["loss"].backward()
            stepping.step()
        wanted = torch.tensor([[3.0, -2.0]])
        torch.testing.assert_close(model.weight.detach(), wanted, atol=0.05, rtol=0)
        ((mean,),) = con.sql(  # the trained model, in a query without gradients
            "SELECT max(abs(spend(age, income) - paid)) FROM orders JOIN customers ON orders.customer = customers.id"
        ).fetchall()
        assert mean < 0.05
