"""The text that a function was made of, as a tree: comments and formatting leave it as it is.

Bytecode would be at hand for every function. But each version of Python has its own, and equal
bytecode does not make equal functions, so it never enters what is kept: it only tells, in this
process, whether a text is still the one that was compiled.
"""

from __future__ import annotations
import __future__

import ast
import dis
import functools
import linecache
import warnings
from collections import defaultdict
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType

_FUTURE = functools.reduce(
    int.__or__, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_DOCUMENTED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_UNREAD = frozenset({"ctx", "kind", "type_comment"})


def definition(function: FunctionType) -> _Definition | None:
    """Find where a function is defined; None if its text is gone, or is another one by now.

    What is evaluated outside of it is left out: decorators, defaults and annotations are in no
    code that could tell whether their text is still the same. They count by what they made.
    """
    code = function.__code__
    for _ in range(2):
        text = "".join(linecache.getlines(code.co_filename, function.__globals__))
        found = _find(text, code)
        if found is not None:
            return _without_surroundings(found)
        linecache.checkcache(code.co_filename)  # it may remember the text of an earlier version
    return None


def tell(node: object) -> str:
    """Write a tree down, without positions and docstrings, alike in all versions of Python."""
    if isinstance(node, list):
        return f"[{','.join(map(tell, node))}]"
    if not isinstance(node, ast.AST):
        return hex(node) if type(node) is int else repr(node)
    fields = {
        name: value
        for name, value in ast.iter_fields(node)
        if name not in _UNREAD and not (value is None or (isinstance(value, list) and not value))
    }
    if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    told = ",".join(f"{name}={tell(value)}" for name, value in fields.items())
    return f"{type(node).__name__}({told})"


def chains(node: ast.AST) -> dict[str, set[tuple[str, ...]]]:
    """Return which attributes of each name are read, as in ``a.b.c``; () is the name by itself."""
    found: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    todo = [node]
    while todo:
        each = todo.pop()
        path: list[str] = []
        while isinstance(each, ast.Attribute):
            path.insert(0, each.attr)
            each = each.value
        if isinstance(each, ast.Name):
            found[each.id].add(tuple(path))
        else:
            todo.extend(ast.iter_child_nodes(each))
    return found


def imports(node: ast.AST, package: str | None) -> Iterator[tuple[str, str, str]]:
    """List what is imported inside: its name here, the module, and what is taken of it, if any."""
    for each in ast.walk(node):
        if isinstance(each, ast.Import):
            for alias in each.names:
                bound = alias.name if alias.asname else alias.name.partition(".")[0]
                yield alias.asname or bound, bound, ""
        elif isinstance(each, ast.ImportFrom):
            home = (package or "").rsplit(".", each.level - 1)[0] if each.level else ""
            module = ".".join(part for part in (home, each.module) if part)
            for alias in each.names:
                yield alias.asname or alias.name, module, alias.name


def code_within(code: CodeType) -> Iterator[CodeType]:
    """Walk a code object and those nested in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_within(constant)


def global_names(code: CodeType) -> set[str]:
    """Name the global variables that a code object reads, and those nested in it."""
    steps = (step for each in code_within(code) for step in dis.get_instructions(each))
    found = {(step.opname, step.argval) for step in steps if step.opname in _GLOBALS}
    return {name for _, name in found - {("LOAD_NAME", "__name__")}}  # as the module of a class


def contents(cell: CellType) -> tuple:
    """Return what an enclosed variable holds, in a tuple that is empty where it holds nothing."""
    try:
        return (cell.cell_contents,)
    except ValueError:  # it has none yet
        return ()


def _find(text: str, code: CodeType) -> _Definition | None:
    place = code.co_firstlineno, code.co_name
    definitions, compiled = _parsed(text, code.co_filename, code.co_flags & _FUTURE)
    if not any(_is_same(code, each) for each in compiled.get(place, ())):
        return None
    found = definitions.get(place, [])
    if len(found) > 1 and code.co_name == "<lambda>":  # they share the line
        spans = set(code.co_positions())
        found = [each for each in found if _span(each.body) in spans or _by_itself(each, code)]
    return found[0] if len(found) == 1 else None


@functools.lru_cache(maxsize=64)
def _parsed(text: str, filename: str, flags: int) -> tuple[dict, dict]:
    """Return definitions and code objects of a file, each by first line and name."""
    definitions: dict[tuple[int, str], list[_Definition]] = defaultdict(list)
    compiled: dict[tuple[int, str], list[CodeType]] = defaultdict(list)
    flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # in cells of a notebook
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a text that has been compiled before
        try:
            tree = compile(text, filename, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
            code = compile(tree, filename, "exec", flags, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError):
            return {}, {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            definitions[node.lineno, "<lambda>"].append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min(each.lineno for each in [node, *node.decorator_list])
            definitions[first, node.name].append(node)
    for each in code_within(code):
        compiled[each.co_firstlineno, each.co_name].append(each)
    return dict(definitions), dict(compiled)


def _without_surroundings(node: _Definition) -> _Definition:
    given = node.args
    args = ast.arguments(
        posonlyargs=[ast.arg(each.arg) for each in given.posonlyargs],
        args=[ast.arg(each.arg) for each in given.args],
        vararg=None if given.vararg is None else ast.arg(given.vararg.arg),
        kwonlyargs=[ast.arg(each.arg) for each in given.kwonlyargs],
        kw_defaults=[],
        kwarg=None if given.kwarg is None else ast.arg(given.kwarg.arg),
        defaults=[],
    )
    if isinstance(node, ast.Lambda):
        return ast.Lambda(args, node.body)
    return type(node)(node.name, args, node.body, [])


def _is_same(code: CodeType, other: CodeType) -> bool:
    return (
        code == other
        and code.co_qualname == other.co_qualname
        and list(code.co_positions()) == list(other.co_positions())
    )


def _by_itself(node: ast.Lambda, code: CodeType) -> bool:
    """Return whether a lambda makes this code; Python 3.12 gives a constant no position in it."""
    outer = compile(ast.Expression(node), code.co_filename, "eval", code.co_flags & _FUTURE, True)
    made = next(each for each in outer.co_consts if isinstance(each, CodeType))
    return made.replace(co_flags=code.co_flags, co_qualname=code.co_qualname) == code


def _span(node: ast.expr) -> tuple[int | None, ...]:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset
