#!/usr/bin/env python3
"""A model server that plays a competent engineer (engineer.py), in the three dialects.

usage: engineer_server.py [--port 0] [--books FILE] [--prices IN,CACHED,OUT] [--piece 24] [--delay-ms 0] [--thought 0]
                          [--honest]

POST to /v1/chat/completions, /v1/responses or /v1/messages streams a reply; GET /health answers `ok`; GET /books has
what was asked and what would be billed (books.py), and what the engineer saw of its verdicts. With GRISTMILL_TEST_KEY
set, other keys get 401. The first line on stdout is `listening on PORT`. Prices are in 10^-9 USD a token. Standard
library only.
"""

import argparse
import asyncio
import os

import wire
from books import books
from engineer import engineer, used_by


class service:
    """Streams the engineer's replies; the fault server derives from it."""

    def __init__(self, options):
        self.options = options
        self.books = books(options.books, *(int(p) for p in options.prices.split(",")))
        self.engineer = engineer(honest=options.honest)
        self.key = os.environ.get("GRISTMILL_TEST_KEY", "")

    async def handle(self, call, out):
        if call.method == "GET" and call.path == "/health":
            return await out.whole(200, "ok", "text/plain")
        if call.method == "GET" and call.path == "/books":
            return await out.whole(200, {**self.books.summary(), "seen": self.engineer.seen})
        dialect = wire.dialect_of(call.path)
        if call.method != "POST" or dialect is None:
            return await out.whole(404, wire.chat.error("invalid_request_error", "no such path: " + call.path))
        number = self.books.next_id()
        if self.key and call.key() != self.key:
            self.books.write(number, call.key(), call.path, "wrong_key", 401, None, False)
            return await out.whole(401, dialect.error("invalid_request_error", "Incorrect API key provided.",
                                                      "invalid_api_key"), headers=self.number_headers(number))
        body = call.json()
        if body is None or body.get("stream") is not True:
            self.books.write(number, call.key(), call.path, "bad_body", 400, None, False)
            return await out.whole(400, dialect.error("invalid_request_error", "a JSON object with stream: true, please"))
        await self.reply(number, call, dialect.read(body), dialect, out)

    @staticmethod
    def number_headers(number):
        return [("x-request-id", number), ("request-id", number)]

    async def reply(self, number, call, asked, dialect, out):
        reply = self.engineer.answer(asked)
        used = used_by(asked, reply, self.options.thought)
        sent = 0
        try:
            await out.stream(self.number_headers(number))
            for data in dialect.begin(asked.model, number, used):
                await out.send(data)
            for at in range(0, len(reply.text), self.options.piece):
                if reply.why == "refusal":
                    break
                if self.options.delay_ms:
                    await asyncio.sleep(self.options.delay_ms / 1000)
                piece = reply.text[at:at + self.options.piece]
                await out.send(dialect.piece(asked.model, number, piece))
                sent += len(piece)
        except (ConnectionError, asyncio.CancelledError):
            # The client went away: it owes what it was sent, and cannot know how much that is.
            self.books.write(number, call.key(), call.path, "", 200,
                             wire.usage(used.read, (sent + 3) // 4, used.cached), False)
            self.engineer.give_back(reply)
            raise
        self.books.write(number, call.key(), call.path, "", 200, used, True)
        for data in dialect.finish(asked.model, number, reply.text, reply.why, used):
            await out.send(data)
        await out.end()


def arguments(text):
    parser = argparse.ArgumentParser(description=text.split("\n")[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--books")
    parser.add_argument("--prices", default="3000,300,15000")
    parser.add_argument("--piece", type=int, default=24)
    parser.add_argument("--delay-ms", type=float, default=0)
    parser.add_argument("--thought", type=int, default=0)
    parser.add_argument("--honest", action="store_true")
    return parser


def start(handler, options):
    try:
        asyncio.run(wire.serve(handler, options.host, options.port,
                               lambda port: print("listening on %d" % port, flush=True)))
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    settings = arguments(__doc__).parse_args()
    start(service(settings).handle, settings)
