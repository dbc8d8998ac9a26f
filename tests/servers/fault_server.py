#!/usr/bin/env python3
"""A model server with every fault that providers are known for. Between faults it is the scripted engineer.

usage: fault_server.py [--port 0] [--books FILE] [--seed 1] [--share 0.3] [--faults A,B,…] [--silence 20] [--list]

The path chooses: `/fault/NAME/v1/chat/completions` has that fault in every call, `/fault/NAME:2/v1/…` in the first two
calls of that path, `/list/A,B,…/v1/…` has one after another (`ok` for none, and none after the last), `/chaos/v1/…` in
a share of the calls, drawn from the seed and the number of the call, and `/v1/…` in none. The other dialects work
likewise. GET /books tells what was asked and what is billed, also of calls that were cut off. Other flags as
engineer_server.py. `--list` prints the faults. Standard library only.
"""

import asyncio
import random
import re

import wire
from engineer_server import arguments, service, start
from engineer import used_by

HTML = "<html><head><title>%s</title></head><body><center><h1>%s</h1></center><hr><center>edge</center></body></html>"
# The size of one line that no client should keep: above any limit that a reader of events may have.
HUGE = 48 << 20

FAULTS = {}


def fault(function):
    """Registers a fault by its name. It gets the service's `trouble` and answers the call itself."""
    FAULTS[function.__name__.removeprefix("_")] = function
    return function


class trouble:
    """One call that goes wrong: what a fault needs to do so."""

    def __init__(self, server, number, call, asked, dialect, out):
        self.server, self.number, self.call, self.asked, self.dialect, self.out = server, number, call, asked, dialect, out
        self.name = ""
        self.written = False

    def book(self, status, used=None, told=False):
        self.written = True
        self.server.books.write(self.number, self.call.key(), self.call.path, self.name, status, used, told)

    async def refuse(self, status, body, kind="application/json", headers=()):
        """An answer that is no stream and costs nothing."""
        self.book(status)
        await self.out.whole(status, body, kind, [*self.server.number_headers(self.number), *headers])

    async def error(self, status, kind, message, code=None, headers=()):
        await self.refuse(status, self.dialect.error(kind, message, code), headers=headers)

    async def begin(self, share=1.0, kind="text/event-stream"):
        """Streams the first part of the engineer's reply, and returns what the whole would be."""
        self.reply = self.server.engineer.answer(self.asked)
        self.used = used_by(self.asked, self.reply)
        self.out.head(200, [("Content-Type", kind), *self.server.number_headers(self.number)])
        for data in self.dialect.begin(self.asked.model, self.number, self.used):
            await self.out.send(data)
        self.shown = self.reply.text[: int(len(self.reply.text) * share)]
        for at in range(0, len(self.shown), 200):
            await self.out.send(self.dialect.piece(self.asked.model, self.number, self.shown[at:at + 200]))
        if share < 1.0:
            self.server.engineer.give_back(self.reply)

    def part(self):
        """Usage of what was sent so far."""
        return wire.usage(self.used.read, wire.tokens_of(self.shown), self.used.cached)

    async def finish(self, why=None, used="same", told=None):
        """The last events. What they tell of usage is what is billed, unless said otherwise."""
        self.book(200, self.used, self.used is not None and used is not None if told is None else told)
        for data in self.dialect.finish(self.asked.model, self.number, self.reply.text, why or self.reply.why,
                                        self.used if used == "same" else used):
            await self.out.send(data)

    async def good(self, rewrite):
        """A whole good reply whose bytes are rewritten on their way: pieces that a test server would not send."""
        real = self.out.send

        async def send(data):
            for part in rewrite(data):
                await real(part)

        self.out.send = send
        await self.begin()
        await self.finish()
        self.out.send = real
        await self.out.end()


# Answers before the stream: limits, money, configuration.

@fault
async def _429_retry_after(t):
    await t.error(429, "rate_limit_error", "Rate limit reached", "rate_limit_exceeded", [("Retry-After", "1")])


