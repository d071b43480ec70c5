"""The package `anthropic`, pointed at a Switchboard server."""

import asyncio
import unittest

import anthropic
from pydantic import BaseModel

from server import ASKING, CHANGE, FREE, QUESTION, TOKEN, VALUE, decide

ASK = {"model": "default", "max_tokens": 1000, "messages": [{"role": "user", "content": QUESTION}]}


def client(address: str = FREE, key: str = TOKEN) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=address, api_key=key, max_retries=0)


class Answers(unittest.TestCase):
    def test_a_whole_message_says_what_the_tools_did(self):
        message = client().messages.create(**ASK)
        self.assertEqual((message.role, message.stop_reason), ("assistant", "end_turn"))
        self.assertIn(VALUE, message.content[-1].text)
        [call] = message.switchboard["tool_calls"]
        self.assertEqual(call["server"], "customer-service")

    def test_the_streaming_helper_collects_it(self):
        whole = client().messages.create(**ASK)
        with client().messages.stream(**ASK) as stream:
            pieces = list(stream.text_stream)
            final = stream.get_final_message()
        self.assertGreater(len(pieces), 1)
        self.assertEqual("".join(pieces), "".join(b.text for b in final.content if b.type == "text"))
        self.assertEqual(final.content[-1].text, whole.content[-1].text)
        self.assertEqual(final.stop_reason, "end_turn")

    def test_a_plain_stream_has_its_events_in_order(self):
        kinds = [event.type for event in client().messages.create(**ASK, stream=True)]
        self.assertEqual((kinds[0], kinds[-2], kinds[-1]), ("message_start", "message_delta", "message_stop"))
        self.assertIn("content_block_delta", kinds)

    def test_the_asynchronous_client_streams_it_too(self):
        async def ask() -> str:
            async with anthropic.AsyncAnthropic(base_url=FREE, api_key=TOKEN, max_retries=0) as remote:
                async with remote.messages.stream(**ASK) as stream:
                    return await stream.get_final_text()

        self.assertIn(VALUE, asyncio.run(ask()))

    def test_a_token_as_a_bearer_is_one_too(self):
        remote = anthropic.Anthropic(base_url=FREE, auth_token=TOKEN, api_key=None, max_retries=0)
        self.assertIn(VALUE, remote.messages.create(**ASK).content[-1].text)

    def test_a_conversation_goes_on_as_the_client_tells_it(self):
        first = client().messages.create(**ASK)
        messages = [
            *ASK["messages"],
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": "And what is the account value of customer 7?"},
        ]
        ask = {**ASK, "messages": messages, "system": "You answer for a shop."}
        [call] = client().messages.create(**ask).switchboard["tool_calls"]
        self.assertIn(7, call["input"].values())


class Models(unittest.TestCase):
    def test_the_list(self):
        [model] = [model for model in client().models.list() if model.id == "offline/planner"]
        self.assertEqual((model.type, model.display_name), ("model", "planner"))


class Approvals(unittest.TestCase):
    def test_a_call_waits_for_a_word_while_the_stream_stays_open(self):
        ask = {**ASK, "messages": [{"role": "user", "content": CHANGE}]}
        # The SDK skips what it does not need, so this reads the stream as it comes.
        with client(ASKING).messages.with_streaming_response.create(**ask, stream=True) as response:
            finished = self.follow(response.iter_lines())
        self.assertFalse(finished["is_error"], finished)

    def follow(self, lines) -> dict:
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
    """A tool that runs at the client: its call ends the response, and the run goes on with its result."""

    ASK = {
        **ASK,
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

    def go_on(self, first, ask) -> str:
        self.assertEqual(first.stop_reason, "tool_use")
        call = first.content[-1]
        self.assertEqual((call.type, call.name, call.input), ("tool_use", "get_weather", {"city": "Paris"}))
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "17 degrees and rain"}
        messages = [
            *self.ASK["messages"],
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [result]},
        ]
        second = ask({**self.ASK, "messages": messages})
        self.assertEqual(second.stop_reason, "end_turn")
        return second.content[-1].text

    def test_a_call_and_its_result(self):
        def ask(request):
            return client().messages.create(**request)

        self.assertIn("17 degrees", self.go_on(ask(self.ASK), ask))

    def test_the_same_in_streams(self):
        def ask(request):
            with client().messages.stream(**request) as stream:
                return stream.get_final_message()

        self.assertIn("17 degrees", self.go_on(ask(self.ASK), ask))


class Account(BaseModel):
    customer_id: int
    customer_name: str
    account_value: str
    account_value_cents: int
    currency: str


class Forms(unittest.TestCase):
    """Answers in a form that the client asks for."""

    def check(self, account: Account) -> None:
        self.assertEqual((account.customer_id, account.currency), (42, "EUR"))
        self.assertEqual((account.account_value, account.account_value_cents), (VALUE, 53019))
        self.assertNotEqual(account.customer_name, "")

    def test_an_answer_is_parsed(self):
        message = client().messages.parse(**ASK, output_format=Account)
        self.assertEqual(message.stop_reason, "end_turn")
        self.check(message.parsed_output)

    def test_the_same_in_a_stream(self):
        with client().messages.stream(**ASK, output_format=Account) as stream:
            final = stream.get_final_message()
        self.check(final.parsed_output)

    def test_what_is_no_schema_is_refused(self):
        wrong = {"format": {"type": "json_schema", "schema": {"type": "no such type"}}}
        with self.assertRaises(anthropic.BadRequestError) as caught:
            client().messages.create(**ASK, output_config=wrong)
        self.assertIn("output_config", str(caught.exception))


class Errors(unittest.TestCase):
    def test_a_parameter_that_is_not_supported_is_named(self):
        with self.assertRaises(anthropic.BadRequestError) as caught:
            client().messages.create(**ASK, extra_body={"top_k": 5})
        error = caught.exception.body["error"]
        self.assertEqual(error["type"], "invalid_request_error")
        self.assertIn("top_k", error["message"])

    def test_a_model_that_is_not_there(self):
        with self.assertRaises(anthropic.NotFoundError):
            client().messages.create(**{**ASK, "model": "no-such-model"})

    def test_a_wrong_key(self):
        with self.assertRaises(anthropic.AuthenticationError):
            client(key="not-the-token-of-anybody").messages.create(**ASK)


if __name__ == "__main__":
    unittest.main()
