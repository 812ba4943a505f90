"""Keys: equal for what is the same, in every process, and different for what is not."""

import builtins
import functools
import gc
import importlib
import inspect
import json
import linecache
import os
import pkgutil
import subprocess
import sys
import textwrap
import threading
import typing
from pathlib import Path

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import skdp
from skdp import (
    AdditiveTarget,
    BernsteinTarget,
    BernsteinTransformer,
    FunctionTarget,
    LaplaceMechanism,
    LeafTarget,
    PublicDataOracle,
    SensitivityEstimate,
    SensitivitySampler,
    Target,
    UniformOracle,
    release,
)
from skdp.core import installed
from skdp.core.fingerprint import fingerprint, key_of, obstacle_of
from skdp.core.target import target_key
from skdp.estimators.parameters import ParameterTarget
from skdp.functions.choice import ChoiceTarget

HEAD = """
import abc, dataclasses, enum, functools, math
from collections import namedtuple
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
import helpers
from helpers import inner
"""

HELPERS = """
import numpy as np
LEVEL = 2
UNUSED = 1
def inner(X):
    return np.mean(X) * 1
def unused(X):
    return 1
class Base:
    def part(self, X):
        return np.mean(X) * 1
def decorate(function):
    import functools
    @functools.wraps(function)
    def decorated(*args):
        return function(*args) * 1
    return decorated
"""

