"""What the members of an estimator are for, and which of them are released through a stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.utils import get_tags

from skdp.core.classes import isinstance_by_name, public_name
from skdp.estimators.catalog import stand_in_of

# They take y where it is given, though their tags do not all say so.
_LEARN_FROM_RESPONSES = ("sklearn.cross_decomposition", "sklearn.feature_selection")
_IGNORE_RESPONSES = (
    "sklearn.feature_selection.VarianceThreshold",
    "sklearn.impute.IterativeImputer",
)


def roles(
    estimator: Any, transforms: bool = False, prefix: str = ""
) -> Iterator[tuple[str, Any, bool]]:
    """Tell what each estimator is for: to predict, or to transform for what comes after it.

    Yield what comes before the name of a parameter in ``set_params``, the estimator, and whether it
    is to transform. What is inside a FrozenEstimator is left out. One that is not part of another
    predicts, if it can.
    """
    yield prefix, estimator, transforms
    if isinstance_by_name(estimator, "sklearn.frozen.FrozenEstimator"):
        return
    for name, value in sorted(estimator.get_params(deep=True).items()):
        is_member = hasattr(value, "get_params") and hasattr(value, "fit")
        if is_member and "__" not in name and not isinstance(value, type):
            yield from roles(
                value, _is_to_transform(estimator, name, transforms), f"{prefix}{name}__"
            )


def _is_to_transform(owner: Any, name: str, transforms: bool) -> bool:
    if isinstance_by_name(owner, "sklearn.pipeline.Pipeline"):
        return transforms or name != owner.steps[-1][0]
    if isinstance_by_name(owner, "sklearn.compose.TransformedTargetRegressor"):
        return name == "transformer"
    return isinstance_by_name(
        owner, "sklearn.compose.ColumnTransformer", "sklearn.pipeline.FeatureUnion"
    )


def with_stand_ins(estimator: Any) -> Any:
    """Exchange what keeps its fitted state private for what does not.

    Members are exchanged in place; `estimator` itself may come back as its own stand-in.
    """
    settings = {}
    for prefix, member, transforms in roles(estimator):
        kind = stand_in_of(member, transforms)
        if kind is not None:
            made = kind(**member.get_params(deep=False))
            vars(made).update(vars(member))  # set_output, too
            settings[prefix.removesuffix("__")] = made
    if "" in settings:
        return settings[""]
    return estimator.set_params(**settings)


def uses_response(estimator: Any) -> bool:
    """Return whether an estimator may learn anything from y.

    False only where it is known that y is ignored: by scikit-learn's own classes that neither
    require it, nor select or project by it, and by what is made of these. What a class of somebody
    else does with it is not known.
    """
    if estimator is None or isinstance(estimator, str):
        return False
    kind = public_name(type(estimator))
    if kind == "sklearn.frozen.FrozenEstimator":
        return False
    if kind == "sklearn.pipeline.Pipeline":
        return any(uses_response(step) for _, step in estimator.steps)
    if kind == "sklearn.pipeline.FeatureUnion":
        return any(uses_response(member) for _, member in estimator.transformer_list)
    if kind == "sklearn.compose.ColumnTransformer":
        members = [member for _, member, _ in estimator.transformers]
        return any(uses_response(member) for member in [*members, estimator.remainder])
    if kind in _IGNORE_RESPONSES:
        return False
    tags = get_tags(estimator)
    return (
        kind == ""
        or kind.rpartition(".")[0] in _LEARN_FROM_RESPONSES
        or tags.target_tags.required
        or tags.estimator_type in ("classifier", "regressor")
        or any(hasattr(value, "fit") for value in estimator.get_params(deep=False).values())
    )
