"""The real codex with a login of an account: whose token is renewed, and which has things of its own."""

from __future__ import annotations

import base64
import json
import shlex
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.providers import JudgeCall
from skill_effectiveness.providers.codex import CodexProvider
from tests.support.codex_shim import built_in_provider, write_shim
from tests.support.leavings import nothing_left
from tests.support.model_server import Answer
from tests.support.provider_calls import SCHEMA, surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.model_server import ModelServer

pytestmark = pytest.mark.realcli

PAST, FUTURE = 1_600_000_000, 4_000_000_000


def token(expires: int, name: str) -> str:
    """A token as such accounts have them, signed by nobody."""
    account = {"chatgpt_plan_type": "plus", "chatgpt_account_id": "account-1", "chatgpt_user_id": "user-1"}
    parts = [
        {"alg": "none", "typ": "JWT"},
        {"exp": expires, "name": name, "email": "x@example.org", "https://api.openai.com/auth": account},
    ]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join([*encoded, "c2ln"])


class Account:
    """A server that renews tokens, has nothing else, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        account = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                account.asked.append(f"GET {self.path}")
                self.tell(404, {})

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", "0")))
                account.asked.append(f"POST {self.path}")
                fresh = {
                    "id_token": token(FUTURE, "renewed"),
                    "access_token": token(FUTURE, "renewed"),
                    "refresh_token": "renewed-refresh-canary",
                }
                self.tell(200 if self.path == "/oauth/token" else 404, fresh)

            def tell(self, status: int, document: dict[str, Any]) -> None:
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
                """Say nothing: pytest owns the output."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def account() -> Iterator[Account]:
    account = Account()
    thread = threading.Thread(target=account.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield account
    account.server.shutdown()
    thread.join()
    account.server.server_close()


def test_a_renewed_token_is_kept_and_nothing_of_the_account_enters(
    codex_program: Path, model_server: ModelServer, tmp_path: Path, account: Account
) -> None:
    """P3 P9 F32: the user's own file has the new token, and no app, plugin or server is asked for."""
    login = tmp_path / "home" / ".codex" / "auth.json"
    login.parent.mkdir(parents=True)
    tokens = {
        "id_token": token(PAST, "old"),
        "access_token": token(PAST, "old"),
        "refresh_token": "refresh-canary",
        "account_id": "account-1",
    }
    login.write_text(
        json.dumps({"OPENAI_API_KEY": None, "tokens": tokens, "last_refresh": "2020-01-01T00:00:00.000000Z"})
    )
    options = built_in_provider(model_server.play("codex-account", Answer(lambda _: "{}")))
    shim = write_shim(
        tmp_path / "codex", codex_program, [*options, "-c", f'chatgpt_base_url="{account.url}/"']
    )
    override = f"export CODEX_REFRESH_TOKEN_URL_OVERRIDE={shlex.quote(account.url)}/oauth/token\n"
    shim.write_text(shim.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\n{override}"))
    around = surroundings(tmp_path, HOME=str(tmp_path / "home"))
    provider = CodexProvider.at(shim, around=around)
    # What the server answers is of no matter here, only what was done before it is asked.
    provider.judge(JudgeCall("Which?", SCHEMA, "fake-model", 12), around=around)
    nothing_left(around)
    kept = json.loads(login.read_text())["tokens"]

    assert kept["refresh_token"] == "renewed-refresh-canary"
    assert kept["access_token"] == token(FUTURE, "renewed")
    assert not login.is_symlink()
    assert account.asked.count("POST /oauth/token") == 1
    assert [asked for asked in account.asked if asked.startswith("POST") or "plugins" in asked] == [
        "POST /oauth/token"
    ]