# Each is the text of a module; what stands between the marks is exchanged, and is read by `target`.
READ = {
    "body": ("def target(X):\n    return np.mean(X) * @1@", "1000"),
    "operator": ("def target(X):\n    return np.mean(X) @+@ 2", "-"),
    "kind of a number": ("def target(X):\n    return np.mean(X) // @2@", "2.0"),
    "installed function": ("def target(X):\n    return np.@mean@(X)", "median"),
    "lambda": ("target = lambda X: np.mean(X) * @1@", "2"),
    "lambdas on one line": ("both = [lambda X: 1, lambda X: 2]; target = both[@0@]", "1"),
    "lambda in a list": (
        "steps = [lambda X: X * @1@]\ndef target(X):\n    return steps[0](X)",
        "2",
    ),
    "default": ("def target(X, scale=@1@):\n    return np.mean(X) * scale", "1000"),
    "keyword default": ("def target(X, *, scale=@1@):\n    return np.mean(X) * scale", "1000"),
    "global": ("SCALE = @1@\ndef target(X):\n    return np.mean(X) * SCALE", "1000"),
    "global array": (
        "W = np.append(np.ones(2000), @1@)\ndef target(X):\n    return np.mean(W)",
        "9",
    ),
    "mutable global": (
        "S = {'by': [1]}\ndef target(X):\n    return S['by'][0]\nS['by'][0] = @1@",
        "2",
    ),
    "global of a function that is called": (
        "S = @1@\ndef part(X):\n    return S * X\ndef target(X):\n    return part(X)",
        "2",
    ),
    "builtin that is covered": (
        "@one@ = max\ndef target(X):\n    return sum(X)",
        "sum",
    ),
    "closure": (
        "def make(scale):\n    def target(X):\n        return scale * X\n    return target\n"
        "target = make(@1@)",
        "1000",
    ),
    "nested code": (
        "def target(X):\n    def part(x):\n        return x * @1@\n    return part(X)",
        "2",
    ),
    "name of a keyword": ("def target(X):\n    return np.mean(X, @axis@=0)", "dtype"),
    "partial": (
        "def part(X, s):\n    return X * s\ntarget = functools.partial(part, s=@1@)",
        "2",
    ),
    "function in a partial": (
        "def part(X, s):\n    return X * @1@\ntarget = functools.partial(part, s=1)",
        "2",
    ),
    "cached function": (
        "\x00functools.cache\ndef table():\n    return @1@\ndef target(X):\n    return table()",
        "2",
    ),
    "decorated function": (
        "\x00helpers.decorate\ndef target(X):\n    return np.mean(X) * @1@",
        "2",
    ),
    "decorator": (
        "def by(f):\n    \x00functools.wraps(f)\n    def g(X):\n        return @1@ * f(X)\n"
        "    return g\n\x00by\ndef target(X):\n    return np.mean(X)",
        "2",
    ),
    "vectorized function": (
        "def part(x):\n    return x * @1@\nmany = np.vectorize(part)\n"
        "def target(X):\n    return many(X)",
        "2",
    ),
    "body of a class": (
        "class Mean:\n    def __call__(self, X):\n        return np.mean(X) * @1@\ntarget = Mean()",
        "1000",
    ),
    "attribute of a class": (
        "class Config:\n    scale = @1@\ndef target(X):\n    return np.mean(X) * Config.scale",
        "1000",
    ),
    "attribute of a class inside a class": (
        "class Config:\n    class Deep:\n        scale = @1@\n"
        "def target(X):\n    return np.mean(X) * Config.Deep.scale",
        "1000",
    ),
    "attribute through the type of self": (
        "class Mean:\n    scale = @1@\n    def __call__(self, X):\n"
        "        return np.mean(X) * type(self).scale\ntarget = Mean()",
        "1000",
    ),
    "helper called through self": (
        "class Mean:\n    def part(self, X):\n        return np.mean(X) * @1@\n"
        "    def __call__(self, X):\n        return self.part(X)\ntarget = Mean()",
        "1000",
    ),
    "helper of a bound method": (
        "class Mean:\n    def part(self, X):\n        return np.mean(X) * @1@\n"
        "    def value(self, X):\n        return self.part(X)\ntarget = Mean().value",
        "1000",
    ),
    "inherited method": (
        "class Base(abc.ABC):\n    def part(self, X):\n        return np.mean(X) * @1@\n"
        "class Mean(Base):\n    def __call__(self, X):\n        return self.part(X)\n"
        "target = Mean()",
        "1000",
    ),
    "method of super": (
        "class Base:\n    def __call__(self, X):\n        return np.mean(X) * @1@\n"
        "class Mean(Base):\n    def __call__(self, X):\n        return super().__call__(X)\n"
        "target = Mean()",
        "1000",
    ),
    "property": (
        "class Mean:\n    \x00property\n    def scale(self):\n        return @1@\n"
        "    def __call__(self, X):\n        return np.mean(X) * self.scale\ntarget = Mean()",
        "1000",
    ),
    "cached property": (
        "class Mean:\n    \x00functools.cached_property\n    def scale(self):\n        return @1@\n"
        "    def __call__(self, X):\n        return np.mean(X) * self.scale\ntarget = Mean()",
        "1000",
    ),
    "class method": (
        "class Mean:\n    s = @1@\n    \x00classmethod\n    def scale(cls):\n        return cls.s\n"
        "def target(X):\n    return np.mean(X) * Mean.scale()",
        "1000",
    ),
    "static method": (
        "class Mean:\n    \x00staticmethod\n    def scale():\n        return @1@\n"
        "def target(X):\n    return np.mean(X) * Mean.scale()",
        "1000",
    ),
    "metaclass": (
        "class Meta(type):\n    def __getattr__(cls, name):\n        return @1@\n"
        "class Config(metaclass=Meta):\n    pass\n"
        "def target(X):\n    return np.mean(X) * Config.scale",
        "1000",
    ),
    "slots": (
        "class Mean:\n    __slots__ = ('scale',)\n    def __init__(self):\n"
        "        self.scale = @1@\n    def __call__(self, X):\n        return self.scale\n"
        "target = Mean()",
        "1000",
    ),
    "decorator of a method": (
        "class Mean:\n    \x00@property@\n    def scale(self):\n        return 1\n"
        "    def __call__(self, X):\n        return self.scale\ntarget = Mean()",
        "staticmethod",
    ),
    "state that pickling leaves out": (
        "class Mean:\n    def __init__(self):\n        self.scale = @1@\n"
        "    def __getstate__(self):\n        return {}\n    def __call__(self, X):\n"
        "        return self.scale\ntarget = Mean()",
        "1000",
    ),
    "dictionary of a class of one's own": (
        "class Table(dict):\n    pass\nT = Table(a=@1@)\ndef target(X):\n    return T['a']",
        "2",
    ),
    "field of a dataclass": (
        "\x00dataclasses.dataclass(frozen=True)\nclass Mean:\n    scale: float = 1.0\n"
        "    def __call__(self, X):\n        return np.mean(X) * self.scale\n"
        "target = Mean(@1.0@)",
        "1000.0",
    ),
    "method of a dataclass": (
        "\x00dataclasses.dataclass\nclass Mean:\n    scale: float = 1.0\n"
        "    def __call__(self, X):\n        return np.mean(X) * @1@\ntarget = Mean()",
        "1000",
    ),
    "named tuple": (
        "Point = namedtuple('Point', 'x y')\nP = Point(1, @2@)\ndef target(X):\n    return P.y",
        "3",
    ),
    "enumeration": (
        "class Scale(enum.Enum):\n    ONE = @1@\n"
        "def target(X):\n    return np.mean(X) * Scale.ONE.value",
        "1000",
    ),
    "patched object": (
        "class Mean:\n    def __call__(self, X):\n        return self.part(X)\n"
        "target = Mean()\ntarget.part = lambda X: X * @1@",
        "2",
    ),
    "patched class": (
        "class Mean:\n    def __call__(self, X):\n        return self.part(X)\n"
        "Mean.part = lambda self, X: X * @1@\ntarget = Mean()",
        "2",
    ),
    "estimator of one's own": (
        "class Step(TransformerMixin, BaseEstimator):\n    def fit(self, X, y=None):\n"
        "        return self\n    def transform(self, X):\n        return X * @1@\n"
        "target = make_pipeline(Step(), Ridge())",
        "1000",
    ),
    "function in an estimator": (
        "def double(X):\n    return @2@ * X\n"
        "target = make_pipeline(FunctionTransformer(func=double), Ridge())",
        "1000",
    ),
    "parameter of an estimator": ("target = make_pipeline(Ridge(@1@))", "2"),
    "attribute of a function": (
        "def target(X):\n    return target.scale * X\ntarget.scale = @1@",
        "2",
    ),
    "class that is made in a function": (
        "def target(X):\n    class Part:\n        scale = @1@\n    return Part.scale * X",
        "2",
    ),
}

