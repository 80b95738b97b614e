"""Keeps notes in a running service by the generated client, with an API token from the environment.

    CELLKEEP_TOKEN=secret_svc_token_… python3 notes.py http://127.0.0.1:4040
"""

from __future__ import annotations

import os
import sys

from cellkeep_client import UNSET, CellkeepError, Client


def main(url: str) -> None:
    client = Client(url, os.environ["CELLKEEP_TOKEN"])
    print(f"Signed in as {client.account_verify()['username']}.")

    for number in (1, 2, 3):
        client.cell_create(kind="note", data={"label": f"Note {number}"})
    cursor: str | None = None
    labels: list[str] = []
    while True:
        page = client.cell_list(kind="note", limit=2, cursor=cursor)
        labels += [cell["data"]["label"] for cell in page["cells"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    print(f"Notes, newest first: {', '.join(labels)}.")

    note = client.cell_list(kind="note", limit=1)["cells"][0]
    changed = client.cell_update(cell_id=note["id"], data_patch={"label": "Note 3, changed"}, expected_version=1)
    print(f"{changed['cell']['data']['label']}, version {changed['cell']['version']}.")
    try:
        client.cell_update(cell_id=note["id"], data_patch={}, expected_version=1)
    except CellkeepError as error:
        print(f"Refused: {error.reason}, the cell is at version {error.data['current_version']}.")
    client.cell_delete(cell_id=note["id"])

    try:
        client.cell_get(id="not an id", path=UNSET)
    except CellkeepError as error:
        print(f"Refused: {error.reason}: {error.data['issues'][0]['message']}")
    try:
        client.account_purge(account_id=client.account_verify()["id"], confirm=True)
    except CellkeepError as error:
        print(f"Refused: {error.reason}.")
    try:
        Client(url).account_verify()
    except CellkeepError as error:
        print(f"Without a token: {error.reason}.")


if __name__ == "__main__":
    main(sys.argv[1])
