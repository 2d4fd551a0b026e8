"""The table of supported classes: the one place that says which converter takes which. The documentation prints it."""

from __future__ import annotations

from tqp.ml.conversion import Entry
from tqp.ml.sklearn_linear import linear_classifier, linear_regressor, logistic, multilayer_perceptron

_REGRESSORS = "LinearRegression Ridge RidgeCV Lasso LassoCV ElasticNet ElasticNetCV LinearSVR SGDRegressor"
_CLASSIFIERS = "LinearSVC SGDClassifier RidgeClassifier RidgeClassifierCV Perceptron"

#: By `library.Class`; a subclass is converted as the class it is derived from.
SUPPORTED: dict[str, Entry] = {
    **{f"sklearn.{name}": Entry(linear_regressor, False) for name in _REGRESSORS.split()},
    **{f"sklearn.{name}": Entry(linear_classifier, False) for name in _CLASSIFIERS.split()},
    "sklearn.LogisticRegression": Entry(logistic, False),
    "sklearn.LogisticRegressionCV": Entry(logistic, False),
    "sklearn.MLPClassifier": Entry(multilayer_perceptron, False),
    "sklearn.MLPRegressor": Entry(multilayer_perceptron, False),
}
