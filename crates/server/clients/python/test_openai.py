"""Tests of the package `openai` against a Switchboard server."""

import asyncio
import copy
import json
import unittest

import openai
from pydantic import BaseModel

from scripted_model import ScriptedModel
from server import (
    ACCOUNT_QUESTION,
    ACCOUNT_VALUE,
    APPROVAL_URL,
    AUTO_APPROVE_URL,
    SCRIPTED_URL,
    TICKET_REQUEST,
    TOKEN,
    decide,
)

MESSAGES = [{"role": "user", "content": ACCOUNT_QUESTION}]


def client(server_url: str = AUTO_APPROVE_URL, key: str = TOKEN) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server_url}/v1", api_key=key, max_retries=0)


class Answers(unittest.TestCase):
    def test_an_answer_lists_its_tool_calls(self):
        answer = client().chat.completions.create(model="default", messages=MESSAGES)
        choice = answer.choices[0]
        self.assertEqual(choice.finish_reason, "stop")
        self.assertIn(ACCOUNT_VALUE, choice.message.content)
        [call] = answer.switchboard["tool_calls"]
        self.assertEqual(call["server"], "customer-service")
        self.assertFalse(call["is_error"])

    def test_a_stream_ends_with_the_same_answer(self):
        whole = client().chat.completions.create(model="default", messages=MESSAGES)
        stream = client().chat.completions.create(
            model="default",
            messages=MESSAGES,
            stream=True,
            stream_options={"include_usage": True},
        )
        text, finish_reasons, events = "", [], []
        for chunk in stream:
            events.append(getattr(chunk, "switchboard", None))
            for choice in chunk.choices:
                text += choice.delta.content or ""
                finish_reasons.append(choice.finish_reason)
        self.assertTrue(text.endswith(whole.choices[0].message.content), text)
        self.assertEqual([reason for reason in finish_reasons if reason], ["stop"])
        kinds = [event["type"] for event in events if event]
        self.assertIn("tool_started", kinds)
        self.assertIn("tool_finished", kinds)

    def test_the_streaming_helper_collects_the_answer(self):
        with client().chat.completions.stream(model="default", messages=MESSAGES) as stream:
            deltas = [event.delta for event in stream if event.type == "content.delta"]
            final = stream.get_final_completion()
        self.assertGreater(len(deltas), 1)
        self.assertEqual("".join(deltas), final.choices[0].message.content)
        self.assertIn(ACCOUNT_VALUE, final.choices[0].message.content)

    def test_the_async_client_streams_an_answer(self):
        async def ask() -> str:
            async_client = openai.AsyncOpenAI(
                base_url=f"{AUTO_APPROVE_URL}/v1", api_key=TOKEN, max_retries=0
            )
            async with async_client:
                stream = await async_client.chat.completions.create(
                    model="offline/planner", messages=MESSAGES, stream=True
                )
                return "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])

        self.assertIn(ACCOUNT_VALUE, asyncio.run(ask()))

    def test_a_conversation_continues_from_the_messages_of_the_client(self):
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
    def test_models_are_listed_and_retrieved(self):
        models = client().models.list()
        self.assertIn("offline/planner", [model.id for model in models])
        model = client().models.retrieve("offline/planner")
        self.assertEqual((model.id, model.owned_by), ("offline/planner", "offline"))


class Approvals(unittest.TestCase):
    def ask(self, decision: dict) -> tuple[str, dict]:
        """Sends the decision for one call. Returns the streamed text and the call's last event."""
        stream = client(APPROVAL_URL).chat.completions.create(
            model="default", messages=[{"role": "user", "content": TICKET_REQUEST}], stream=True
        )
        text, approval_requests, last_event = "", 0, {}
        for chunk in stream:
            text += chunk.choices[0].delta.content or ""
            event = getattr(chunk, "switchboard", None) or {}
            if event.get("type") == "tool_awaiting_approval":
                approval_requests += 1
                decide(event["run_id"], event["id"], decision)
            if event.get("type") == "tool_finished":
                last_event = event
        self.assertEqual(approval_requests, 1)
        return text, last_event

    def test_the_stream_stays_open_while_a_call_waits_for_approval(self):
        text, event = self.ask({"decision": "allow"})
        self.assertFalse(event["is_error"], event)
        self.assertNotEqual(text, "")

    def test_a_denied_call_does_not_run(self):
        _, event = self.ask({"decision": "deny", "reason": "not today"})
        self.assertEqual(event["failure"], "denied")
        self.assertIn("not today", event["content"][0]["text"])


