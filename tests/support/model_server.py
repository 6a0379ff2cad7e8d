"""A model server on loopback: what real agent command lines talk to in contract tests.

A test registers a scenario and points a program at its address:

    with ModelServer() as server:
        base_url = server.play("sound", Answer(lambda prompt: "…"))
        ...
        assert len(server.requests("sound")) == 1

Every request that asks the model is counted and kept under the name of its scenario. Nothing but 127.0.0.1 is
listened on. A scenario says what happens to one request; a wire (`model_wire.Wire`) says how that is spelled,
chosen by the last segments of the path.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol, Self

from tests.support.chat_wire import ChatWire
from tests.support.messages_wire import MessagesWire
from tests.support.model_wire import Asked, Document, Reply, Wire
from tests.support.responses_wire import ResponsesWire

WIRES: Mapping[str, Wire] = {
    "/v1/responses": ResponsesWire(),
    "/v1/chat/completions": ChatWire(),
    "/v1/messages": MessagesWire(),
}
"""Wires by the end of the request path."""

Player = Callable[[str], str]
"""From the prompt as it arrived to the text of the answer: a sound or an erring model."""


@dataclass(frozen=True, slots=True)
class Request:
    """One model request as it arrived, and when it was answered by which scenario."""

    path: str
    headers: Mapping[str, str]
    body: Document
    asked: Asked


class Scenario(Protocol):
    """What happens to a model request; None keeps the client waiting until the server closes."""

    def answer(self, wire: Wire, asked: Asked) -> Reply | None: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """The model answers in words; the server says that `reported` was used, the model asked for if None."""

    player: Player
    reported: str | None = None

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        model = asked.model if self.reported is None else self.reported
        reply = wire.text(model, self.player(asked.prompt))
        return replace(reply, headers={"openai-model": model})


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model wants a command run first and answers once it has the result."""

    command: str
    player: Player

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        if asked.tool_results:
            return wire.text(asked.model, self.player(asked.prompt))
        return wire.tool_call(asked.model, self.command)


@dataclass(frozen=True, slots=True)
class NamedCall:
    """The model wants one tool by its name first and answers once it has the result."""

    name: str
    arguments: Document
    player: Player

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        if asked.tool_results:
            return wire.text(asked.model, self.player(asked.prompt))
        return wire.named_call(asked.model, self.name, self.arguments)


@dataclass(frozen=True, slots=True)
class SkillCall:
    """The model wants a skill first and answers once it has the result."""

    skill: str
    player: Player

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        if asked.tool_results:
            return wire.text(asked.model, self.player(asked.prompt))
        return wire.skill_call(asked.model, self.skill)


@dataclass(frozen=True, slots=True)
class Refused:
    """The server answers every request with one HTTP error."""

    status: int
    code: str
    message: str

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        del asked
        return wire.error(self.status, self.code, self.message)


