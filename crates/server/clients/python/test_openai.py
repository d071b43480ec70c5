"""The package `openai`, pointed at a Switchboard server."""

import asyncio
import copy
import json
import unittest

import openai
from pydantic import BaseModel

from scripted_model import ScriptedModel
from server import ASKING, CHANGE, FREE, QUESTION, SCRIPTED, TOKEN, VALUE, decide

MESSAGES = [{"role": "user", "content": QUESTION}]


def client(address: str = FREE, key: str = TOKEN) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0)


class Answers(unittest.TestCase):
    def test_a_whole_answer_says_what_the_tools_did(self):
        answer = client().chat.completions.create(model="default", messages=MESSAGES)
        choice = answer.choices[0]
        self.assertEqual(choice.finish_reason, "stop")
        self.assertIn(VALUE, choice.message.content)
        [call] = answer.switchboard["tool_calls"]
        self.assertEqual(call["server"], "customer-service")
        self.assertFalse(call["is_error"])

    def test_a_stream_is_the_same_answer(self):
        whole = client().chat.completions.create(model="default", messages=MESSAGES)
        stream = client().chat.completions.create(
            model="default",
            messages=MESSAGES,
            stream=True,
            stream_options={"include_usage": True},
        )
        text, reasons, events = "", [], []
        for chunk in stream:
            events.append(getattr(chunk, "switchboard", None))
            for choice in chunk.choices:
                text += choice.delta.content or ""
                reasons.append(choice.finish_reason)
        self.assertTrue(text.endswith(whole.choices[0].message.content), text)
        self.assertEqual([reason for reason in reasons if reason], ["stop"])
        kinds = [event["type"] for event in events if event]
        self.assertIn("tool_started", kinds)
        self.assertIn("tool_finished", kinds)

    def test_the_streaming_helper_collects_it(self):
        with client().chat.completions.stream(model="default", messages=MESSAGES) as stream:
            deltas = [event.delta for event in stream if event.type == "content.delta"]
            final = stream.get_final_completion()
        self.assertGreater(len(deltas), 1)
        self.assertEqual("".join(deltas), final.choices[0].message.content)
        self.assertIn(VALUE, final.choices[0].message.content)

    def test_the_asynchronous_client_streams_it_too(self):
        async def ask() -> str:
            remote = openai.AsyncOpenAI(base_url=f"{FREE}/v1", api_key=TOKEN, max_retries=0)
            async with remote:
                stream = await remote.chat.completions.create(
                    model="offline/planner", messages=MESSAGES, stream=True
                )
                return "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])

        self.assertIn(VALUE, asyncio.run(ask()))

    def test_a_conversation_goes_on_as_the_client_tells_it(self):
        first = client().chat.completions.create(model="default", messages=MESSAGES)
        messages = [
            {"role": "system", "content": "You answer for a shop."},
            *MESSAGES,
            first.choices[0].message.model_dump(exclude_none=True, include={"role", "content"}),
            {"role": "user", "content": "And what is the account value of customer 7?"},
        ]
        second = client().chat.completions.create(model="default", messages=messages)
        [call] = second.switchboard["tool_calls"]
        self.assertIn(7, call["input"].values())


class Models(unittest.TestCase):
    def test_the_list_and_one_of_it(self):
        models = client().models.list()
        self.assertIn("offline/planner", [model.id for model in models])
        model = client().models.retrieve("offline/planner")
        self.assertEqual((model.id, model.owned_by), ("offline/planner", "offline"))


class Approvals(unittest.TestCase):
    def ask(self, word: dict) -> tuple[str, dict]:
        """Streams an answer for which a tool needs a word; what it says, and the call's last event."""
        stream = client(ASKING).chat.completions.create(
            model="default", messages=[{"role": "user", "content": CHANGE}], stream=True
        )
        text, asked, last = "", 0, {}
        for chunk in stream:
            text += chunk.choices[0].delta.content or ""
            event = getattr(chunk, "switchboard", None) or {}
            if event.get("type") == "tool_awaiting_approval":
                asked += 1
                decide(event["run_id"], event["id"], word)
            if event.get("type") == "tool_finished":
                last = event
        self.assertEqual(asked, 1)
        return text, last

    def test_a_call_waits_for_a_word_while_the_stream_stays_open(self):
        text, last = self.ask({"decision": "allow"})
        self.assertFalse(last["is_error"], last)
        self.assertNotEqual(text, "")

    def test_a_call_that_is_declined_does_not_run(self):
        _, last = self.ask({"decision": "deny", "reason": "not today"})
        self.assertEqual(last["failure"], "denied")
        self.assertIn("not today", last["content"][0]["text"])


