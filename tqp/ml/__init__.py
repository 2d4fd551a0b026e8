"""Trained models as torch modules inside a query: conversion, proof against the original, and scoring; and Python functions.

A converter (`tqp/ml/sklearn/*.py`, found by the class's name in `tqp/ml/supported.py`) reads what training left in an
estimator and makes torch modules of it; a `Feature` follows each column through the steps, so that an encoder knows which input
its strings are of (their codes come from `category_code`, once for each entry of a dictionary) and every step can say whose NULLs
it refuses. `tqp/ml/folding.py` then makes fewer modules of those that follow each other: a scaler goes into the matrix behind it, a
one-hot column into a table of the rows of that matrix, so that a pipeline of scaler, one-hot encoder and logistic
regression is one matrix product over the numbers and one look-up for each string:

```
ColumnTransformer(StandardScaler, OneHotEncoder), LogisticRegression
    -> Total(Select, Affine [10, 1]; Lookup [8, 1]; Lookup [15, 1]; Lookup [43, 1])
```

A million rows of these ten numbers and three strings take 33 ms of processor time where the original takes more than a second. The
same walk over the modules tells which inputs a result depends on. A converter that compares numbers with thresholds asks for
float64 (`Inputs.needs_doubles`), and every converter names the numbers that matter to it (`Inputs.try_values`): means,
thresholds, categories. The proof makes its rows of those.

**Trees.** Whatever library trees come from, they become one set of flat arrays (`Ensemble` in `tqp/ml/trees/ensemble.py`):
scikit-learn's from the attributes of its trees, LightGBM's and XGBoost's from the text that these libraries save models as, which
says all that a prediction depends on (a common form such as Treelite's has no `zero_as_missing`). They run as tables:

1. Each feature's value becomes a bin, the number of thresholds below it, by a table over the range and one to three comparisons
   (`tqp/ml/trees/bins.py`); missing values have a bin of their own, categories are bins.
2. Of each tree the upper part, up to 32 exits (leaves, or subtrees below), is decided without walking. For each feature a table
   has a row for each bin and in it, for each tree, 32 bits: the exits that such a value leaves open. The rows that a row's features
   choose are intersected, all trees side by side; the bit that remains is the exit (`tqp/ml/trees/parts.py`).
3. Below exits that are no leaves, rows walk level by level, a node being one integer of limit, child and column.
4. The leaves' values are gathered and added in float64; `tqp/ml/trees/outputs.py` makes labels and probabilities of the sums.

That takes 4.5 ns for a row and a tree of 31 leaves on one core, where LightGBM itself takes 24, and 12 for one of depth 8, where
scikit-learn takes 42. The same torch calls run on other devices, with more rows at once. `TreeSum.restricted` gives the smaller
ensemble that is left when ranges of some features are known.

**In plans.** A call is the expression `Predict`. Calls that agree in model and arguments are one scoring, whatever each makes of the
scores (`planner/rules/models/predictions.py`). Where several clauses ask for one, or rows are fewer below, `place_predictions` makes
it a column: above the cheap conditions, where rows are fewest; `predict_after_limit` moves it above a limit. Runtime filters go
below predictions as they go below joins. Behind AND, OR, CASE and COALESCE a pipeline scores the rows that are still
undecided, if gathering them costs less than the model (`tqp/runtime/lowering/expressions/predictions.py`). Where the columns of a call have few
combinations of values, `predict_distinct` marks it, and a pipeline of its own scores these into a table that rows look up
(`tqp/runtime/lowering/expressions/predictions.py`); EXPLAIN then says `[of 4000 combinations]`. A bound on a probability becomes one on
the score by bisection over all floats with the model's own function, and only if the scores around it agree (`tqp/ml/threshold.py`).
"""
