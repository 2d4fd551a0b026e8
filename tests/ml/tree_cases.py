"""Tree models of every kind, small, and the data to fit and try them with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import xgboost
from sklearn import compose, ensemble, pipeline, preprocessing, tree

NUMBERS = ["a", "b", "c", "constant", "large", "small_range"]
WORDS = [*NUMBERS, "city", "size"]


def make_data(seed: int, rows: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    data = pd.DataFrame(
        {
            "a": random.normal(size=rows),
            "b": np.where(random.random(rows) < 0.3, 0.0, random.normal(size=rows)),
            "c": random.integers(0, 6, rows).astype(float),
            "constant": np.full(rows, 7.0),
            "large": random.normal(1e6, 1e5, rows),
            "small_range": 5 + random.normal(size=rows) * 1e-6,
        }
    )
    for name in ("a", "b", "c"):
        data[f"{name}_holes"] = data[name].where(random.random(rows) > 0.15)
    data["city"] = pd.Categorical(random.choice(["Oslo", "Bergen", "Bodo", "Moss"], rows))
    data.loc[random.random(rows) < 0.1, "city"] = np.nan
    data["size"] = pd.Categorical(random.choice([10, 20, 40], rows))
    return data


TRAIN, TEST = make_data(0, 400), make_data(1, 300)
TEST.loc[:5, ["a", "b", "c"]] = [[1e9, -1e9, 3], [0, 0, 0], [-0.0, 1e-40, 5]] * 2
SCORE = (TRAIN.a + (TRAIN.c % 2) * TRAIN.b + (TRAIN.city == "Oslo") + 0.5 * (TRAIN["size"] == 20)).to_numpy()
POSITIVE = np.exp(SCORE / 3)
BINARY = SCORE > 0.3
YES = np.where(BINARY, "yes", "no")
CLASSES = np.array(["low", "middle", "high"])[np.digitize(SCORE, [-0.3, 0.9])]
CODES = np.digitize(SCORE, [-0.3, 0.9])
SEVERAL = np.stack([SCORE, -2 * SCORE, SCORE**2], axis=1)
GROUPS = [40] * 10

#: What a case is fitted on and tried with: numbers, numbers with holes, and also categories.
CLEAN, HOLES, FRAME = "clean", "holes", "frame"


def frame(data: pd.DataFrame, kind: str) -> pd.DataFrame:
    if kind == CLEAN:
        return data[NUMBERS]
    made = data[WORDS if kind == FRAME else NUMBERS].copy()
    for name in ("a", "b", "c"):
        made[name] = data[f"{name}_holes"]
    return made


Case = tuple[str, str, Callable[[pd.DataFrame], Any]]


def sklearn_cases() -> list[Case]:
    few: dict[str, Any] = {"n_estimators": 7, "random_state": 0}
    cases: list[Case] = []
    for depth in (2, 7, None):
        for target, name in ((YES, "two"), (CLASSES, "three"), (BINARY, "bool"), (np.ones(400), "one")):
            cases += [
                (
                    f"tree {name} {depth}",
                    HOLES,
                    lambda x, y=target, d=depth: tree.DecisionTreeClassifier(max_depth=d, random_state=0).fit(
                        x, y
                    ),
                ),
                (
                    f"forest {name} {depth}",
                    HOLES,
                    lambda x, y=target, d=depth: ensemble.RandomForestClassifier(max_depth=d, **few).fit(
                        x, y
                    ),
                ),
            ]
        for target, name in ((SCORE, "number"), (SEVERAL, "numbers")):
            cases += [
                (
                    f"tree {name} {depth}",
                    HOLES,
                    lambda x, y=target, d=depth: tree.DecisionTreeRegressor(max_depth=d, random_state=0).fit(
                        x, y
                    ),
                ),
                (
                    f"forest {name} {depth}",
                    HOLES,
                    lambda x, y=target, d=depth: ensemble.RandomForestRegressor(max_depth=d, **few).fit(x, y),
                ),
            ]
    cases += [
        ("extra tree", CLEAN, lambda x: tree.ExtraTreeClassifier(random_state=0).fit(x, CLASSES)),
        ("extra tree number", CLEAN, lambda x: tree.ExtraTreeRegressor(random_state=0).fit(x, SCORE)),
        ("extra trees", HOLES, lambda x: ensemble.ExtraTreesClassifier(**few).fit(x, CLASSES)),
        ("extra trees numbers", HOLES, lambda x: ensemble.ExtraTreesRegressor(**few).fit(x, SEVERAL)),
        ("forest of 300", HOLES, lambda x: ensemble.RandomForestClassifier(300, max_depth=3).fit(x, YES)),
        (
            "absolute error",
            CLEAN,
            lambda x: ensemble.RandomForestRegressor(criterion="absolute_error", max_depth=4, **few).fit(
                x, SCORE
            ),
        ),
        ("isolation", HOLES, lambda x: ensemble.IsolationForest(max_features=0.6, **few).fit(x)),
        (
            "pipeline",
            CLEAN,
            lambda x: pipeline.make_pipeline(
                preprocessing.StandardScaler(), ensemble.RandomForestClassifier(max_depth=6, **few)
            ).fit(x, YES),
        ),
        (
            "boosting zero",
            CLEAN,
            lambda x: ensemble.GradientBoostingClassifier(init="zero", n_estimators=5).fit(x, CLASSES),
        ),
        (
            "boosting three",
            CLEAN,
            lambda x: ensemble.GradientBoostingClassifier(n_estimators=5).fit(x, CLASSES),
        ),
        (
            "histogram two",
            FRAME,
            lambda x: ensemble.HistGradientBoostingClassifier(max_iter=6).fit(x, YES),
        ),
        (
            "histogram three",
            FRAME,
            lambda x: ensemble.HistGradientBoostingClassifier(max_iter=6).fit(x, CLASSES),
        ),
        (
            "histogram categories",
            HOLES,
            lambda x: ensemble.HistGradientBoostingRegressor(max_iter=6, categorical_features=["c"]).fit(
                x, SCORE
            ),
        ),
        (
            "forest of a scaled target",
            CLEAN,
            lambda x: compose.TransformedTargetRegressor(
                ensemble.RandomForestRegressor(max_depth=4, **few), transformer=preprocessing.StandardScaler()
            ).fit(x, SCORE),
        ),
        (
            "signs",
            HOLES,
            lambda x: pipeline.make_pipeline(
                preprocessing.FunctionTransformer(np.sign), ensemble.HistGradientBoostingRegressor(max_iter=6)
            ).fit(x, SCORE),
        ),
        (
            "histogram of booleans",
            CLEAN,
            lambda x: ensemble.HistGradientBoostingRegressor(max_iter=6, categorical_features=["c"]).fit(
                x.assign(c=x["c"] > 2), SCORE
            ),
        ),
    ]
    for loss in ("log_loss", "exponential"):
        cases.append(
            (
                f"boosting {loss}",
                CLEAN,
                lambda x, loss=loss: ensemble.GradientBoostingClassifier(loss=loss, n_estimators=5).fit(
                    x, YES
                ),
            )
        )
    for loss in ("squared_error", "absolute_error", "huber", "quantile"):
        cases.append(
            (
                f"boosting {loss}",
                CLEAN,
                lambda x, loss=loss: ensemble.GradientBoostingRegressor(loss=loss, n_estimators=5).fit(
                    x, SCORE
                ),
            )
        )
    for loss in ("squared_error", "absolute_error", "gamma", "poisson", "quantile"):
        cases.append(
            (
                f"histogram {loss}",
                FRAME,
                lambda x, loss=loss: ensemble.HistGradientBoostingRegressor(
                    loss=loss, quantile=0.3 if loss == "quantile" else None, max_iter=6
                ).fit(x, POSITIVE),
            )
        )
    return cases


def lightgbm_cases() -> list[Case]:
    few: dict[str, Any] = {"n_estimators": 6, "verbose": -1, "n_jobs": 1}
    cases: list[Case] = []
    for name, options in {
        "plain": {},
        "zeros": {"zero_as_missing": True},
        "nothing missing": {"use_missing": False},
        "dart": {"boosting_type": "dart"},
        "forest": {"boosting_type": "rf", "subsample_freq": 1, "subsample": 0.5},
        "many leaves": {"num_leaves": 200, "min_child_samples": 2},
    }.items():
        for kind in (CLEAN, HOLES, FRAME):
            cases.append(
                (
                    f"lightgbm {name} {kind}",
                    kind,
                    lambda x, o=options: lightgbm.LGBMRegressor(**few, **o).fit(x, SCORE),
                )
            )
        cases += [
            (
                f"lightgbm {name} two",
                FRAME,
                lambda x, o=options: lightgbm.LGBMClassifier(**few, **o).fit(x, YES),
            ),
            (
                f"lightgbm {name} three",
                HOLES,
                lambda x, o=options: lightgbm.LGBMClassifier(**few, **o).fit(x, CLASSES),
            ),
        ]
    for objective in "poisson gamma tweedie mape huber fair quantile regression_l1 cross_entropy cross_entropy_lambda".split():
        target = BINARY * 1.0 if objective.startswith("cross") else POSITIVE
        cases.append(
            (
                f"lightgbm {objective}",
                HOLES,
                lambda x, o=objective, y=target: lightgbm.train(
                    {"objective": o, "verbose": -1, "num_threads": 1}, lightgbm.Dataset(x, y), 5
                ),
            )
        )
    cases += [
        (
            "lightgbm one against rest",
            HOLES,
            lambda x: lightgbm.LGBMClassifier(**few, objective="multiclassova", sigmoid=0.7).fit(x, CLASSES),
        ),
        (
            "lightgbm lambda two",
            HOLES,
            lambda x: lightgbm.LGBMClassifier(**few, objective="cross_entropy_lambda").fit(x, BINARY * 1),
        ),
        (
            "lightgbm keys as names",
            CLEAN,
            lambda x: lightgbm.LGBMRegressor(**few).fit(
                x.set_axis(
                    ["threshold", "leaf_value", "num_leaves", "left_child", "tree", "objective"], axis=1
                ),
                SCORE,
            ),
        ),
        ("lightgbm root", HOLES, lambda x: lightgbm.LGBMRegressor(**few, reg_sqrt=True).fit(x, POSITIVE)),
        ("lightgbm ranks", HOLES, lambda x: lightgbm.LGBMRanker(**few).fit(x, CODES, group=GROUPS)),
        (
            "lightgbm booster of categories",
            HOLES,
            lambda x: lightgbm.train(
                {"objective": "multiclass", "num_class": 3, "verbose": -1, "num_threads": 1},
                lightgbm.Dataset(x, CODES, categorical_feature=["c"]),
                5,
            ),
        ),
        (
            "lightgbm own objective",
            CLEAN,
            lambda x: lightgbm.LGBMRegressor(**few, objective=lambda y, p: (p - y, np.ones_like(y))).fit(
                x, SCORE
            ),
        ),
    ]
    return cases


def xgboost_cases() -> list[Case]:
    few: dict[str, Any] = {"n_estimators": 6, "n_jobs": 1}
    cases: list[Case] = []

    def trained(objective: str, booster: str, x: pd.DataFrame) -> Any:
        kind, name = objective.split(":")
        target = BINARY * 1.0 if kind == "binary" or name == "logistic" else POSITIVE
        target = CODES if kind in ("multi", "rank") else target
        data = xgboost.DMatrix(x, target, qid=np.arange(400) // 40 if kind == "rank" else None)
        if name == "aft":
            data.set_float_info("label_lower_bound", target)
            data.set_float_info("label_upper_bound", target)
        options = {"objective": objective, "booster": booster, "rate_drop": 0.4, "nthread": 1}
        options |= {"num_class": 3} if kind == "multi" else {}
        options |= {"quantile_alpha": 0.3} if name == "quantileerror" else {}
        return xgboost.train(options, data, 5)

    for objective in (
        "reg:squarederror reg:squaredlogerror reg:logistic reg:pseudohubererror reg:absoluteerror reg:quantileerror "
        "binary:logistic binary:logitraw binary:hinge count:poisson reg:gamma reg:tweedie survival:cox survival:aft "
        "multi:softmax multi:softprob rank:ndcg rank:pairwise rank:map"
    ).split():
        for booster in (
            ("gbtree", "dart") if objective in ("binary:logistic", "multi:softprob") else ("gbtree",)
        ):
            if objective == "rank:map":
                continue
            cases.append(
                (
                    f"xgboost {objective} {booster}",
                    HOLES,
                    lambda x, o=objective, b=booster: trained(o, b, x),
                )
            )
    cases += [
        ("xgboost two", HOLES, lambda x: xgboost.XGBClassifier(**few, base_score=0.2).fit(x, BINARY * 1)),
        ("xgboost three", HOLES, lambda x: xgboost.XGBClassifier(**few).fit(x, CODES)),
        (
            "xgboost raw",
            HOLES,
            lambda x: xgboost.XGBClassifier(**few, objective="binary:logitraw").fit(x, BINARY * 1),
        ),
        (
            "xgboost hinge",
            HOLES,
            lambda x: xgboost.XGBClassifier(**few, objective="binary:hinge").fit(x, BINARY * 1),
        ),
        (
            "xgboost categories",
            FRAME,
            lambda x: xgboost.XGBRegressor(**few, enable_categorical=True, max_depth=9).fit(x, SCORE),
        ),
        (
            "xgboost categories two",
            FRAME,
            lambda x: xgboost.XGBClassifier(**few, enable_categorical=True).fit(x, BINARY * 1),
        ),
        ("xgboost numbers", HOLES, lambda x: xgboost.XGBRegressor(**few).fit(x, SEVERAL)),
        (
            "xgboost vectors",
            HOLES,
            lambda x: xgboost.XGBRegressor(**few, multi_strategy="multi_output_tree").fit(x, SEVERAL),
        ),
        ("xgboost missing", CLEAN, lambda x: xgboost.XGBRegressor(**few, missing=0.0).fit(x, SCORE)),
        ("xgboost missing -999", CLEAN, lambda x: xgboost.XGBRegressor(**few, missing=-999).fit(x, SCORE)),
        ("xgboost forest", HOLES, lambda x: xgboost.XGBRFClassifier(**few).fit(x, BINARY * 1)),
        ("xgboost ranks", HOLES, lambda x: xgboost.XGBRanker(**few).fit(x, CODES, group=GROUPS)),
        ("xgboost deep", HOLES, lambda x: xgboost.XGBRegressor(**few, max_depth=14).fit(x, SCORE)),
        (
            "xgboost stopped early",
            HOLES,
            lambda x: xgboost.XGBRegressor(n_estimators=50, early_stopping_rounds=2).fit(
                x, SCORE, eval_set=[(x, SCORE[::-1])], verbose=False
            ),
        ),
    ]
    return cases


CASES = {case[0]: case for case in [*sklearn_cases(), *lightgbm_cases(), *xgboost_cases()]}
