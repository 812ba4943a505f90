"""Put the built docs beside those of other versions: python .ci/gather_site.py SITE VERSION ROOT.

SITE is a folder with one folder a version. ROOT is the path under which the site is served, such
as /skdp/. The list of versions, for the menu of the pages, and the page that leads to the newest
release are written anew.
"""

import json
import shutil
import sys
from pathlib import Path

BUILT = Path(__file__).parents[1] / "docs" / "_build" / "html"


def newest_first(name):
    """Sort releases by their numbers, and what is not released after them."""
    return [int(part) if part.isdigit() else -1 for part in name.split(".")]


def gather(site, version, root, built=BUILT):
    """Copy the built docs into the site, and write what joins the versions."""
    shutil.rmtree(site / version, ignore_errors=True)
    shutil.copytree(built, site / version)
    found = [page.parent.name for page in site.glob("*/index.html")]
    versions = sorted(found, key=newest_first, reverse=True)
    listed = [{"version": name, "url": f"{root}{name}/"} for name in versions]
    (site / "switcher.json").write_text(json.dumps(listed, indent=2))
    moved = f'<meta http-equiv="refresh" content="0; url={versions[0]}/">'
    (site / "index.html").write_text(f"<!doctype html><title>skdp</title>{moved}")
    (site / ".nojekyll").touch()


if __name__ == "__main__":
    gather(Path(sys.argv[1]), *sys.argv[2:])
