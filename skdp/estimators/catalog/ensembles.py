"""Trees and forests, which release the values in their leaves, and ensembles that are refused."""

from __future__ import annotations

from skdp.core.classes import named
from skdp.estimators.catalog.entry import Entry


def _boosted(kind: str) -> Entry:
    return Entry(
        refuse="each of its members is fitted to what those before it got wrong on the private "
        "records, so no structure is public and one record moves all later members. Use "
        f"RandomForest{kind} or ExtraTrees{kind}, whose leaf values are released, or a linear model"
    )


_tree = Entry(tree=True)
_isolated = Entry(
    refuse="what it does with a record depends on the depth of a leaf and not on a value in it. "
    "Grown on public records it can be used as it is, in a FrozenEstimator",
    by_record=True,
)

ENTRIES: dict[str, Entry] = {
    **dict.fromkeys(
        named(
            "sklearn.tree",
            "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor",
        ),
        _tree,
    ),
    **dict.fromkeys(
        named(
            "sklearn.ensemble",
            "ExtraTreesClassifier ExtraTreesRegressor RandomForestClassifier RandomForestRegressor",
        ),
        _tree,
    ),
    **dict.fromkeys(
        named(
            "sklearn.ensemble",
            "AdaBoostClassifier GradientBoostingClassifier HistGradientBoostingClassifier",
        ),
        _boosted("Classifier"),
    ),
    **dict.fromkeys(
        named(
            "sklearn.ensemble",
            "AdaBoostRegressor GradientBoostingRegressor HistGradientBoostingRegressor",
        ),
        _boosted("Regressor"),
    ),
    **dict.fromkeys(named("sklearn.ensemble", "IsolationForest RandomTreesEmbedding"), _isolated),
}
