"""A proxy on loopback behind which a login server renews tokens, for programs that ask a fixed host for it.

A program that honours `https_proxy` and `SSL_CERT_FILE` asks this proxy for a tunnel to the host; whatever
the host, the other end of the tunnel is here, with a certificate of its own.
"""

from __future__ import annotations

import json
import ssl
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import TYPE_CHECKING, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path
    from socket import socket


class TokenServer:
    """Renews every token it is asked to; a context manager that leaves no thread and no socket behind.

    Attributes:
        environ: variables that lead a program here.
        asked: the hosts, methods and paths that were asked for, in order.
    """

    def __init__(self, folder: Path, hosts: list[str], renewed: dict[str, object]) -> None:
        certificate, key = folder / "certificate.pem", folder / "key.pem"
        _write_certificate(certificate, key, hosts)
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(certificate, key)
        self.renewed = renewed
        self.asked: list[str] = []
        self._server = _Proxy(self)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self.environ = {
            "https_proxy": f"http://127.0.0.1:{self._server.server_address[1]}",
            "NO_PROXY": "127.0.0.1",
            "SSL_CERT_FILE": str(certificate),
        }

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Proxy(ThreadingTCPServer):
    daemon_threads = False
    block_on_close = True

    def __init__(self, tokens: TokenServer) -> None:
        self.tokens = tokens
        super().__init__(("127.0.0.1", 0), _Tunnel)


class _Tunnel(StreamRequestHandler):
    timeout = 20

    def handle(self) -> None:
        assert isinstance(self.server, _Proxy)
        tokens = self.server.tokens
        host = self.rfile.readline().split()[1].decode()
        while self.rfile.readline() not in (b"\r\n", b""):
            pass
        self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        # Clients go away in the middle of a handshake here, and that is theirs to explain.
        try:
            with tokens.tls.wrap_socket(self.connection, server_side=True) as inner:
                _Answer(inner, host, tokens)
        except OSError:
            tokens.asked.append(f"{host} went away")


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, inner: socket, host: str, tokens: TokenServer) -> None:
        self.host, self.tokens = host, tokens
        super().__init__(inner, ("127.0.0.1", 0), None)  # type: ignore[arg-type]  # it belongs to no server

    def do_GET(self) -> None:
        self._told({})

    def do_POST(self) -> None:
        self._told(self.tokens.renewed)

    def _told(self, document: dict[str, object]) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.tokens.asked.append(f"{self.host} {self.command} {self.path}")
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Say nothing: pytest owns the output."""


def _write_certificate(certificate: Path, key: Path, hosts: list[str]) -> None:
    """A certificate that signs itself, for a day around now."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