@dataclass(frozen=True, slots=True)
class Quota:
    """The account is out of credit."""

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        return wire.quota(asked.model)


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection breaks before the answer is whole."""

    player: Player

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        return replace(wire.text(asked.model, self.player(asked.prompt)), cut_after=2)


@dataclass(frozen=True, slots=True)
class Hang:
    """The request is taken and never answered."""

    def answer(self, wire: Wire, asked: Asked) -> None:
        del wire, asked


@dataclass(frozen=True, slots=True)
class OneModelOnly:
    """The server knows exactly one model and refuses every other id."""

    model: str
    player: Player

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        if asked.model == self.model:
            return wire.text(asked.model, self.player(asked.prompt))
        sentence = f"The model `{asked.model}` does not exist or you do not have access to it."
        return wire.error(404, "model_not_found", sentence)


class ModelServer:
    """The server: a context manager whose threads and sockets are gone when it is left."""

    def __init__(self) -> None:
        self._scenarios: dict[str, Scenario] = {}
        self._requests: dict[str, list[Request]] = {}
        self._others: list[str] = []
        self._guard = threading.Lock()
        self._closing = threading.Event()
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def play(self, name: str, scenario: Scenario) -> str:
        """Register a scenario; its base URL for clients comes back."""
        with self._guard:
            self._scenarios[name] = scenario
            self._requests[name] = []
        return f"http://127.0.0.1:{self._http.server_address[1]}/s/{name}/v1"

    def requests(self, name: str) -> tuple[Request, ...]:
        """The model requests that scenario has got so far."""
        with self._guard:
            return tuple(self._requests[name])

    def other_requests(self) -> tuple[str, ...]:
        """Method and path of everything else that was asked."""
        with self._guard:
            return tuple(self._others)

    def note(self, line: str) -> None:
        """Remember a request that asks no model."""
        with self._guard:
            self._others.append(line)

    def take(self, path: str, headers: Mapping[str, str], body: bytes) -> tuple[Request, Reply | None] | None:
        """Answer one POST.

        None when no scenario or wire has this path; a reply of None when the client is to wait.
        """
        name, wire = _route(path)
        with self._guard:
            scenario = self._scenarios.get(name)
        if scenario is None or wire is None:
            return None
        document = json.loads(body)
        asked = replace(wire.read(document), everything=json.dumps(document, ensure_ascii=False))
        request = Request(path, headers, document, asked)
        with self._guard:
            self._requests[name].append(request)
        return request, scenario.answer(wire, request.asked)

    def wait_for_close(self) -> None:
        """Block until the server is left."""
        self._closing.wait()


def _route(path: str) -> tuple[str, Wire | None]:
    """The scenario and the wire in `/s/NAME/v1/…`."""
    start, _, rest = path.split("?", 1)[0].removeprefix("/s/").partition("/")
    return start, WIRES.get(f"/{rest}")


class _Http(ThreadingHTTPServer):
    """The sockets and threads below a `ModelServer`; leaving it waits for every one of them."""

    daemon_threads = False
    block_on_close = True

    def __init__(self, model_server: ModelServer) -> None:
        self.model_server = model_server
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        upgrade = "upgrade" in self.headers.get("Connection", "").lower()
        self._refuse(426 if upgrade else 404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        taken = self._server.take(self.path, dict(self.headers.items()), body)
        if taken is None:
            self._refuse(404)
            return
        request, reply = taken
        if reply is None:
            self._server.wait_for_close()
            self.close_connection = True
        elif reply.events and request.asked.streaming:
            self._stream(reply)
        else:
            self._plain(reply)

    @property
    def _server(self) -> ModelServer:
        assert isinstance(self.server, _Http)
        return self.server.model_server

    def _refuse(self, status: int) -> None:
        self._server.note(f"{self.command} {self.path}")
        self._plain(Reply(status, {"error": {"message": "not here"}}))

    def _plain(self, reply: Reply) -> None:
        body = json.dumps(reply.document).encode()
        self._head(reply, {"Content-Type": "application/json", "Content-Length": str(len(body))})
        self._write(body)

    def _stream(self, reply: Reply) -> None:
        self._head(reply, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        for name, document in reply.events[: reply.cut_after]:
            self._event(name, json.dumps(document))
        if reply.closing and reply.cut_after is None:
            self._event("", reply.closing)
        # A chunk that promises more than follows is what a broken connection looks like.
        self._write(b"0\r\n\r\n" if reply.cut_after is None else b"400\r\nevent: resp")

    def _event(self, name: str, data: str) -> None:
        heading = f"event: {name}\n" if name else ""
        event = f"{heading}data: {data}\n\n".encode()
        self._write(f"{len(event):x}\r\n".encode() + event + b"\r\n")

    def _head(self, reply: Reply, headers: Mapping[str, str]) -> None:
        self.send_response(reply.status)
        for name, value in {**headers, **reply.headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()

    def _write(self, data: bytes) -> None:
        # Clients are killed in the middle of an answer here: that is the test, not a fault of the server.
        try:
            self.wfile.write(data)
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Say nothing: pytest owns the output."""