# The same, of what is in another module of the user's.
READ_ELSEWHERE = {
    "imported function": ("def target(X):\n    return inner(X)", "np.mean(X) * 1", "np.sum(X)"),
    "function of a module": (
        "def target(X):\n    return helpers.inner(X)",
        "np.mean(X) * 1",
        "np.sum(X)",
    ),
    "variable of a module": (
        "def target(X):\n    return X * helpers.LEVEL",
        "LEVEL = 2",
        "LEVEL=3",
    ),
    "module that is passed on": (
        "def target(X):\n    return getattr(helpers, 'LEV' + 'EL')",
        "LEVEL = 2",
        "LEVEL = 3",
    ),
    "import inside": (
        "def target(X):\n    from helpers import inner as i\n    return i(X)",
        "np.mean(X) * 1",
        "np.sum(X)",
    ),
    "module imported inside": (
        "def target(X):\n    import helpers as h\n    return h.inner(X)",
        "np.mean(X) * 1",
        "np.sum(X)",
    ),
    "base class": (
        "class Mean(helpers.Base):\n    def __call__(self, X):\n        return self.part(X)\n"
        "target = Mean()",
        "np.mean(X) * 1",
        "np.sum(X)",
    ),
    "decorator": (
        "\x00helpers.decorate\ndef target(X):\n    return X",
        "function(*args) * 1",
        "function(*args) * 2",
    ),
}

MEAN = "def target(X):\n    return np.mean(X)"

