"""Tests of the package `anthropic` against a Switchboard server."""

import asyncio
import unittest

import anthropic
from pydantic import BaseModel

from server import (
    ACCOUNT_QUESTION,
    ACCOUNT_VALUE,
    APPROVAL_URL,
    AUTO_APPROVE_URL,
    TICKET_REQUEST,
    TOKEN,
    decide,
)

REQUEST = {
    "model": "default",
    "max_tokens": 1000,
    "messages": [{"role": "user", "content": ACCOUNT_QUESTION}],
}


def client(server_url: str = AUTO_APPROVE_URL, key: str = TOKEN) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server_url, api_key=key, max_retries=0)


class Answers(unittest.TestCase):
    def test_a_message_lists_its_tool_calls(self):
        message = client().messages.create(**REQUEST)
        self.assertEqual((message.role, message.stop_reason), ("assistant", "end_turn"))
        self.assertIn(ACCOUNT_VALUE, message.content[-1].text)
        [call] = message.switchboard["tool_calls"]
        self.assertEqual(call["server"], "customer-service")

    def test_the_streaming_helper_collects_the_message(self):
        whole = client().messages.create(**REQUEST)
        with client().messages.stream(**REQUEST) as stream:
            pieces = list(stream.text_stream)
            final = stream.get_final_message()
        self.assertGreater(len(pieces), 1)
        self.assertEqual("".join(pieces), "".join(b.text for b in final.content if b.type == "text"))
        self.assertEqual(final.content[-1].text, whole.content[-1].text)
        self.assertEqual(final.stop_reason, "end_turn")

    def test_a_raw_stream_has_its_events_in_order(self):
        kinds = [event.type for event in client().messages.create(**REQUEST, stream=True)]
        self.assertEqual((kinds[0], kinds[-2], kinds[-1]), ("message_start", "message_delta", "message_stop"))
        self.assertIn("content_block_delta", kinds)

    def test_the_async_client_streams_a_message(self):
        async def ask() -> str:
            async with anthropic.AsyncAnthropic(
                base_url=AUTO_APPROVE_URL, api_key=TOKEN, max_retries=0
            ) as async_client:
                async with async_client.messages.stream(**REQUEST) as stream:
                    return await stream.get_final_text()

        self.assertIn(ACCOUNT_VALUE, asyncio.run(ask()))

    def test_a_bearer_token_is_accepted(self):
        bearer_client = anthropic.Anthropic(
            base_url=AUTO_APPROVE_URL, auth_token=TOKEN, api_key=None, max_retries=0
        )
        self.assertIn(ACCOUNT_VALUE, bearer_client.messages.create(**REQUEST).content[-1].text)

    def test_a_conversation_continues_from_the_messages_of_the_client(self):
        first = client().messages.create(**REQUEST)
        messages = [
            *REQUEST["messages"],
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": "And what is the account value of customer 7?"},
        ]
        request = {**REQUEST, "messages": messages, "system": "You answer for a shop."}
        [call] = client().messages.create(**request).switchboard["tool_calls"]
        self.assertIn(7, call["input"].values())


class Models(unittest.TestCase):
    def test_models_are_listed(self):
        [model] = [model for model in client().models.list() if model.id == "offline/planner"]
        self.assertEqual((model.type, model.display_name), ("model", "planner"))


class Approvals(unittest.TestCase):
    def test_the_stream_stays_open_while_a_call_waits_for_approval(self):
        request = {**REQUEST, "messages": [{"role": "user", "content": TICKET_REQUEST}]}
        # The SDK drops the extra data of ping events, so this reads the raw stream.
        with client(APPROVAL_URL).messages.with_streaming_response.create(
            **request, stream=True
        ) as response:
            finished = self.approve(response.iter_lines())
        self.assertFalse(finished["is_error"], finished)

    def approve(self, lines) -> dict:
        """Allows each call that waits for approval. Returns the event of the last finished call."""
        import json

        last = {}
        for line in lines:
            data = json.loads(line[6:]) if line.startswith("data: ") else {}
            event = data.get("switchboard", {}) if data.get("type") == "ping" else {}
            if event.get("type") == "tool_awaiting_approval":
                decide(event["run_id"], event["id"], {"decision": "allow"})
            if event.get("type") == "tool_finished":
                last = event
        return last


