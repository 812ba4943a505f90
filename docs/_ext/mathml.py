"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

import re
from html import escape

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)

# Common commands that docutils does not know, by ones that it does.
ALIASES = {r"\\dots\b": r"\\ldots"}


def to_mathml(text, node, **options):
    """Translate LaTeX; a formula that cannot be translated is a warning, thus an error."""
    for command, known in ALIASES.items():
        text = re.sub(command, known, text)
    try:
        return latex2mathml.tex2mathml(text, **options)
    except MathError as error:
        logger.warning("formula %r: %s", text, error, location=node)
        return f"<code>{escape(text)}</code>"


def visit_inline(translator, node):
    """Write an inline formula."""
    translator.body.append(to_mathml(node.astext(), node))
    raise nodes.SkipNode


def visit_block(translator, node):
    """Write a displayed formula, aligned when it has several lines."""
    text = node.astext()
    if r"\\" in text and r"\begin" not in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    body = to_mathml(text, node, as_block=True)
    number = f'<span class="eqno">({node["number"]})</span>' if node["number"] else ""
    translator.body.append(translator.starttag(node, "div", CLASS="math-block"))
    translator.body.append(f"{number}{body}</div>\n")
    raise nodes.SkipNode


def setup(app):
    """Register the renderer and choose it."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