# What no value depends on: texts before and after.
UNREAD = {
    "comment": (
        "def target(X):\n    return np.mean(X)",
        "def target(X):  # it\n    return np.mean(X)",
    ),
    "docstring": (
        "def target(X):\n    '''One.'''\n    return np.mean(X)",
        "def target(X):\n    '''Another.'''\n    return np.mean(X)",
    ),
    "new docstring": (
        "def target(X):\n    return np.mean(X)",
        "def target(X):\n    '''A mean.'''\n    return np.mean(X)",
    ),
    "format": (
        "def target(X):\n    return np.mean(X, axis=0)",
        "def target(X):\n\n    return (np.mean(\n        X, axis = 0))",
    ),
    "place": (
        "def target(X):\n    return np.mean(X)",
        "A = 1\n\n\ndef target(X):\n    return np.mean(X)",
    ),
    "way to write a number": ("def target(X):\n    return 0x10", "def target(X):\n    return 1_6"),
    "quotes": ("def target(X):\n    return X['a']", 'def target(X):\n    return X["a"]'),
    "global that is not read": (
        "A = 1\ndef target(X):\n    return np.mean(X)",
        "A = 2\ndef target(X):\n    return np.mean(X)",
    ),
    "function that is not called": (
        "def other():\n    return 1\ndef target(X):\n    return np.mean(X)",
        "def other():\n    return 2\ndef target(X):\n    return np.mean(X)",
    ),
    "class attribute that is not read": (
        "class C:\n    a = 1\n    b = 1\ndef target(X):\n    return C.a * X",
        "class C:\n    a = 1\n    b = 2\ndef target(X):\n    return C.a * X",
    ),
    "method that is not called": (
        "class C:\n    a = 1\n    def b(self):\n        pass\ndef target(X):\n    return C.a",
        "class C:\n    a = 1\n    def b(self):\n        return\ndef target(X):\n    return C.a",
    ),
    "annotation": (MEAN, "def target(X: np.ndarray) -> float:\n    return np.mean(X)"),
    "default that is written in another way": (
        "def target(X, s=1):\n    return s * X",
        "def target(X, s=3 - 2):\n    return s * X",
    ),
    "order of methods": (
        "class C:\n    def __call__(self, X):\n        return X\n    def b(self):\n"
        "        return 2\ntarget = C()",
        "class C:\n    def b(self):\n        return 2\n    def __call__(self, X):\n"
        "        return X\ntarget = C()",
    ),
    "docstring of a class": (
        "class C:\n    '''One.'''\n    def __call__(self, X):\n        return X\ntarget = C()",
        "class C:\n    '''Two.'''\n    def __call__(self, X):\n        return X\ntarget = C()",
    ),
    "other lambda of the line": (
        "a, target = lambda X: X * 3, lambda X: X",
        "a, target = lambda X: X * 4, lambda X: X",
    ),
    "name of a lambda": ("one = lambda X: X\ntarget = one", "two = lambda X: X\ntarget = two"),
    "order of a set": (
        "S = {'a', 'b', 'c'}\ndef target(X):\n    return len(S)",
        "S = {'c', 'b', 'a'}\ndef target(X):\n    return len(S)",
    ),
    "local that is called like a global": (
        "X = 1\ndef target(X):\n    return np.mean(X)",
        "X = 2\ndef target(X):\n    return np.mean(X)",
    ),
}


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Write the two modules anew and import them; return what the first calls `target`."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def imported(text, helpers=HELPERS):
        (tmp_path / "helpers.py").write_text(helpers)
        (tmp_path / "scripted.py").write_text(HEAD + text.replace("\x00", "@"))
        importlib.invalidate_caches()
        for name in ("helpers", "scripted"):
            sys.modules.pop(name, None)
        return importlib.import_module("scripted").target

    yield imported
    for name in ("helpers", "scripted", "first"):
        sys.modules.pop(name, None)


def filled(text, value=None):
    before, old, after = text.split("@")
    return before + (old if value is None else value) + after


@pytest.mark.parametrize("case", READ)
def test_what_is_read_counts(case, load):
    text, other = READ[case]
    keys = [key_of(load(each)) for each in (filled(text), filled(text, other), filled(text))]
    assert keys[0] == keys[2] != keys[1]
    assert not any(map(obstacle_of, keys))


@pytest.mark.parametrize("case", READ_ELSEWHERE)
def test_what_is_read_of_other_modules_counts(case, load):
    text, old, new = READ_ELSEWHERE[case]
    edited = HELPERS.replace(old, new)
    keys = [key_of(load(text, helpers)) for helpers in (HELPERS, edited, HELPERS)]
    assert keys[0] == keys[2] != keys[1]
    assert not any(map(obstacle_of, keys))


@pytest.mark.parametrize("case", UNREAD)
def test_what_is_not_read_does_not_count(case, load):
    before, after = (key_of(load(text)) for text in UNREAD[case])
    assert before == after
    assert not obstacle_of(before)


def test_what_is_not_read_of_other_modules_does_not_count(load):
    edited = HELPERS.replace("UNUSED = 1", "UNUSED = 2").replace("return 1\n", "return 2\n")
    assert edited != HELPERS
    text = "def target(X):\n    return helpers.inner(X) * helpers.LEVEL"
    assert key_of(load(text)) == key_of(load(text, edited))


