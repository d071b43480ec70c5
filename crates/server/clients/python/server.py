"""The servers under test. `cargo xtask clients` starts them and sets the environment variables."""

import json
import os
import urllib.request

# Allows all tool calls.
AUTO_APPROVE_URL = os.environ["SWITCHBOARD_URL"]
# Requires approval for tools that change data.
APPROVAL_URL = os.environ["SWITCHBOARD_ASKING_URL"]
# Uses a `ScriptedModel`.
SCRIPTED_URL = os.environ["SWITCHBOARD_SCRIPTED_URL"]
TOKEN = os.environ["SWITCHBOARD_TOKEN"]

ACCOUNT_QUESTION = "What is the account value of customer 42?"
# Result of the bundled customer-service server for ACCOUNT_QUESTION.
ACCOUNT_VALUE = "530.19"
TICKET_REQUEST = 'Create a support ticket for customer 42 with the subject "The invoice is wrong"'


def decide(run_id: str, call_id: str, decision: dict) -> None:
    """Sends an approval decision for a tool call, like the web page."""
    request = urllib.request.Request(
        f"{APPROVAL_URL}/runs/{run_id}/approvals/{call_id}",
        data=json.dumps(decision).encode(),
        headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
        method="POST",
    )
    with urllib.request.urlopen(request) as response:
        assert response.status == 202, response.status
