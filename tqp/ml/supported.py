"""The table of supported classes: the one place that says which converter takes which. The documentation prints it."""

from __future__ import annotations

from tqp.ml.conversion import Entry
from tqp.ml.sklearn import bayes, composition, encoders, neighbors, scalers, svm
from tqp.ml.sklearn.linear import (
    generalized_linear_regressor,
    linear_classifier,
    linear_regressor,
    logistic,
    multilayer_perceptron,
)
from tqp.ml.sklearn.trees import (
    CLASSIFIERS,
    REGRESSORS,
    forest_classifier,
    forest_regressor,
    gradient_boosting,
    hist_gradient_boosting,
    isolation_forest,
)
from tqp.ml.trees.boosted import lightgbm_model, xgboost_model

_REGRESSORS = """
    LinearRegression Ridge RidgeCV Lasso LassoCV ElasticNet ElasticNetCV LinearSVR SGDRegressor
    MultiTaskLasso MultiTaskLassoCV MultiTaskElasticNet MultiTaskElasticNetCV Lars LarsCV LassoLars LassoLarsCV LassoLarsIC
    OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV BayesianRidge ARDRegression HuberRegressor QuantileRegressor
    TheilSenRegressor
"""
_GENERALIZED = "PoissonRegressor GammaRegressor TweedieRegressor"
_CLASSIFIERS = "LinearSVC SGDClassifier RidgeClassifier RidgeClassifierCV Perceptron"
_LOGISTIC = "LogisticRegression LogisticRegressionCV LinearDiscriminantAnalysis"

_LIGHTGBM = "LGBMClassifier LGBMRegressor LGBMRanker LGBMModel Booster"
_XGBOOST = "XGBClassifier XGBRegressor XGBRanker XGBRFClassifier XGBRFRegressor XGBModel Booster"

#: By `library.Class`; a subclass is converted as the class it is derived from.
SUPPORTED: dict[str, Entry] = {
    **{f"sklearn.{name}": Entry(linear_regressor, False) for name in _REGRESSORS.split()},
    **{f"sklearn.{name}": Entry(linear_classifier, False) for name in _CLASSIFIERS.split()},
    **{f"sklearn.{name}": Entry(logistic, False) for name in _LOGISTIC.split()},
    **{f"sklearn.{name}": Entry(generalized_linear_regressor, False) for name in _GENERALIZED.split()},
    "sklearn.MLPClassifier": Entry(multilayer_perceptron, False),
    "sklearn.MLPRegressor": Entry(multilayer_perceptron, False),
    "sklearn.SVC": Entry(svm.support_vector_classifier, False),
    "sklearn.NuSVC": Entry(svm.support_vector_classifier, False),
    "sklearn.SVR": Entry(svm.support_vector_regressor, False),
    "sklearn.NuSVR": Entry(svm.support_vector_regressor, False),
    "sklearn.MultinomialNB": Entry(bayes.multinomial, False),
    "sklearn.ComplementNB": Entry(bayes.complement, False),
    "sklearn.BernoulliNB": Entry(bayes.bernoulli, False),
    "sklearn.GaussianNB": Entry(bayes.gaussian, False),
    "sklearn.CategoricalNB": Entry(bayes.categorical, False),
    "sklearn.KMeans": Entry(neighbors.k_means, False, transformer=neighbors.k_means_transformer),
    "sklearn.MiniBatchKMeans": Entry(neighbors.k_means, False, transformer=neighbors.k_means_transformer),
    "sklearn.KNeighborsClassifier": Entry(neighbors.neighbours_classifier, False),
    "sklearn.KNeighborsRegressor": Entry(neighbors.neighbours_regressor, False),
    "sklearn.StandardScaler": Entry(scalers.standard_scaler, True),
    "sklearn.RobustScaler": Entry(scalers.standard_scaler, True),
    "sklearn.MinMaxScaler": Entry(scalers.min_max_scaler, True),
    "sklearn.MaxAbsScaler": Entry(scalers.max_abs_scaler, True),
    "sklearn.Normalizer": Entry(scalers.normalizer, True),
    "sklearn.Binarizer": Entry(scalers.binarizer, True),
    "sklearn.PolynomialFeatures": Entry(scalers.polynomial_features, True),
    "sklearn.PCA": Entry(scalers.pca, True),
    "sklearn.IncrementalPCA": Entry(scalers.pca, True),
    "sklearn.TruncatedSVD": Entry(scalers.truncated_svd, True),
    "sklearn.FunctionTransformer": Entry(scalers.function_transformer, True),
    "sklearn.SimpleImputer": Entry(encoders.simple_imputer, True),
    "sklearn.OneHotEncoder": Entry(encoders.one_hot_encoder, True),
    "sklearn.OrdinalEncoder": Entry(encoders.ordinal_encoder, True),
    "sklearn.KBinsDiscretizer": Entry(encoders.bins_discretizer, True),
    "sklearn.ColumnTransformer": Entry(composition.column_transformer, True),
    "sklearn.FeatureUnion": Entry(composition.feature_union, True),
    "sklearn.Pipeline": Entry(composition.pipeline, False, transformer=composition.pipeline_of_transformers),
    "sklearn.TransformedTargetRegressor": Entry(composition.target_regressor, False),
    "sklearn.GridSearchCV": Entry(composition.search, False),
    "sklearn.RandomizedSearchCV": Entry(composition.search, False),
    **{f"sklearn.{name}": Entry(forest_classifier, False) for name in CLASSIFIERS},
    **{f"sklearn.{name}": Entry(forest_regressor, False) for name in REGRESSORS},
    "sklearn.GradientBoostingClassifier": Entry(gradient_boosting, False),
    "sklearn.GradientBoostingRegressor": Entry(gradient_boosting, False),
    "sklearn.HistGradientBoostingClassifier": Entry(hist_gradient_boosting, False),
    "sklearn.HistGradientBoostingRegressor": Entry(hist_gradient_boosting, False),
    "sklearn.IsolationForest": Entry(isolation_forest, False),
    **{f"lightgbm.{name}": Entry(lightgbm_model, False) for name in _LIGHTGBM.split()},
    **{f"xgboost.{name}": Entry(xgboost_model, False) for name in _XGBOOST.split()},
}