PROGRAM = """
import json, sys
from pathlib import Path
from skdp.core import installed
from skdp.core.fingerprint import key_of
import importlib
texts = json.loads(Path("texts.json").read_text())
sys.dont_write_bytecode = True
keys = []
for number, text in enumerate(texts):
    Path(f"scripted{number}.py").write_text(text)
    importlib.invalidate_caches()
    keys.append(key_of(importlib.import_module(f"scripted{number}").target))
print(json.dumps(keys))
"""


def run(program, directory, **environment):
    (directory / "program.py").write_text(textwrap.dedent(program))
    environment = os.environ | {"PYTHONPATH": str(Path(skdp.__file__).parents[1])} | environment
    output = subprocess.check_output(
        [sys.executable, "program.py"], cwd=directory, env=environment, text=True
    )
    return output.strip()


SAMPLED = """
import numpy as np
from skdp import FunctionTarget, LaplaceMechanism, SensitivityEstimate, SensitivitySampler
from skdp import UniformOracle, release

class Mean:
    scale = {scale}
    def part(self, X):
        return np.mean(X) * self.scale
    def __call__(self, X):
        return self.part(X)

exec("def bare(X):\\n    return X.mean() * {scale}")

def targets():
    yield "mean", Mean()
    yield "bare", bare
    yield "named", FunctionTarget(bare, key="bare-v1")

mechanism = LaplaceMechanism(1.0)
for name, target in targets():
    path = name + ".json"
    if {first}:
        sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.2, random_state=0)
        sampler.sample(target, 20, mechanism.geometry).save(path)
    try:
        release(target, np.ones((20, 1)), mechanism=mechanism,
                sensitivity=SensitivityEstimate.load(path), random_state=0)
        print(name, "served")
    except ValueError as error:
        print(name, "refused", "FunctionTarget(function, key=" in str(error))
"""


@pytest.mark.slow
def test_another_process_finds_the_same(load, tmp_path, monkeypatch, capsys):
    """In modules of other names too: where a function is has nothing to do with what it is.

    What has a text is known by it, what has none by the key that it is given, or not at all.
    """
    texts = [filled(text) for text, _ in READ.values()]
    texts += [text for text, _, _ in READ_ELSEWHERE.values()] + [
        text for text, _ in UNREAD.values()
    ]
    expected = [key_of(load(text)) for text in texts]
    written = [HEAD + text.replace("\x00", "@") for text in texts]
    (tmp_path / "texts.json").write_text(json.dumps(written))

    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.py").write_text(SAMPLED.format_map({"scale": 1, "first": True}))
    importlib.import_module("first")
    assert capsys.readouterr().out == "mean served\nbare served\nnamed served\n"

    program = PROGRAM + SAMPLED.format_map({"scale": 1000, "first": False})
    keys, *served = run(program, tmp_path, PYTHONHASHSEED="1").splitlines()
    assert json.loads(keys) == expected
    assert served == ["mean refused False", "bare refused True", "named served"]


def test_a_redefined_class_does_not_get_the_old_estimate(load):
    """It would get a thousandth of the noise."""
    text = READ["body of a class"][0]
    mechanism, X = LaplaceMechanism(1.0), np.ones((20, 1))
    sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.2, random_state=0)
    estimate = sampler.sample(load(filled(text)), 20, mechanism.geometry)
    served = release(load(filled(text)), X, mechanism=mechanism, sensitivity=estimate)
    assert served.sensitivity is estimate
    with pytest.raises(ValueError, match="of other code, labels or other values"):
        release(load(filled(text, "1000")), X, mechanism=mechanism, sensitivity=estimate)


def test_chunks_of_another_function_or_oracle_are_not_found(load, tmp_path):
    text = (
        "class Draw:\n    def __call__(self, n, rng):\n        return @1@ * rng.random((n, 1))\n"
        "oracle = Draw()\n"
    )
    options = {"gamma": 0.2, "random_state": 0, "memory": str(tmp_path / "chunks")}

    def norms(scale, factor):
        target = load(filled(text, scale) + filled(READ["helper called through self"][0], factor))
        sampler = SensitivitySampler(sys.modules["scripted"].oracle, **options)
        return sampler.sample(target, 10, "l1").norms

    first = norms("1", "1")
    np.testing.assert_allclose(norms("1000", "1"), 1000 * first)
    np.testing.assert_allclose(norms("1", "1000"), 1000 * first)
    np.testing.assert_array_equal(norms("1", "1"), first)


