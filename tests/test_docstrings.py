"""Public names carry a complete numpydoc docstring, internal ones a line that says what they do."""

import enum
import importlib
import inspect
import pkgutil

import pytest
from numpydoc.validate import validate

import skdp
import skdp.accounting
import skdp.audit
import skdp.bounds
from skdp.sensitivity.base import Sensitivity, Settled
from skdp.tables.statistics import ColumnsTarget

SUMMARY = {"GL08", "SS01", "SS02", "SS03", "SS04"}
SECTIONS = {"GL03", "GL05", "GL06", "GL07", "GL10"}
PARAMETERS = {"PR01", "PR02", "PR03", "PR04", "PR05", "PR07", "PR10"}
RETURNS = {"RT01", "RT03", "YD01"}
EXAMPLES = {"EX01"}
COMPLETE = SUMMARY | SECTIONS | PARAMETERS | RETURNS
# Methods whose parameters users know from scikit-learn.
KNOWN = {"decision_function", "fit", "fit_predict", "fit_transform", "get_feature_names_out"}
KNOWN |= {"inverse_transform", "predict", "predict_log_proba", "predict_proba", "score"}
KNOWN |= {"score_samples", "set_output", "set_params", "transform"}


def required(obj):
    """Codes that may not occur for `obj`; some kinds have no parameters or example of their own."""
    if inspect.isclass(obj):
        if issubclass(obj, enum.Enum | Exception):
            return SUMMARY | SECTIONS | EXAMPLES
        return COMPLETE | EXAMPLES
    if isinstance(obj, property):
        return SUMMARY | SECTIONS
    signature = inspect.signature(obj).parameters
    is_plain = obj.__name__ in KNOWN or len(signature.keys() - {"self"}) <= 1
    if "." in obj.__qualname__ and is_plain and "\n---" not in inspect.getdoc(obj):
        return SUMMARY | SECTIONS  # the summary tells all
    return COMPLETE


def function_of(attribute):
    """The function behind a method of any kind; None for what is no method of this package."""
    if isinstance(attribute, property):
        attribute = attribute.fget
    # class and static methods, and scikit-learn's `available_if`
    attribute = getattr(attribute, "__func__", getattr(attribute, "fn", attribute))
    own = inspect.isfunction(attribute) and attribute.__module__.startswith("skdp")
    return attribute if own else None


# What the parts of the library call on each other, beyond what users do.
BETWEEN_PARTS = {
    skdp.Mechanism: {"release_with_errors", "share_learned", "unit_deviation", "with_code"},
    skdp.Target: {"check_oracle", "light", "remark", "warning"},
    skdp.Category: {"cells", "clipped", "draw", "n_cells"},
    skdp.Number: {"cells", "clipped", "draw", "edges", "from_unit", "middles"}
    | {"n_cells", "unit"},
    skdp.Schema: {"read"},
    ColumnsTarget: {"proved", "read"},
    skdp.ReleasePlan: {"score_with", "simulate", "simulate_tasks"},
    skdp.PrivateEstimator: {"least_spend"},
    skdp.SensitivitySampler: {"draw_seed", "order_statistic", "pilots", "shaken_pilots"},
    skdp.RandomTaskOracle: {"rule_scores"},
    skdp.accounting.PrivacyAccountant: {"rehearse"},
}


def methods_of(cls):
    """Names of the public methods of a class, but for those that only plans call."""
    names = [name for name in dir(cls) if not name.startswith("_")]
    between = {n for base, each in BETWEEN_PARTS.items() if issubclass(cls, base) for n in each}
    names = [name for name in names if name not in between]
    called = {name for base in (Sensitivity, Settled) for name in vars(base)}
    names = [n for n in names if n not in called or getattr(vars(cls).get(n), "__doc__", None)]
    return [name for name in names if function_of(inspect.getattr_static(cls, name))]


def documenting_class(cls, method):
    """The class itself, or where its method has no docstring the base that it is written in."""
    documented = [kind for kind in cls.__mro__ if getattr(vars(kind).get(method), "__doc__", None)]
    own = getattr(inspect.getattr_static(cls, method), "__doc__", None)
    return cls if own or not documented else documented[0]


def public_objects():
    """Dotted names and objects of what can be imported, and the methods of the classes."""
    for module in (skdp, skdp.accounting, skdp.audit, skdp.bounds, skdp.risk):
        for name in module.__all__:
            obj = getattr(module, name)
            if inspect.ismodule(obj):
                continue
            yield f"{module.__name__}.{name}", obj
            for method in methods_of(obj) if inspect.isclass(obj) else ():
                owner = documenting_class(obj, method)
                home = module if owner is obj else importlib.import_module(owner.__module__)
                yield f"{home.__name__}.{owner.__name__}.{method}", getattr(owner, method)


def internal_objects():
    """Dotted names of the other functions and classes that have no underscore."""
    public = {id(obj) for obj in OBJECTS.values()}
    for info in pkgutil.walk_packages(skdp.__path__, "skdp."):
        module = importlib.import_module(info.name)
        for name, obj in vars(module).items():
            own = getattr(obj, "__module__", None) == module.__name__
            kind = inspect.isclass(obj) or inspect.isfunction(obj)
            if own and kind and not name.startswith("_") and id(obj) not in public:
                yield f"{module.__name__}.{name}"


OBJECTS = dict(public_objects())


def errors(name, codes):
    """Violations of the required `codes` in the docstring of the object called `name`."""
    return [error for error in validate(name)["errors"] if error[0] in codes]


@pytest.mark.slow
def test_docstrings_are_complete():
    found = {name: errors(name, required(OBJECTS[name])) for name in sorted(OBJECTS)}
    assert {name: each for name, each in found.items() if each} == {}


@pytest.mark.slow
def test_internal_names_say_what_they_do():
    found = {name: errors(name, SUMMARY) for name in internal_objects()}
    assert len(found) >= 100
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def faulty(number):
    """Return the number

    Parameters
    ----------
    numbr
        A number.
    """
    return number


def test_planted_gaps_are_found():
    found = errors(f"{__name__}.faulty", required(faulty))
    assert {code for code, _ in found} == {"SS03", "PR01", "PR02", "PR04", "RT01"}