@fault
async def _429_retry_after_ms(t):
    await t.error(429, "rate_limit_error", "Rate limit reached", "rate_limit_exceeded",
                  [("retry-after-ms", "150"), ("Retry-After", "1")])


@fault
async def _429_plain(t):
    await t.error(429, "rate_limit_error", "Rate limit reached", "rate_limit_exceeded")


@fault
async def _429_html(t):
    await t.refuse(429, HTML % ("429", "Too Many Requests"), "text/html")


@fault
async def _429_empty(t):
    await t.refuse(429, "", "text/plain")


@fault
async def _429_money(t):
    await t.error(429, "insufficient_quota", "You exceeded your current quota", "credit_balance_exhausted")


@fault
async def _429_spend_limit(t):
    body = t.dialect.error("rate_limit_error", "The spend limit of this workspace was reached")
    body["error"]["details"] = {"error_code": "enforced_spend_limit_reached"}
    await t.refuse(429, body)


@fault
async def _529(t):
    await t.error(529, "overloaded_error", "Overloaded")


@fault
async def _503_loading(t):
    await t.refuse(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}})


@fault
async def _503_slow_down(t):
    await t.error(503, "slow_down", "Please slow down", "slow_down")


@fault
async def _500(t):
    await t.error(500, "server_error", "The server had an error")


@fault
async def _502_html(t):
    await t.refuse(502, HTML % ("502", "Bad Gateway"), "text/html")


@fault
async def _408(t):
    await t.error(408, "timeout", "Request timed out")


@fault
async def _409(t):
    await t.error(409, "conflict", "Try again")


@fault
async def _402_final(t):
    await t.error(402, "billing_error", "Your credit balance is too low")


@fault
async def _402_transient(t):
    body = {"error": {"code": 402, "message": "In-flight budget", "metadata": {"limit_source": "openrouter_in_flight_budget"}},
            "limit_source": "openrouter_in_flight_budget"}
    await t.refuse(402, body, headers=[("Retry-After", "1")])


@fault
async def _400_usage_limit(t):
    await t.error(400, "invalid_request_error", "You have reached your specified API usage limit.")


@fault
async def _401(t):
    await t.error(401, "authentication_error", "Incorrect API key provided: sk-...1234", "invalid_api_key")


@fault
async def _403(t):
    await t.error(403, "permission_error", "Your key has no access to this resource")


@fault
async def _404_model(t):
    await t.error(404, "invalid_request_error", "The model does not exist", "model_not_found")


@fault
async def _400_context(t):
    body = t.dialect.error("exceed_context_size_error", "the request exceeds the available context size",
                           "context_length_exceeded")
    body["error"].update(n_prompt_tokens=99999, n_ctx=2048)
    await t.refuse(400, body)


@fault
async def _400_bad(t):
    await t.error(400, "invalid_request_error", "Unsupported parameter: 'temperature'", "unsupported_parameter")


@fault
async def _413(t):
    await t.refuse(413, HTML % ("413", "Request Entity Too Large"), "text/html")


@fault
async def _422(t):
    await t.error(422, "invalid_request_error", "Unprocessable")


@fault
async def redirect(t):
    await t.refuse(302, "", "text/plain", [("Location", "http://127.0.0.1:9/stolen")])


# 200, and yet no reply.

@fault
async def _200_error_json(t):
    await t.refuse(200, {"error": {"code": 502, "message": "Provider returned error"}})


@fault
async def _200_error_text(t):
    await t.refuse(200, "Error: the context is too small for this prompt", "text/plain")


@fault
async def _200_empty(t):
    await t.refuse(200, "", "text/event-stream")


@fault
async def _200_html(t):
    await t.refuse(200, HTML % ("Sign in", "Sign in"), "text/html")


@fault
async def _204(t):
    t.book(204)
    t.out.head(204)
    await t.out.end()


@fault
async def wrong_content_type(t):
    await t.begin(kind="text/plain")
    await t.finish(told=False)
    await t.out.end()


@fault
async def reset_at_once(t):
    t.book(0)
    t.out.cut()