def test_code_without_a_text_is_like_itself_in_this_process_only():
    def made(text):
        space = {}
        exec(text, space)
        return space["f"]

    one, same, other = (made(f"f = lambda X: X + {number}") for number in (1, 1, 2))
    assert key_of(one) == key_of(same) != key_of(other)
    assert "cannot be found" in obstacle_of(key_of(one))
    assert key_of(made("def f(X):\n import math\n return X")).startswith("unknown")
    with pytest.raises(TypeError, match=r"'memory' parameter .*text of <lambda> cannot be found"):
        fingerprint(one)
    space = {"scale": 1}
    exec("def f(X): return X * scale", space)
    before = key_of(space["f"])
    assert before == key_of(space["f"])
    space["scale"] = 2
    assert before != key_of(space["f"])


def test_a_text_that_was_changed_after_it_ran_is_not_taken(load, tmp_path):
    target = load("def target(X):\n    return X * 1")
    lasting = key_of(target)
    linecache.clearcache()
    path = tmp_path / "scripted.py"
    path.write_text(path.read_text().replace("X * 1", "X * 2"))
    assert obstacle_of(key_of(target))
    assert key_of(target) != lasting != key_of(load("def target(X):\n    return X * 2"))


def generator():
    yield 1


OPEN = generator()
OPAQUE = {
    "generator": lambda X: OPEN,
    "eval": lambda X: eval("X"),
    "globals": lambda X: globals()["OPEN"],
    "import by name": lambda X: importlib.import_module("math"),
    "subclasses": lambda X: type(X).__subclasses__(),
    "docstring": lambda X: len(generator.__doc__),
    "ufunc made of a function": np.frompyfunc(lambda x: x, 1, 1),
}


@pytest.mark.loop("name", OPAQUE)
def test_what_cannot_be_read_is_like_nothing_else(name):
    function = OPAQUE[name]
    assert key_of(function) != key_of(function)
    assert obstacle_of(key_of(function))
    with pytest.raises(TypeError, match="'memory' parameter of SensitivitySampler"):
        fingerprint(function)


def test_what_cannot_be_read_is_released_with_a_sampler_and_not_with_an_estimate():
    opened = generator()

    def mean(X):
        return X.mean() + 0 * len([opened])

    X, mechanism = np.ones((20, 1)), LaplaceMechanism(1.0)
    sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.2)
    first = release(mean, X, mechanism=mechanism, sensitivity=sampler)
    message = r"No estimate can be kept .* type generator .*FunctionTarget\(function, key="
    with pytest.raises(ValueError, match=message):
        release(mean, X, mechanism=mechanism, sensitivity=first.sensitivity)
    named = FunctionTarget(mean, key="mean-v1")
    first = release(named, X, mechanism=mechanism, sensitivity=sampler)
    assert first.sensitivity.key == "mean-v1"
    again = release(named, X, mechanism=mechanism, sensitivity=first.sensitivity)
    assert again.sensitivity is first.sensitivity
    other = FunctionTarget(mean, key="mean-v2")
    with pytest.raises(ValueError, match="made for another target"):
        release(other, X, mechanism=mechanism, sensitivity=first.sensitivity)


def test_an_estimate_without_a_key_serves_nothing():
    sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.2)
    values = vars(sampler.sample(np.mean, 20, LaplaceMechanism(1.0).geometry)).copy()
    del values["value"], values["key"]
    with pytest.raises(ValueError, match="made for another target"):
        release(
            np.mean,
            np.ones((20, 1)),
            mechanism=LaplaceMechanism(1.0),
            sensitivity=SensitivityEstimate(**values),
        )


class Own(Target):
    description = "a mean of one's own"

    def __init__(self, scale, key=None):
        self.scale = scale
        if key is not None:
            self.key = key

    def __call__(self, X, *, seed):
        return np.mean(X) * self.scale


