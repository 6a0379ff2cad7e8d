"""The model server itself, so that a contract test that passes says something."""

from __future__ import annotations

import http.client
import json
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.support.messages_wire import Formed
from tests.support.model_server import (
    Answer,
    Cut,
    Hang,
    ModelServer,
    NamedCall,
    OneModelOnly,
    Quota,
    Refused,
    SkillCall,
    ToolCall,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.model_server import Scenario


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


def post(base_url: str, *, model: str = "m", stream: bool = True, results: int = 0) -> tuple[int, str]:
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}
    outputs = [{"type": "function_call_output", "call_id": "1", "output": ""}] * results
    body = {"model": model, "stream": stream, "input": [message, *outputs]}
    connection = connected(base_url)
    connection.request("POST", f"{urlsplit(base_url).path}/responses", json.dumps(body))
    answer = connection.getresponse()
    try:
        return answer.status, answer.read().decode()
    finally:
        answer.close()
        connection.close()


def chat(base_url: str, *, model: str = "m", stream: bool = True, results: int = 0) -> tuple[int, str]:
    question = {"role": "user", "content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]}
    outputs = [{"role": "tool", "tool_call_id": "call_1", "content": ""}] * results
    messages = [{"role": "system", "content": "Be short."}, question, *outputs]
    tools = [{"type": "function", "function": {"name": "bash", "parameters": {}}}]
    body = {"model": model, "stream": stream, "messages": messages, "tools": tools}
    connection = connected(base_url)
    connection.request("POST", f"{urlsplit(base_url).path}/chat/completions", json.dumps(body))
    answer = connection.getresponse()
    try:
        return answer.status, answer.read().decode()
    finally:
        answer.close()
        connection.close()


def pieces(stream: str) -> list[str]:
    """The data of each event; the events of this wire have no names."""
    events = stream.removesuffix("\n\n").split("\n\n")
    assert all(event.startswith("data: ") for event in events)
    return [event.removeprefix("data: ") for event in events]


def connected(base_url: str) -> http.client.HTTPConnection:
    address = urlsplit(base_url)
    assert address.hostname == "127.0.0.1"
    return http.client.HTTPConnection("127.0.0.1", address.port or 0, timeout=10)


def backwards(prompt: str) -> str:
    return prompt[::-1]


def test_an_answer_is_made_from_the_prompt(server: ModelServer) -> None:
    url = server.play("x", Answer(backwards))

    status, plain = post(url, stream=False)
    assert status == 200
    assert json.loads(plain)["output"][0]["content"][0]["text"] == "olleH"
    status, stream = post(url)
    assert [line for line in stream.splitlines() if line.startswith("event: ")] == [
        "event: response.created",
        "event: response.output_item.added",
        "event: response.output_item.done",
        "event: response.completed",
    ]
    assert "olleH" in stream
    assert [(request.asked.prompt, request.asked.streaming) for request in server.requests("x")] == [
        ("Hello", False),
        ("Hello", True),
    ]


def test_scenarios_are_counted_apart(server: ModelServer) -> None:
    first, second = server.play("first", Answer(backwards)), server.play("second", Quota())
    post(first)
    post(second)
    post(second)

    assert len(server.requests("first")) == 1
    assert len(server.requests("second")) == 2


@pytest.mark.parametrize(
    ("scenario", "status", "words"),
    [
        (Refused(401, "invalid_api_key", "No."), 401, "invalid_api_key"),
        (Refused(429, "rate_limit_exceeded", "No."), 429, "rate_limit_exceeded"),
        (Refused(500, "server_error", "No."), 500, "server_error"),
        (Quota(), 200, "insufficient_quota"),
        (ToolCall("ls", backwards), 200, "exec_command"),
        (OneModelOnly("other", backwards), 404, "The model `m` does not exist"),
        (OneModelOnly("m", backwards), 200, "olleH"),
    ],
)
def test_each_scenario_says_its_part(
    server: ModelServer, scenario: Scenario, status: int, words: str
) -> None:
    got, text = post(server.play("x", scenario))

    assert got == status
    assert words in text


def test_a_tool_is_wanted_once(server: ModelServer) -> None:
    url = server.play("x", ToolCall("ls", backwards))

    assert "function_call" in post(url)[1]
    assert "olleH" in post(url, results=1)[1]


def test_a_cut_stream_is_cut(server: ModelServer) -> None:
    with pytest.raises(http.client.IncompleteRead) as caught:
        post(server.play("x", Cut(backwards)))
    assert b"response.completed" not in caught.value.partial


def test_a_hanging_request_ends_with_the_server() -> None:
    failures: list[Exception] = []
    with ModelServer() as server:
        url = server.play("x", Hang())

        def ask() -> None:
            try:
                post(url)
            except (OSError, http.client.HTTPException) as error:
                failures.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        while not server.requests("x"):
            asking.join(0.01)
        assert asking.is_alive()
    asking.join(5)

    assert not asking.is_alive()
    assert len(failures) == 1


def test_a_websocket_is_refused(server: ModelServer) -> None:
    url = server.play("x", Answer(backwards))
    connection = connected(url)
    connection.request(
        "GET",
        f"{urlsplit(url).path}/responses",
        headers={"Connection": "Upgrade", "Upgrade": "websocket"},
    )
    answer = connection.getresponse()
    answer.read()
    connection.close()

    assert answer.status == 426
    assert server.requests("x") == ()
    assert server.other_requests() == ("GET /s/x/v1/responses",)


def test_an_unknown_path_asks_no_model(server: ModelServer) -> None:
    url = server.play("x", Answer(backwards))

    assert post(url.replace("/s/x", "/s/y"))[0] == 404
    assert post(url.replace("/v1", "/v2"))[0] == 404
    assert server.requests("x") == ()


class TestChatCompletions:
    def test_an_answer_in_one_piece_and_in_several(self, server: ModelServer) -> None:
        url = server.play("x", Answer(backwards))

        status, plain = chat(url, stream=False)
        assert status == 200
        whole = json.loads(plain)
        assert whole["choices"][0]["message"] == {"role": "assistant", "content": "olleH"}
        assert whole["choices"][0]["finish_reason"] == "stop"
        assert whole["usage"]["total_tokens"] == 1234
        status, stream = chat(url)
        *sent, last = pieces(stream)
        assert (status, last) == (200, "[DONE]")
        chunks = [json.loads(piece) for piece in sent]
        deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
        assert deltas == [{"role": "assistant", "content": ""}, {"content": "ol"}, {"content": "leH"}, {}]
        assert chunks[3]["choices"][0]["finish_reason"] == "stop"
        assert chunks[4]["usage"]["prompt_tokens_details"] == {"cached_tokens": 200}
        asked = [request.asked for request in server.requests("x")]
        assert [(one.prompt, one.streaming, one.tools) for one in asked] == [
            ("Hello", False, ("bash",)),
            ("Hello", True, ("bash",)),
        ]

    @pytest.mark.parametrize(
        ("scenario", "status", "words"),
        [
            (Refused(401, "invalid_api_key", "No."), 401, "invalid_api_key"),
            (Refused(429, "rate_limit_exceeded", "No."), 429, "rate_limit_exceeded"),
            (Refused(500, "server_error", "No."), 500, "server_error"),
            (Quota(), 429, "insufficient_quota"),
            (OneModelOnly("other", backwards), 404, "The model `m` does not exist"),
        ],
    )
    def test_each_refusal_says_its_part(
        self, server: ModelServer, scenario: Scenario, status: int, words: str
    ) -> None:
        got, text = chat(server.play("x", scenario))

        assert got == status
        assert words in text

    @pytest.mark.parametrize(
        ("scenario", "name", "arguments"),
        [
            (ToolCall("ls", backwards), "bash", {"command": "ls", "description": "Run a command"}),
            (SkillCall("one", backwards), "skill", {"name": "one"}),
            (NamedCall("Skill", {"skill": "one"}, backwards), "Skill", {"skill": "one"}),
        ],
    )
    def test_a_tool_is_wanted_once(
        self, server: ModelServer, scenario: Scenario, name: str, arguments: dict[str, str]
    ) -> None:
        url = server.play("x", scenario)

        chunks = [json.loads(piece) for piece in pieces(chat(url)[1])[:-1]]
        (call,) = chunks[1]["choices"][0]["delta"]["tool_calls"]
        assert call["function"]["name"] == name
        assert json.loads(call["function"]["arguments"]) == arguments
        assert chunks[2]["choices"][0]["finish_reason"] == "tool_calls"
        assert "leH" in chat(url, results=1)[1]

    def test_a_cut_stream_is_half_an_answer(self, server: ModelServer) -> None:
        with pytest.raises(http.client.IncompleteRead) as caught:
            chat(server.play("x", Cut(backwards)))
        assert b'"ol"' in caught.value.partial
        assert b"leH" not in caught.value.partial
        assert b"[DONE]" not in caught.value.partial


def ask_messages(
    base_url: str, *, stream: bool = True, tools: tuple[str, ...] = (), results: int = 0
) -> tuple[int, str]:
    asked: list[dict[str, object]] = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
    answered = [{"type": "tool_result", "tool_use_id": "1", "content": ""}] * results
    body = {
        "model": "m",
        "stream": stream,
        "messages": [*asked, {"role": "user", "content": answered}],
        "tools": [{"name": name} for name in tools],
    }
    connection = connected(base_url)
    connection.request("POST", f"{urlsplit(base_url).path}/messages?beta=true", json.dumps(body))
    answer = connection.getresponse()
    try:
        return answer.status, answer.read().decode()
    finally:
        answer.close()
        connection.close()


class TestMessages:
    def test_an_answer_is_made_from_the_prompt(self, server: ModelServer) -> None:
        url = server.play("x", Answer(backwards))

        status, plain = ask_messages(url, stream=False)
        assert status == 200
        assert json.loads(plain)["content"] == [{"type": "text", "text": "olleH"}]
        _, stream = ask_messages(url)
        assert [line for line in stream.splitlines() if line.startswith("event: ")] == [
            "event: message_start",
            "event: content_block_start",
            "event: content_block_delta",
            "event: content_block_stop",
            "event: message_delta",
            "event: message_stop",
        ]
        assert "olleH" in stream

    def test_a_form_is_met_by_the_tool_for_it(self, server: ModelServer) -> None:
        url = server.play("x", Formed(lambda _: '{"a": 1}'))

        _, formed = ask_messages(url, stream=False, tools=("StructuredOutput",))
        (block,) = json.loads(formed)["content"]
        assert (block["type"], block["name"], block["input"]) == ("tool_use", "StructuredOutput", {"a": 1})
        _, plain = ask_messages(url, stream=False)
        assert json.loads(plain)["content"] == [{"type": "text", "text": '{"a": 1}'}]

    @pytest.mark.parametrize(
        ("scenario", "status", "words"),
        [
            (Refused(401, "authentication_error", "No."), 401, "authentication_error"),
            (Quota(), 400, "credit balance is too low"),
            (ToolCall("ls", backwards), 200, "Bash"),
            (SkillCall("a:b", backwards), 200, "a:b"),
            (NamedCall("Read", {"file_path": "x"}, backwards), 200, "file_path"),
        ],
    )
    def test_each_scenario_says_its_part(
        self, server: ModelServer, scenario: Scenario, status: int, words: str
    ) -> None:
        got, text = ask_messages(server.play("x", scenario))

        assert got == status
        assert words in text

    def test_a_tool_is_wanted_once(self, server: ModelServer) -> None:
        url = server.play("x", SkillCall("a:b", backwards))

        assert "tool_use" in ask_messages(url)[1]
        assert "olleH" in ask_messages(url, results=1)[1]

    def test_a_cut_stream_is_cut(self, server: ModelServer) -> None:
        with pytest.raises(http.client.IncompleteRead) as caught:
            ask_messages(server.play("x", Cut(backwards)))
        assert b"message_stop" not in caught.value.partial