@fault
async def not_http(t):
    t.book(0)
    t.out.keep = False
    t.out.writer.write(b"220 mail.example.org ESMTP ready\r\n")


# Trouble inside the stream.

@fault
async def error_mid_stream(t):
    await t.begin(0.5)
    t.book(200, t.part())
    await t.out.send(t.dialect.error_event("The engine has died"))
    await t.out.end()


@fault
async def cut_mid_stream(t):
    """The connection ends in the middle of a piece."""
    await t.begin(0.5)
    t.book(200, t.part())
    t.out.cut()


@fault
async def no_terminal_event(t):
    """Ends in good order, without its terminal event."""
    await t.begin(0.5)
    t.book(200, t.part())
    await t.out.end()


@fault
async def done_without_end(t):
    """The terminal event comes, the end of the transfer does not."""
    await t.begin()
    await t.finish()
    await asyncio.sleep(t.server.options.silence)
    t.out.cut()


@fault
async def comments_only(t):
    t.book(200)
    await t.out.stream(t.server.number_headers(t.number))
    end = asyncio.get_running_loop().time() + t.server.options.silence
    while asyncio.get_running_loop().time() < end:
        await t.out.send(b": PROCESSING\n\n")
        await asyncio.sleep(0.1)
    t.out.cut()


@fault
async def comments_between(t):
    await t.good(lambda data: [b": keep-alive\n\n", data, b":\n"])


@fault
async def one_byte(t):
    await t.good(lambda data: [data[i:i + 1] for i in range(len(data))])


@fault
async def crlf(t):
    await t.good(lambda data: [data.replace(b"\n", b"\r\n")])


@fault
async def cr(t):
    await t.good(lambda data: [data.replace(b"\n", b"\r")])


@fault
async def split_data(t):
    """An event whose JSON stands in two data lines."""
    def split(data):
        return [data.replace(b', "model"', b',\ndata: "model"').replace(b'"type": "content_block_delta", ',
                                                                    b'"type": "content_block_delta",\ndata: ')]
    await t.good(split)


@fault
async def byte_order_mark(t):
    first = [b"\xef\xbb\xbf"]
    await t.good(lambda data: [first.pop() + data] if first else [data])