def test_a_target_of_ones_own_has_a_key_or_is_read(tmp_path):
    assert target_key(Own(1, key="own-v1")) == target_key(Own(2, key="own-v1")) == "own-v1"
    assert target_key(Own(1)) == target_key(Own(1)) != target_key(Own(2))
    assert not obstacle_of(target_key(Own(1)))
    sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.2, memory=str(tmp_path))
    unread = Own(generator(), key="own-v1")
    unread.__class__ = type("Ones", (Own,), {"__call__": lambda self, X, *, seed: np.mean(X)})
    sampler.sample(unread, 5, "l1")  # in a cache too, a key stands for what cannot be read
    with pytest.raises(TypeError, match="type generator"):
        sampler.sample(Own(generator()), 5, "l1")


@pytest.mark.parametrize(("key", "error"), [("", ValueError), (3, TypeError)])
def test_a_key_is_a_name(key, error):
    with pytest.raises(error, match=r"The 'key' of FunctionTarget must be a string"):
        FunctionTarget(np.mean, key=key)
    with pytest.raises(error, match=r"The 'key' of the target Own must be a string"):
        target_key(Own(1, key=key))


def test_targets_of_functions_take_their_key_along():
    box = BernsteinTransformer(degree=2, feature_range=(0, 1))
    for wrap in (
        AdditiveTarget,
        lambda f: BernsteinTarget(f, box),
        lambda f: ChoiceTarget(f, "ab"),
    ):
        keys = [
            target_key(wrap(each))
            for each in (
                FunctionTarget(np.mean, key="v1"),
                FunctionTarget(np.sum, key="v1"),
                FunctionTarget(np.mean, key="v2"),
                FunctionTarget(np.mean),
                np.mean,
            )
        ]
        assert keys[0] == keys[1]
        assert len(set(keys)) == 3
        assert keys[3] == keys[4]
        assert obstacle_of(target_key(wrap(OPAQUE["eval"])))
    assert target_key(ChoiceTarget(Own(1, key="v1"), "ab")) == target_key(
        ChoiceTarget(Own(2, key="v1"), "ab")
    )


def test_public_structure_of_a_target_counts():
    """What the public fit gives to the function, and not only what the user has configured."""
    estimator = make_pipeline(OneHotEncoder(sparse_output=False), Ridge())
    y = np.arange(4.0)
    tables = [np.array([["a"], ["b"], ["a"], [letter]]) for letter in "bcb"]
    public_fits = [
        make_pipeline(OneHotEncoder(sparse_output=False), Ridge()).fit(X, y) for X in tables
    ]
    keys = [ParameterTarget(estimator, "auto", public_fit).key for public_fit in public_fits]
    assert keys[0] == keys[2] != keys[1]

    tree = DecisionTreeRegressor(max_depth=1)
    public_fit = DecisionTreeRegressor(max_depth=1, random_state=0).fit(y[:, None], y)
    ranges = [LeafTarget(y_range=(0, high)).bind(tree, public_fit).key for high in (1, 1, 1000)]
    assert ranges[0] == ranges[1] != ranges[2]


def test_installed_versions_count(monkeypatch):
    before = key_of(np.mean), key_of(Ridge())
    monkeypatch.setattr(installed, "_release_of", lambda module: f"{module} 99")
    assert key_of(np.mean) != before[0]
    assert key_of(Ridge()) != before[1]


