"""Estimators made of estimators, and trees: classes whose parts are released in their own way."""

from __future__ import annotations

from skdp.core.classes import ClassSet, named

COMPOSITIONS = {
    "sklearn.calibration": "CalibratedClassifierCV",
    "sklearn.compose": "ColumnTransformer TransformedTargetRegressor",
    "sklearn.ensemble": """
        BaggingClassifier BaggingRegressor StackingClassifier StackingRegressor VotingClassifier
        VotingRegressor
    """,
    "sklearn.frozen": "FrozenEstimator",
    "sklearn.linear_model": "RANSACRegressor",
    "sklearn.model_selection": """
        FixedThresholdClassifier GridSearchCV RandomizedSearchCV TunedThresholdClassifierCV
    """,
    "sklearn.multiclass": "OneVsOneClassifier OneVsRestClassifier OutputCodeClassifier",
    "sklearn.multioutput": """
        ClassifierChain MultiOutputClassifier MultiOutputRegressor RegressorChain
    """,
    "sklearn.pipeline": "FeatureUnion Pipeline",
    "sklearn.semi_supervised": "SelfTrainingClassifier",
}
TREES = {
    "sklearn.ensemble": """
        AdaBoostClassifier AdaBoostRegressor ExtraTreesClassifier ExtraTreesRegressor
        GradientBoostingClassifier GradientBoostingRegressor HistGradientBoostingClassifier
        HistGradientBoostingRegressor IsolationForest RandomForestClassifier RandomForestRegressor
        RandomTreesEmbedding
    """,
    "sklearn.tree": """
        DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor
    """,
}


ELSEWHERE = ClassSet(
    name
    for table in (COMPOSITIONS, TREES)
    for module, names in table.items()
    for name in named(module, names)
)