@fault
async def huge_line(t):
    await t.begin(0.2)
    t.book(200, t.part())
    await t.out.send(b"data: ")
    block = b"x" * (1 << 16)
    for _ in range(HUGE // len(block)):
        await t.out.send(block)
    await t.out.send(b"\n\n")
    await t.out.end()


@fault
async def bad_json(t):
    await t.begin(0.3)
    t.book(200, t.part())
    await t.out.send(b"data: {\"choices\": [{\"del\n\n")
    await t.out.end()


@fault
async def bad_utf8(t):
    await t.begin(0.3)
    t.book(200, t.part())
    await t.out.send(b"data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"\xff\xfe\xc3(\"}}]}\n\n")
    await t.out.end()


@fault
async def silence(t):
    """Nothing at all: no status, no byte."""
    t.book(0)
    await asyncio.sleep(t.server.options.silence)
    t.out.cut()


@fault
async def silence_after_head(t):
    t.book(200)
    await t.out.stream(t.server.number_headers(t.number))
    await asyncio.sleep(t.server.options.silence)
    t.out.cut()


@fault
async def silence_mid_stream(t):
    await t.begin(0.4)
    t.book(200, t.part())
    await asyncio.sleep(t.server.options.silence)
    t.out.cut()


# A whole reply that says something odd.

@fault
async def duplicate_usage(t):
    """Usage comes twice, the same each time: it must be counted once."""
    await t.begin()
    if t.dialect is not wire.responses:
        await t.out.send(t.dialect.usage_event(t.asked.model, t.number, t.used))
    await t.finish()
    await t.out.end()


@fault
async def missing_usage(t):
    """No usage anywhere: what it cost is unknown, not nothing."""
    await t.begin()
    await t.finish(used=None, told=False)
    await t.out.end()


@fault
async def unknown_finish(t):
    await t.begin(0.6)
    t.used = t.part()
    why = "abort" if t.dialect is not wire.responses else "cancelled"
    await t.finish(why)
    await t.out.end()


@fault
async def empty_stop(t):
    await t.begin(0.0)
    t.used = t.part()
    t.reply.text = ""
    await t.finish("stop")
    await t.out.end()


@fault
async def length_unowned(t):
    """Cut off at the cap, and claimed to be complete: only usage tells."""
    await t.begin(0.5)
    t.used = wire.usage(t.used.read, max(t.asked.cap, 1), t.used.cached)
    t.reply.text = t.shown
    await t.finish("stop")
    await t.out.end()


@fault
async def content_filter(t):
    await t.begin(0.1)
    t.used = t.part()
    t.reply.text = t.shown
    await t.finish("filter")
    await t.out.end()


@fault
async def refusal(t):
    await t.begin(0.0)
    t.used = wire.usage(t.used.read, 6, t.used.cached)
    t.reply.text = ""
    await t.finish("refusal")
    await t.out.end()


@fault
async def all_reasoning(t):
    """The whole cap went into hidden reasoning: no text, stopped for length."""
    await t.begin(0.0)
    t.used = wire.usage(t.used.read, max(t.asked.cap, 1), t.used.cached, max(t.asked.cap, 1))
    t.reply.text = ""
    await t.finish("length")
    await t.out.end()


class faulty(service):
    def __init__(self, options):
        super().__init__(options)
        self.counts = {}
        self.chaos_calls = 0
        self.chosen = options.faults.split(",") if options.faults else sorted(set(FAULTS) - LASTING)
        for name in self.chosen:
            if name not in FAULTS:
                raise SystemExit("fault_server.py: no fault is called '%s'; --list prints them" % name)

    def fault_of(self, path):
        """(name, the path without it) as this call shall fail; name empty for not at all."""
        found = re.match(r"/fault/([a-z0-9_]+)(?::(\d+))?(/.*)", path)
        if found:
            name, times, rest = found.groups()
            count = self.counts.get(path, 0)
            self.counts[path] = count + 1
            return ("" if times and count >= int(times) else name), rest
        found = re.match(r"/list/([a-z0-9_,]+)(/.*)", path)
        if found:
            names, rest = found[1].split(","), found[2]
            count = self.counts.get(path, 0)
            self.counts[path] = count + 1
            name = names[count] if count < len(names) else "ok"
            return ("" if name == "ok" else name), rest
        if path.startswith("/chaos/"):
            self.chaos_calls += 1
            # From the number of the call, so that a server that is started again goes on with the same list.
            draw = random.Random("%d/%d/%d" % (self.options.seed, self.books.life, self.chaos_calls))
            return (draw.choice(self.chosen) if draw.random() < self.options.share else ""), path[len("/chaos"):]
        return "", path

    async def reply(self, number, call, asked, dialect, out):
        name, _ = self.fault_of(call.path)
        if not name:
            return await super().reply(number, call, asked, dialect, out)
        if name not in FAULTS:
            return await out.whole(404, dialect.error("not_found", "no fault is called '%s'" % name))
        self_made = trouble(self, number, call, asked, dialect, out)
        self_made.name = name
        try:
            await FAULTS[name](self_made)
        except (ConnectionError, asyncio.CancelledError):
            if not self_made.written and hasattr(self_made, "used"):
                self_made.book(200, self_made.part() if hasattr(self_made, "shown") else self_made.used)
            raise


# Faults that end a run, or that last for as long as a client waits: not part of a chaos run unless asked for.
LASTING = {"429_money", "429_spend_limit", "402_final", "400_usage_limit", "401", "403", "404_model", "400_bad", "422",
           "redirect", "204", "huge_line", "not_http", "200_html", "silence", "silence_after_head", "silence_mid_stream",
           "comments_only", "400_context", "413"}


def main():
    parser = arguments(__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.3)
    parser.add_argument("--faults")
    parser.add_argument("--silence", type=float, default=20)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        return print("\n".join(FAULTS))
    start(faulty(options).handle, options)


if __name__ == "__main__":
    main()