@pytest.mark.parametrize(("folder", "is_read"), [("here", True), ("gone", False)])
def test_a_package_installed_from_a_folder_is_read(folder, is_read, tmp_path, monkeypatch):
    """It changes without its version; one that was built elsewhere, as conda's, does not."""
    site, sources = tmp_path / "site-packages", tmp_path / "here"
    (site / "ownlib-1.0.dist-info").mkdir(parents=True)
    sources.mkdir()
    origin = {"url": (tmp_path / folder).as_uri(), "dir_info": {}}
    (site / "ownlib-1.0.dist-info" / "METADATA").write_text("Name: ownlib\nVersion: 1.0\n")
    (site / "ownlib-1.0.dist-info" / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(site)
    keys = []
    for number in (1, 2):
        (site / "ownlib.py").write_text(f"def target(X):\n    return X * {number}\n")
        for cache in (installed._release_of, installed._versions_of):
            cache.cache_clear()
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        importlib.invalidate_caches()
        sys.modules.pop("ownlib", None)
        keys.append(key_of(importlib.import_module("ownlib").target))
    sys.modules.pop("ownlib")
    installed._release_of.cache_clear()
    assert (keys[0] != keys[1]) == is_read
    assert not any(map(obstacle_of, keys))


def test_patches_of_installed_classes_count(monkeypatch):
    before = key_of(Ridge())
    monkeypatch.setattr(Ridge, "fit", lambda self, X, y: self)
    assert key_of(Ridge()) != before


def test_patched_values_of_installed_classes_count(monkeypatch):
    before = key_of(Ridge())
    monkeypatch.setattr(Ridge, "factor", 1.0, raising=False)
    one = key_of(Ridge())
    monkeypatch.setattr(Ridge, "factor", 2.0)
    assert len({before, one, key_of(Ridge())}) == 3


@pytest.mark.parametrize("values", [(1.0, 2.0), (lambda: 1.0, lambda: 2.0)], ids=["value", "call"])
def test_names_put_among_the_builtins_count(values, monkeypatch):
    keys = []
    for value in values:
        monkeypatch.setattr(builtins, "put_there", value, raising=False)
        keys.append(key_of(reads_a_builtin))
    assert keys[0] != keys[1]


def reads_a_builtin(X):
    return put_there, X  # noqa: F821 (a test puts it among the builtins)


@pytest.mark.parametrize(
    "function",
    [
        lambda X: inspect.getmodule(key_of).PROCESS,
        lambda X: pkgutil.resolve_name("skdp.core.fingerprint:PROCESS"),
        lambda X: typing.get_type_hints(key_of),
        lambda X: gc.get_objects(),
    ],
    ids=["getmodule", "resolve_name", "get_type_hints", "get_objects"],
)
def test_what_finds_anything_is_like_nothing_else(function):
    assert "by a name that only a run tells" in obstacle_of(key_of(function))


FACTOR = np.ones(2000)
LOCK = threading.Lock()


def scaled(X):
    with LOCK:
        return FACTOR * X


def recursive(n):
    return recursive(n - 1) if n else 0


def make(value, default=0):
    def function(X, scale=default):
        return [scale * x + value for x in X]

    return function


def scaler_of(X):
    return FrozenEstimator(StandardScaler().fit(X))


def test_values_count():
    different = [make(1), make(2), make(1, default=3), make([1]), lambda X: X, lambda X: -X]
    different += [make(each) for each in (1.0, True, "1", b"1", None, (1,), {1}, {1: 1}, 1j, -0.0)]
    different += [functools.partial(np.quantile, q=q) for q in (0.5, 1.0)]
    different += [functools.cache(each) for each in (lambda: 1, lambda: 2)]
    different += [np.mean, np.median, np.add, np.maximum, max, min, scaled, recursive]
    assert len(set(map(fingerprint, different))) == len(different)
    assert fingerprint(make(1)) == fingerprint(make(1))
    assert fingerprint(make(np.ones(3))) == fingerprint(make(np.ones(6)[::2]))


def test_functions_that_call_themselves_have_fingerprints():
    def enclosed(n, step=1):
        return enclosed(n - step) if n else 0

    assert fingerprint(recursive) == fingerprint(recursive)
    assert fingerprint(enclosed) == fingerprint(enclosed) != fingerprint(recursive)


def test_data_and_parameters_count():
    X = np.random.default_rng(0).normal(size=(50, 2))
    same = fingerprint(PublicDataOracle(X)), fingerprint(PublicDataOracle(X.copy()))
    assert same[0] == same[1] != fingerprint(PublicDataOracle(2 * X))
    first, second = PublicDataOracle(X), PublicDataOracle(X + 1)
    assert fingerprint(first.__call__) != fingerprint(second.__call__)


def test_what_an_estimator_shows_only_in_part_counts():
    X = np.random.default_rng(0).normal(size=(50, 2))
    penalties = np.ones(2000), np.append(np.ones(1999), 1000.0)
    for first, second in [
        [Ridge(alpha=alpha) for alpha in penalties],
        [scaler_of(X), scaler_of(2 * X)],
        [FunctionTransformer(make(value)) for value in (1, 2)],
    ]:
        assert fingerprint(first) != fingerprint(second)
    assert fingerprint(scaler_of(X)) == fingerprint(scaler_of(X))
    assert fingerprint(FunctionTransformer(make(1))) == fingerprint(FunctionTransformer(make(1)))