class ClientTools(unittest.TestCase):
    """A tool that runs at the client: its call ends the response, and the run goes on with its result."""

    QUESTION = [{"role": "user", "content": "What is the weather in Paris?"}]
    TOOLS = [
        {
            "type": "function",
            "function": {
                "name": "get_weather",
                "description": "Gets the current weather in a city.",
                "parameters": {
                    "type": "object",
                    "properties": {"city": {"type": "string", "description": "The city, such as Paris."}},
                    "required": ["city"],
                },
            },
        }
    ]

    def ask(self, messages: list, address: str = FREE, **more):
        return client(address).chat.completions.create(
            model="default", messages=messages, tools=self.TOOLS, **more
        )

    def test_a_call_and_its_result(self):
        first = self.ask(self.QUESTION)
        [choice] = first.choices
        self.assertEqual(choice.finish_reason, "tool_calls")
        [call] = choice.message.tool_calls
        self.assertEqual(call.function.name, "get_weather")
        self.assertEqual(json.loads(call.function.arguments), {"city": "Paris"})
        result = {"role": "tool", "tool_call_id": call.id, "content": "17 degrees and rain"}
        second = self.ask([*self.QUESTION, choice.message, result])
        self.assertEqual(second.choices[0].finish_reason, "stop")
        self.assertIn("17 degrees", second.choices[0].message.content)
        self.assertNotEqual(first.id, second.id)
        # It waited once. Whoever asks on has a conversation that is over.
        with self.assertRaises(openai.ConflictError):
            self.ask([*self.QUESTION, choice.message, result])
        more = [*self.QUESTION, choice.message, result, second.choices[0].message, *MESSAGES]
        self.assertIn(VALUE, self.ask(more).choices[0].message.content)

    def test_the_same_in_streams(self):
        with client().chat.completions.stream(model="default", messages=self.QUESTION, tools=self.TOOLS) as stream:
            first = stream.get_final_completion()
        [choice] = first.choices
        self.assertEqual(choice.finish_reason, "tool_calls")
        [call] = choice.message.tool_calls
        result = {"role": "tool", "tool_call_id": call.id, "content": "17 degrees and rain"}
        message = {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
            ],
        }
        stream = self.ask([*self.QUESTION, message, result], stream=True)
        chunks = [chunk for chunk in stream if chunk.choices]
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertIn("17 degrees", "".join(chunk.choices[0].delta.content or "" for chunk in chunks))

    def test_beside_a_tool_of_the_server_nothing_is_done_twice(self):
        question = [{"role": "user", "content": f"{CHANGE}. What is the weather in Paris?"}]
        ticket = {"customer_id": 42, "subject": "The invoice is wrong"}
        calls = [("customer-service__create_support_ticket", ticket), ("get_weather", {"city": "Paris"})]
        with ScriptedModel(calls, "It has 17 degrees.") as model:
            [choice] = self.ask(question, SCRIPTED).choices
            [call] = choice.message.tool_calls
            result = {"role": "tool", "tool_call_id": call.id, "content": "17 degrees and rain"}
            answer = self.ask([*question, choice.message, result], SCRIPTED)
        self.assertIn("17 degrees", answer.choices[0].message.content)
        # The model received each result once, in the order of its calls.
        results = [it["content"] for it in model.requests[-1]["messages"] if it["role"] == "tool"]
        self.assertEqual(len(results), 2)
        self.assertIn("Ticket", results[0])
        self.assertEqual(results[1], "17 degrees and rain")
        made = [call["tool"] for call in answer.switchboard["tool_calls"]]
        self.assertEqual(sorted(made), ["create_support_ticket", "get_weather"])

    def test_the_tools_of_the_server_are_there_too(self):
        answer = self.ask(MESSAGES)
        self.assertIn(VALUE, answer.choices[0].message.content)

    def test_a_name_that_the_server_has_itself_is_refused(self):
        tool = {"name": "customer-service__calculate_account_value", "parameters": {"type": "object"}}
        with self.assertRaises(openai.BadRequestError) as caught:
            client().chat.completions.create(
                model="default", messages=MESSAGES, tools=[{"type": "function", "function": tool}]
            )
        self.assertEqual(caught.exception.param, "tools")


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
        answer = client().chat.completions.parse(
            model="default", messages=MESSAGES, response_format=Account
        )
        [choice] = answer.choices
        self.assertEqual(choice.finish_reason, "stop")
        self.check(choice.message.parsed)

    def test_the_same_in_a_stream(self):
        with client().chat.completions.stream(
            model="default", messages=MESSAGES, response_format=Account
        ) as stream:
            final = stream.get_final_completion()
        self.check(final.choices[0].message.parsed)

    def test_any_json_object(self):
        answer = client().chat.completions.create(
            model="default", messages=MESSAGES, response_format={"type": "json_object"}
        )
        self.assertIsInstance(json.loads(answer.choices[0].message.content), dict)

    def test_beside_a_tool_of_the_client(self):
        class Weather(BaseModel):
            summary: str

        # The SDK parses the arguments of strict tools only, and takes no others.
        tools = copy.deepcopy(ClientTools.TOOLS)
        tools[0]["function"]["strict"] = True
        ask = {"model": "default", "tools": tools, "response_format": Weather}
        form = json.dumps({"summary": "17 degrees and rain"})
        with ScriptedModel([("get_weather", {"city": "Paris"})], form) as model:
            first = client(SCRIPTED).chat.completions.parse(messages=ClientTools.QUESTION, **ask)
            [call] = first.choices[0].message.tool_calls
            said = {"role": "assistant", "tool_calls": [call.model_dump(include={"id", "type", "function"})]}
            said["tool_calls"][0]["function"].pop("parsed_arguments", None)
            result = {"role": "tool", "tool_call_id": call.id, "content": "17 degrees and rain"}
            second = client(SCRIPTED).chat.completions.parse(messages=[*ClientTools.QUESTION, said, result], **ask)
        self.assertIn("17 degrees and rain", json.dumps(model.requests[1]["messages"]))
        self.assertIn("17 degrees", second.choices[0].message.parsed.summary)

    def test_what_is_no_schema_is_refused(self):
        wrong = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "no such type"}}}
        with self.assertRaises(openai.BadRequestError) as caught:
            client().chat.completions.create(model="default", messages=MESSAGES, response_format=wrong)
        self.assertEqual(caught.exception.param, "response_format")


class Errors(unittest.TestCase):
    def test_a_parameter_that_is_not_supported_is_named(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            client().chat.completions.create(model="default", messages=MESSAGES, n=2)
        self.assertEqual(caught.exception.param, "n")
        self.assertEqual(caught.exception.type, "invalid_request_error")

    def test_a_model_that_is_not_there(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            client().chat.completions.create(model="no-such-model", messages=MESSAGES)
        self.assertEqual(caught.exception.param, "model")

    def test_a_character_that_cannot_be_stored(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            client().chat.completions.create(
                model="default", messages=[{"role": "user", "content": "a\0b"}]
            )
        self.assertEqual(caught.exception.param, "messages")
        self.assertIn("U+0000", str(caught.exception))

    def test_a_body_that_does_not_fit(self):
        with self.assertRaises(openai.BadRequestError):
            client().chat.completions.create(model="default", messages=MESSAGES, temperature="hot")

    def test_a_wrong_key(self):
        with self.assertRaises(openai.AuthenticationError):
            client(key="not-the-token-of-anybody").models.list()


if __name__ == "__main__":
    unittest.main()
