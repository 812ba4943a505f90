"""Make the notebooks of this folder from scripts of the gallery.

`make notebooks` runs them, and writes them with what they show. `make examples` calls this with
`--check`, which fails where a notebook is no longer what its script makes: the script is run.
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from sphinx_gallery.notebook import python_to_jupyter_cli

HERE = Path(__file__).parent
SOURCES = {
    "private_svm": "plot_private_svm.py",
    "private_kde": "plot_private_density.py",
    "private_table": "plot_private_table.py",
    "nothing_public": "plot_nothing_public.py",
}


def convert(name):
    """Return the notebook that the script makes, without outputs."""
    with TemporaryDirectory() as folder:
        script = Path(folder) / f"{name}.py"
        script.write_text((HERE.parent / SOURCES[name]).read_text(encoding="utf-8"), "utf-8")
        python_to_jupyter_cli([str(script)])
        notebook = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    return nbformat.from_dict({**notebook, "nbformat_minor": 5})


def run(notebook):
    """Run all cells in an empty folder, with figures drawn into the notebook."""
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    with TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=1200,
            kernel_name="python3",
            record_timing=False,
            resources={"metadata": {"path": folder}},
        )
        client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = tidy(cell.outputs)


def tidy(outputs):
    """Drop lines of progress, and join what is printed in a row without them."""
    kept = []
    for output in outputs:
        text = output.get("text", "")
        if output.get("name") == "stderr" and ("skdp: " in text or not text.strip()):
            continue
        if kept and kept[-1].get("name") == output.get("name") == "stdout":
            kept[-1].text += text
        else:
            kept.append(output)
    return kept


def text(notebook):
    """Return what a reader would write: the kinds and texts of the cells."""
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def main():
    """Write the notebooks, or check those that are written."""
    for name in SOURCES:
        path = HERE / f"{name}.ipynb"
        notebook = convert(name)
        if "--check" not in sys.argv:
            run(notebook)
            path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
        said = path.read_text(encoding="utf-8")
        if text(notebook) != text(nbformat.reads(said, as_version=4)):
            sys.exit(f"{path.name} is not what {SOURCES[name]} makes: run 'make notebooks'.")
        for line in said.splitlines():
            if any(place in line for place in (f"{Path.home()}/", "/tmp/", "site-packages")):
                sys.exit(f"{path.name} shows a place on this machine: {line}")


if __name__ == "__main__":
    main()
