"""Resolves every annotation of the generated client, and compares its methods with the document of the service."""

from __future__ import annotations

import json
import sys
import typing
import urllib.request

import cellkeep_client as generated
from generate import identifier


def main(url: str) -> None:
    with urllib.request.urlopen(f"{url}/api/openrpc.json", timeout=30) as response:
        document = json.load(response)
    classes = [kind for kind in vars(generated).values() if typing.is_typeddict(kind) and kind.__module__ == generated.__name__]
    for kind in classes:
        typing.get_type_hints(kind, include_extras=True)
    for method in document["methods"]:
        hints = typing.get_type_hints(getattr(generated.Client, identifier(method["name"])))
        # Compared by count: a parameter named like a keyword gets another name in Python.
        assert len(hints) == len(method["params"]) + 1, method["name"]
    print(f"{len(document['methods'])} methods and {len(classes)} types resolve.")


if __name__ == "__main__":
    main(sys.argv[1])
