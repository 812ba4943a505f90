"""What the members of an estimator are for, and which of them are released through a stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skdp._classes import is_a
from skdp.targets.registry import stand_in_of


def roles(
    estimator: Any, transforms: bool = False, prefix: str = ""
) -> Iterator[tuple[str, Any, bool]]:
    """Tell what each estimator is for: to predict, or to transform for what comes after it.

    Parameters
    ----------
    estimator : estimator object
        As configured.
    transforms : bool, default=False
        Whether it is to transform. One that is not part of another predicts, if it can.
    prefix : str, default=""
        What comes before the name of a parameter in ``set_params``.

    Yields
    ------
    prefix : str
        As above, of this estimator.
    estimator : estimator object
        The estimator itself first. What is inside a FrozenEstimator is left out.
    transforms : bool
        True if it is to transform.
    """
    yield prefix, estimator, transforms
    if is_a(estimator, "sklearn.frozen.FrozenEstimator"):
        return
    for name, value in sorted(estimator.get_params(deep=True).items()):
        is_member = hasattr(value, "get_params") and hasattr(value, "fit")
        if is_member and "__" not in name and not isinstance(value, type):
            yield from roles(
                value, _is_to_transform(estimator, name, transforms), f"{prefix}{name}__"
            )


def _is_to_transform(owner: Any, name: str, transforms: bool) -> bool:
    if is_a(owner, "sklearn.pipeline.Pipeline"):
        return transforms or name != owner.steps[-1][0]
    if is_a(owner, "sklearn.compose.TransformedTargetRegressor"):
        return name == "transformer"
    return is_a(owner, "sklearn.compose.ColumnTransformer", "sklearn.pipeline.FeatureUnion")


def with_stand_ins(estimator: Any) -> Any:
    """Exchange what keeps its fitted state private for what does not.

    Parameters
    ----------
    estimator : estimator object
        Not fitted; its members are changed.

    Returns
    -------
    estimator object
        `estimator` with stand-ins for members that have one, or its own stand-in.
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
