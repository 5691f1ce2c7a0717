"""Serves one page and answers its questions, on this machine only (issue 5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

HOST: Final = "127.0.0.1"
LARGEST: Final = 1_000_000
"""Bytes of a question that are read."""

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Answers a question (a JSON object) or raises ValueError with what is wrong with it."""


class PageServer(ThreadingHTTPServer):
    """A server of one page on the loopback address.

    Parameters
    ----------
    port
        Port, 0 for any free one.
    page
        Returns the page's text.
    answers
        What answers a question, by its address.

    Raises
    ------
    OSError
        If the port is taken.
    """

    daemon_threads = True

    def __init__(self, port: int, page: Callable[[], str], answers: Mapping[str, Answer]) -> None:
        super().__init__((HOST, port), _Handler)
        self.page = page
        self.answers = answers

    @property
    def address(self) -> str:
        """Address to open in a browser."""
        return f"http://{HOST}:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    """One request; anything that is not from a page of this very server is refused."""

    server: PageServer

    def do_GET(self) -> None:
        """Serve the page."""
        if not self._is_local():
            return
        if self.path.split("?", 1)[0] != "/":
            self._send(HTTPStatus.NOT_FOUND, {"error": f"there is nothing at {self.path}"})
            return
        self._write(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page())

    def do_POST(self) -> None:
        """Answer a question."""
        if not self._is_local():
            return
        answer = self.server.answers.get(self.path)
        if answer is None:
            self._send(HTTPStatus.NOT_FOUND, {"error": f"there is nothing at {self.path}"})
            return
        try:
            self._send(HTTPStatus.OK, answer(self._question()))
        except ValueError as error:
            self._send(HTTPStatus.BAD_REQUEST, {"error": str(error)})

    def _is_local(self) -> bool:
        """Whether the request names this server: other pages and other names are refused."""
        port = self.server.server_port
        hosts = {f"{HOST}:{port}", f"localhost:{port}"}
        origin = self.headers.get("Origin")
        if self.headers.get("Host") in hosts and (
            origin is None or origin.removeprefix("http://") in hosts
        ):
            return True
        self._send(HTTPStatus.FORBIDDEN, {"error": "this server answers its own page only"})
        return False

    def _question(self) -> Mapping[str, Any]:
        if self.headers.get_content_type() != "application/json":
            raise ValueError("a question must be application/json")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST:
            raise ValueError(f"a question must have at most {LARGEST} bytes and say how many")
        question = json.loads(self.rfile.read(int(length)))
        if not isinstance(question, dict):
            raise ValueError("a question must be a JSON object")
        return question

    def _send(self, status: HTTPStatus, content: Mapping[str, Any]) -> None:
        self._write(status, "application/json", json.dumps(content))

    def _write(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the terminal quiet."""
