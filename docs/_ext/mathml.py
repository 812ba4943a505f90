"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

from docutils import nodes
from docutils.utils.math import latex2mathml


def visit_inline(translator, node):
    """Write an inline formula."""
    translator.body.append(latex2mathml.tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_block(translator, node):
    """Write a displayed formula, aligned when it has several lines."""
    text = node.astext()
    if r"\\" in text and r"\begin" not in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    body = latex2mathml.tex2mathml(text, as_block=True)
    translator.body.append(f'<div class="math-block">{body}</div>\n')
    raise nodes.SkipNode


def setup(app):
    """Register the renderer and choose it."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
