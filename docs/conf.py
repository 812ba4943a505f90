"""Configuration of the documentation, built by `make docs` with warnings as errors."""

import multiprocessing
import os
import re
import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
from docutils import nodes

import skdp
from skdp.accounting.payer import forget_releases
from skdp.displays.drawing import BLUE, VERMILION
from skdp.estimators.catalog import refused_classes

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "skdp"
author = "The skdp developers"
copyright = "2026, the skdp developers"
version = release = skdp.__version__

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = [
    "_build",
    "_ext",
    "_templates",
    "auto_examples/GALLERY_HEADER.rst",
    "generated/*.md",
]
templates_path = ["_templates"]
default_role = "literal"
suppress_warnings = ["config.cache"]
# References to other libraries cannot be looked up without a network; our own must resolve.
nitpick_ignore_regex = [("py:.*", r"(?!skdp).*")]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# In the order of the guide: start, choose, understand, verify; the papers by their year.
GALLERY = [
    "plot_private_svm.py",
    "plot_private_table.py",
    "plot_nothing_public.py",
    "plot_large_table.py",
    "plot_private_density.py",
    "plot_before_and_after.py",
    "plot_which_promise.py",
    "plot_persons.py",
    "plot_plain_privacy.py",
    "plot_any_estimator.py",
    "plot_private_kernel_svm.py",
    "plot_private_kmeans_pca.py",
    "plot_public_code.py",
    "plot_budget.py",
    "plot_audit_estimator.py",
    "plot_calibration.py",
    "plot_sampled_means.py",
    "plot_sampled_svm.py",
    "plot_kde_experiment.py",
    "plot_three_black_boxes.py",
    "plot_privacy_at_risk.py",
    "plot_privacy_loss.py",
    "plot_compensation.py",
    "plot_local_precision.py",
]


def place_in_gallery(script):
    """Return where an example stands; one that is not listed fails the build."""
    return GALLERY.index(Path(script).name)


def use_distinct_colors(gallery_conf, script):
    """Draw every figure of the gallery in colors that the color-blind tell apart."""
    colors = [BLUE, "#E69F00", "#009E73", VERMILION, "#CC79A7", "#56B4E9"]  # the same authors'
    plt.rcParams["axes.prop_cycle"] = plt.cycler(color=colors)


def begin_with_no_release(gallery_conf, script):
    """Let each example count its own releases only, as where it runs alone."""
    forget_releases()
    multiprocessing.parent_process = lambda: None  # no worker of another script's budget


def raise_warnings(gallery_conf, script, when):
    """Let a warning of an example fail the build; warnings of Sphinx are printed."""
    warnings.simplefilter("error" if when == "before" else "default")


sphinx_gallery_conf = {
    "parallel": True,  # as many scripts at a time as Sphinx has jobs
    "reset_modules": (raise_warnings, "matplotlib", use_distinct_colors, begin_with_no_release),
    "reset_modules_order": "both",
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "within_subsection_order": place_in_gallery,
    "ignore_pattern": r"__init__\.py|reproduced\.py|(?<!_)at_risk\.py",  # what pages import
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("skdp",),
    "reference_url": {"skdp": None},
    "show_signature": False,
    "write_computation_times": False,
    "plot_gallery": True,
    "thumbnail_size": (800, 560),
    "abort_on_example_error": False,
}

html_theme = "pydata_sphinx_theme"
html_title = f"skdp {release}"
html_static_path = ["_static"]
html_css_files = ["skdp.css"]
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
WITHOUT_SIDEBAR = [
    *(
        "index",
        "quickstart",
        "api",
        "limitations",
        "glossary",
        "contributing",
        "development",
        "changelog",
        "dependencies",
        "references",
    ),
    "auto_examples/**",
]
html_sidebars = {page: [] for page in WITHOUT_SIDEBAR}
html_theme_options = {
    "logo": {"text": "skdp"},
    "navbar_align": "left",
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
if root := os.environ.get("SKDP_DOCS_ROOT"):  # where the site of all versions is served
    shown_as = os.environ["SKDP_DOCS_VERSION"].removeprefix("v")
    html_theme_options |= {
        "switcher": {"json_url": f"{root}switcher.json", "version_match": shown_as},
        "check_switcher": False,  # the list of versions is written after the build
        "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    }


def skip_members_of_others(app, what, name, obj, skip, options):
    """Leave out what a class has from scikit-learn."""
    home = str(getattr(getattr(obj, "fget", obj), "__module__", None) or "skdp")
    return True if name.endswith("_request") or not home.startswith("skdp") else None


def supported_as_markdown():
    """Return the supported classes in Markdown."""
    rows = [
        f"| {line.name} | {line.kind.replace('_', ' ')} | "
        f"{', '.join(f'`{name}`' for name in line.released) or 'nothing'} | {line.numbers} |"
        for line in skdp.supported_estimators()
    ]
    heading = ["| Estimator | Kind | Released | Numbers |", "| --- | --- | --- | --- |"]
    return "\n".join(heading + rows) + "\n"


def refused_as_markdown():
    """Return the refused classes in Markdown, with the reason and what is possible."""
    refused = {kind.__name__: str(entry.refuse) for kind, entry in refused_classes().items()}
    rows = [
        f"| {name} | {reason[0].upper()}{reason[1:]}. |"
        for name, reason in sorted(refused.items(), key=lambda item: item[0].lower())
    ]
    return "\n".join(["| Estimator | Why, and what is possible |", "| --- | --- |", *rows]) + "\n"


def write_tables(app):
    """Write the tables of estimators, which pages include, from the catalog."""
    folder = HERE / "generated"
    folder.mkdir(exist_ok=True)
    (folder / "supported_estimators.md").write_text(supported_as_markdown(), encoding="utf-8")
    (folder / "refused_estimators.md").write_text(refused_as_markdown(), encoding="utf-8")


def link_to_gallery(app, docname, source):
    """Let links to the scripts of examples, which serve readers of the repository, be of pages."""
    page = re.compile(r"\]\(\.\./((?:\.\./)*)examples/(papers/)?(?:(plot_\w+)\.py)?\)")
    source[0] = page.sub(
        lambda found: "]({}auto_examples/{}{})".format(
            found[1], found[2] or "", found[3] or "index"
        ),
        source[0],
    )


def trim_sessions(app, doctree):
    """Remove the empty line that ends a session, for doctest, before its fence."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip()
        block.rawsource, block.children = text, [nodes.Text(text)]


def let_cells_wrap(app, doctree):
    """Let rows of numbers in a table, such as .1/.3/1, be broken after a slash."""
    for entry in doctree.findall(nodes.entry):
        for text in list(entry.findall(nodes.Text)):
            if re.search(r"\d/[-.<\d]", text) and not isinstance(text.parent, nodes.math):
                text.parent.replace(text, nodes.Text(text.replace("/", "/\u200b")))


def setup(app):
    """Connect the hooks of this file."""
    app.connect("doctree-read", trim_sessions)
    app.connect("doctree-read", let_cells_wrap)
    app.connect("builder-inited", write_tables)
    app.connect("source-read", link_to_gallery)
    app.connect("autodoc-skip-member", skip_members_of_others)
