"""What the pages of this folder share: their size, and the table at their end."""

import os
from itertools import zip_longest
from textwrap import wrap

FULL = os.environ.get("SKDP_PAPERS") == "full"  # `make papers`; else small enough for every build

WIDTHS = {"what": 26, "published": 20, "here": 18, "why different": 26}


def compare(*rows):
    """Print a table of what was published, what came out here, and why the two differ."""
    print("  ".join(title.ljust(width) for title, width in WIDTHS.items()).rstrip())
    for row in rows:
        print()
        cells = [wrap(cell, width) for cell, width in zip(row, WIDTHS.values(), strict=True)]
        for line in zip_longest(*cells, fillvalue=""):
            padded = (text.ljust(width) for text, width in zip(line, WIDTHS.values(), strict=True))
            print("  ".join(padded).rstrip())