class ClientTools(unittest.TestCase):
    """A client tool call ends the response. The request with its result continues the run."""

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

    def ask(self, messages: list, server_url: str = AUTO_APPROVE_URL, **options):
        return client(server_url).chat.completions.create(
            model="default", messages=messages, tools=self.TOOLS, **options
        )

    def test_a_result_completes_the_answer(self):
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
        # The server accepts the result only once. A later question continues the conversation.
        with self.assertRaises(openai.ConflictError):
            self.ask([*self.QUESTION, choice.message, result])
        messages = [*self.QUESTION, choice.message, result, second.choices[0].message, *MESSAGES]
        self.assertIn(ACCOUNT_VALUE, self.ask(messages).choices[0].message.content)

    def test_a_result_completes_the_answer_in_streams(self):
        with client().chat.completions.stream(
            model="default", messages=self.QUESTION, tools=self.TOOLS
        ) as stream:
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

    def test_server_and_client_calls_of_one_step_run_once(self):
        question = [{"role": "user", "content": f"{TICKET_REQUEST}. What is the weather in Paris?"}]
        ticket = {"customer_id": 42, "subject": "The invoice is wrong"}
        calls = [("customer-service__create_support_ticket", ticket), ("get_weather", {"city": "Paris"})]
        with ScriptedModel(calls, "It has 17 degrees.") as model:
            [choice] = self.ask(question, SCRIPTED_URL).choices
            [call] = choice.message.tool_calls
            result = {"role": "tool", "tool_call_id": call.id, "content": "17 degrees and rain"}
            answer = self.ask([*question, choice.message, result], SCRIPTED_URL)
        self.assertIn("17 degrees", answer.choices[0].message.content)
        # The model received each result once, in the order of its calls.
        messages = model.requests[-1]["messages"]
        results = [message["content"] for message in messages if message["role"] == "tool"]
        self.assertEqual(len(results), 2)
        self.assertIn("Ticket", results[0])
        self.assertEqual(results[1], "17 degrees and rain")
        tools = [call["tool"] for call in answer.switchboard["tool_calls"]]
        self.assertEqual(sorted(tools), ["create_support_ticket", "get_weather"])

    def test_server_tools_stay_available(self):
        answer = self.ask(MESSAGES)
        self.assertIn(ACCOUNT_VALUE, answer.choices[0].message.content)

    def test_the_name_of_a_server_tool_is_rejected(self):
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


class StructuredOutput(unittest.TestCase):
    def assert_account(self, account: Account) -> None:
        self.assertEqual((account.customer_id, account.currency), (42, "EUR"))
        self.assertEqual((account.account_value, account.account_value_cents), (ACCOUNT_VALUE, 53019))
        self.assertNotEqual(account.customer_name, "")

    def test_an_answer_matches_the_schema(self):
        answer = client().chat.completions.parse(
            model="default", messages=MESSAGES, response_format=Account
        )
        [choice] = answer.choices
        self.assertEqual(choice.finish_reason, "stop")
        self.assert_account(choice.message.parsed)

    def test_a_streamed_answer_matches_the_schema(self):
        with client().chat.completions.stream(
            model="default", messages=MESSAGES, response_format=Account
        ) as stream:
            final = stream.get_final_completion()
        self.assert_account(final.choices[0].message.parsed)

    def test_an_answer_is_a_json_object(self):
        answer = client().chat.completions.create(
            model="default", messages=MESSAGES, response_format={"type": "json_object"}
        )
        self.assertIsInstance(json.loads(answer.choices[0].message.content), dict)

    def test_structured_output_works_with_a_client_tool(self):
        class Weather(BaseModel):
            summary: str

        # The SDK's `parse` accepts only strict tools.
        tools = copy.deepcopy(ClientTools.TOOLS)
        tools[0]["function"]["strict"] = True
        options = {"model": "default", "tools": tools, "response_format": Weather}
        answer = json.dumps({"summary": "17 degrees and rain"})
        with ScriptedModel([("get_weather", {"city": "Paris"})], answer) as model:
            first = client(SCRIPTED_URL).chat.completions.parse(
                messages=ClientTools.QUESTION, **options
            )
            [call] = first.choices[0].message.tool_calls
            call_dict = call.model_dump(include={"id", "type", "function"})
            call_dict["function"].pop("parsed_arguments", None)
            message = {"role": "assistant", "tool_calls": [call_dict]}
            result = {"role": "tool", "tool_call_id": call.id, "content": "17 degrees and rain"}
            second = client(SCRIPTED_URL).chat.completions.parse(
                messages=[*ClientTools.QUESTION, message, result], **options
            )
        self.assertIn("17 degrees and rain", json.dumps(model.requests[1]["messages"]))
        self.assertIn("17 degrees", second.choices[0].message.parsed.summary)

    def test_an_invalid_schema_is_rejected(self):
        invalid_format = {
            "type": "json_schema",
            "json_schema": {"name": "x", "schema": {"type": "no such type"}},
        }
        with self.assertRaises(openai.BadRequestError) as caught:
            client().chat.completions.create(
                model="default", messages=MESSAGES, response_format=invalid_format
            )
        self.assertEqual(caught.exception.param, "response_format")


class Errors(unittest.TestCase):
    def test_an_unsupported_parameter_is_named(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            client().chat.completions.create(model="default", messages=MESSAGES, n=2)
        self.assertEqual(caught.exception.param, "n")
        self.assertEqual(caught.exception.type, "invalid_request_error")

    def test_an_unknown_model_is_rejected(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            client().chat.completions.create(model="no-such-model", messages=MESSAGES)
        self.assertEqual(caught.exception.param, "model")

    def test_a_null_character_is_rejected(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            client().chat.completions.create(
                model="default", messages=[{"role": "user", "content": "a\0b"}]
            )
        self.assertEqual(caught.exception.param, "messages")
        self.assertIn("U+0000", str(caught.exception))

    def test_a_parameter_of_the_wrong_type_is_rejected(self):
        with self.assertRaises(openai.BadRequestError):
            client().chat.completions.create(model="default", messages=MESSAGES, temperature="hot")

    def test_an_invalid_key_is_rejected(self):
        with self.assertRaises(openai.AuthenticationError):
            client(key="not-the-token-of-anybody").models.list()


if __name__ == "__main__":
    unittest.main()