class ClientTools(unittest.TestCase):
    """A client tool call ends the response. The request with its result continues the run."""

    REQUEST = {
        **REQUEST,
        "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
        "tools": [
            {
                "name": "get_weather",
                "description": "Gets the current weather in a city.",
                "input_schema": {
                    "type": "object",
                    "properties": {"city": {"type": "string", "description": "The city, such as Paris."}},
                    "required": ["city"],
                },
            }
        ],
    }

    def send_result(self, first, ask) -> str:
        """Sends the result of the call in the first response. Returns the final text."""
        self.assertEqual(first.stop_reason, "tool_use")
        call = first.content[-1]
        self.assertEqual((call.type, call.name, call.input), ("tool_use", "get_weather", {"city": "Paris"}))
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "17 degrees and rain"}
        messages = [
            *self.REQUEST["messages"],
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [result]},
        ]
        second = ask({**self.REQUEST, "messages": messages})
        self.assertEqual(second.stop_reason, "end_turn")
        return second.content[-1].text

    def test_a_result_completes_the_answer(self):
        def ask(request):
            return client().messages.create(**request)

        self.assertIn("17 degrees", self.send_result(ask(self.REQUEST), ask))

    def test_a_result_completes_the_answer_in_streams(self):
        def ask(request):
            with client().messages.stream(**request) as stream:
                return stream.get_final_message()

        self.assertIn("17 degrees", self.send_result(ask(self.REQUEST), ask))


class Account(BaseModel):
    customer_id: int
    customer_name: str
    account_value: str
    account_value_cents: int
    currency: str


class StructuredOutput(unittest.TestCase):
    def assert_account(self, account: Account) -> None:
        self.assertEqual((account.customer_id, account.currency), (42, "EUR"))
        self.assertEqual((account.account_value, account.account_value_cents), (ACCOUNT_VALUE, 53019))
        self.assertNotEqual(account.customer_name, "")

    def test_an_answer_matches_the_schema(self):
        message = client().messages.parse(**REQUEST, output_format=Account)
        self.assertEqual(message.stop_reason, "end_turn")
        self.assert_account(message.parsed_output)

    def test_a_streamed_answer_matches_the_schema(self):
        with client().messages.stream(**REQUEST, output_format=Account) as stream:
            final = stream.get_final_message()
        self.assert_account(final.parsed_output)

    def test_an_invalid_schema_is_rejected(self):
        invalid_config = {"format": {"type": "json_schema", "schema": {"type": "no such type"}}}
        with self.assertRaises(anthropic.BadRequestError) as caught:
            client().messages.create(**REQUEST, output_config=invalid_config)
        self.assertIn("output_config", str(caught.exception))


class Errors(unittest.TestCase):
    def test_an_unsupported_parameter_is_named(self):
        with self.assertRaises(anthropic.BadRequestError) as caught:
            client().messages.create(**REQUEST, extra_body={"top_k": 5})
        error = caught.exception.body["error"]
        self.assertEqual(error["type"], "invalid_request_error")
        self.assertIn("top_k", error["message"])

    def test_an_unknown_model_is_rejected(self):
        with self.assertRaises(anthropic.NotFoundError):
            client().messages.create(**{**REQUEST, "model": "no-such-model"})

    def test_an_invalid_key_is_rejected(self):
        with self.assertRaises(anthropic.AuthenticationError):
            client(key="not-the-token-of-anybody").messages.create(**REQUEST)


if __name__ == "__main__":
    unittest.main()
