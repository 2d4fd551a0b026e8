"""The table of supported classes: the one place that says which converter takes which. The documentation prints it."""

from __future__ import annotations

from tqp.ml.conversion import Converter
from tqp.ml.sklearn import bayes, composition, encoders, neighbors, scalers, svm
from tqp.ml.sklearn.linear import (
    generalized_linear_regressor,
    linear_classifier,
    linear_regressor,
    logistic,
    multilayer_perceptron,
)
from tqp.ml.sklearn.trees import (
    forest_classifier,
    forest_regressor,
    gradient_boosting,
    hist_gradient_boosting,
    isolation_forest,
)
from tqp.ml.trees.boosted import lightgbm_model, xgboost_model

#: Converters, each with the classes of scikit-learn that it takes.
_SKLEARN: dict[Converter, str] = {
    linear_regressor: """
        LinearRegression Ridge RidgeCV Lasso LassoCV ElasticNet ElasticNetCV LinearSVR SGDRegressor
        MultiTaskLasso MultiTaskLassoCV MultiTaskElasticNet MultiTaskElasticNetCV Lars LarsCV LassoLars LassoLarsCV
        LassoLarsIC OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV BayesianRidge ARDRegression HuberRegressor
        QuantileRegressor TheilSenRegressor
    """,
    linear_classifier: "LinearSVC SGDClassifier RidgeClassifier RidgeClassifierCV Perceptron",
    logistic: "LogisticRegression LogisticRegressionCV LinearDiscriminantAnalysis",
    generalized_linear_regressor: "PoissonRegressor GammaRegressor TweedieRegressor",
    multilayer_perceptron: "MLPClassifier MLPRegressor",
    svm.support_vector_classifier: "SVC NuSVC",
    svm.support_vector_regressor: "SVR NuSVR",
    bayes.multinomial: "MultinomialNB",
    bayes.complement: "ComplementNB",
    bayes.bernoulli: "BernoulliNB",
    bayes.gaussian: "GaussianNB",
    bayes.categorical: "CategoricalNB",
    neighbors.k_means: "KMeans MiniBatchKMeans",
    neighbors.neighbours_classifier: "KNeighborsClassifier",
    neighbors.neighbours_regressor: "KNeighborsRegressor",
    composition.pipeline: "Pipeline",
    composition.target_regressor: "TransformedTargetRegressor",
    composition.search: "GridSearchCV RandomizedSearchCV",
    # Single trees are forests of one.
    forest_classifier: "DecisionTreeClassifier ExtraTreeClassifier RandomForestClassifier ExtraTreesClassifier",
    forest_regressor: "DecisionTreeRegressor ExtraTreeRegressor RandomForestRegressor ExtraTreesRegressor",
    gradient_boosting: "GradientBoostingClassifier GradientBoostingRegressor",
    hist_gradient_boosting: "HistGradientBoostingClassifier HistGradientBoostingRegressor",
    isolation_forest: "IsolationForest",
    # Transformers.
    scalers.scaler: "StandardScaler RobustScaler MinMaxScaler MaxAbsScaler",
    scalers.normalizer: "Normalizer",
    scalers.binarizer: "Binarizer",
    scalers.polynomial_features: "PolynomialFeatures",
    scalers.projection: "PCA IncrementalPCA TruncatedSVD",
    scalers.function_transformer: "FunctionTransformer",
    encoders.simple_imputer: "SimpleImputer",
    encoders.one_hot_encoder: "OneHotEncoder",
    encoders.ordinal_encoder: "OrdinalEncoder",
    encoders.bins_discretizer: "KBinsDiscretizer",
    composition.column_transformer: "ColumnTransformer",
    composition.feature_union: "FeatureUnion",
}

_LIGHTGBM = "LGBMClassifier LGBMRegressor LGBMRanker LGBMModel Booster"
_XGBOOST = "XGBClassifier XGBRegressor XGBRanker XGBRFClassifier XGBRFRegressor XGBModel Booster"

#: By `library.Class`; a subclass is converted as the class it is derived from.
SUPPORTED: dict[str, Converter] = {
    **{f"sklearn.{name}": converter for converter, names in _SKLEARN.items() for name in names.split()},
    **{f"lightgbm.{name}": lightgbm_model for name in _LIGHTGBM.split()},
    **{f"xgboost.{name}": xgboost_model for name in _XGBOOST.split()},
}
