"""The servers that the tests talk to: `cargo xtask clients` starts them and says where they are."""

import json
import os
import urllib.request

# Nothing needs a person's word here.
FREE = os.environ["SWITCHBOARD_URL"]
# Here tools that change something do.
ASKING = os.environ["SWITCHBOARD_ASKING_URL"]
# The model of this server is a `ScriptedModel`.
SCRIPTED = os.environ["SWITCHBOARD_SCRIPTED_URL"]
TOKEN = os.environ["SWITCHBOARD_TOKEN"]

QUESTION = "What is the account value of customer 42?"
# What the bundled customer-service server says of customer 42.
VALUE = "530.19"
CHANGE = 'Create a support ticket for customer 42 with the subject "The invoice is wrong"'


def decide(run: str, call: str, word: dict) -> None:
    """Says a word about a tool call, as a person would in the web page."""
    request = urllib.request.Request(
        f"{ASKING}/runs/{run}/approvals/{call}",
        data=json.dumps(word).encode(),
        headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
        method="POST",
    )
    with urllib.request.urlopen(request) as response:
        assert response.status == 202, response.status
