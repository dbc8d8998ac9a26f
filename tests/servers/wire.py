"""What the test servers share: a small HTTP/1.1 server on asyncio and the three dialects as a provider speaks them.

Standard library only. It serves tests, so it is strict where a real server would be (a request that is no request gets
400) and gives the handler its connection, so that it can also break the rules.
"""

import asyncio
import json
from urllib.parse import unquote, urlsplit

REASONS = {
    200: "OK", 204: "No Content", 302: "Found", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required",
    403: "Forbidden", 404: "Not Found", 408: "Request Timeout", 409: "Conflict", 413: "Payload Too Large",
    422: "Unprocessable Entity", 429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway",
    503: "Service Unavailable", 504: "Gateway Timeout", 529: "Overloaded",
}
BODY_MAX = 64 << 20


class call:
    """One request, read whole."""

    def __init__(self, method, target, headers, body):
        self.method = method
        self.path = unquote(urlsplit(target).path)
        self.headers = headers
        self.body = body

    def key(self):
        """What the caller showed for a key; empty for none."""
        bearer = self.headers.get("authorization", "")
        if bearer.lower().startswith("bearer "):
            return bearer[7:]
        return self.headers.get("x-api-key", "")

    def json(self):
        """The body as an object; None when it is none."""
        try:
            value = json.loads(self.body)
        except ValueError:
            return None
        return value if isinstance(value, dict) else None


class answer:
    """The way back. Chunked unless the handler says otherwise."""

    def __init__(self, writer):
        self.writer = writer
        self.chunked = False
        self.started = False
        self.keep = True

    def head(self, status, headers=(), length=None, chunked=True):
        self.started = True
        self.chunked = chunked and length is None and status != 204
        lines = ["HTTP/1.1 %d %s" % (status, REASONS.get(status, "Unknown"))]
        lines += ["%s: %s" % pair for pair in headers]
        if length is not None:
            lines.append("Content-Length: %d" % length)
        elif self.chunked:
            lines.append("Transfer-Encoding: chunked")
        else:
            self.keep = False
            lines.append("Connection: close")
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())

    async def send(self, data):
        if self.chunked and data:
            data = b"%x\r\n" % len(data) + data + b"\r\n"
        self.writer.write(data)
        await self.writer.drain()

    async def end(self):
        if self.chunked:
            self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def whole(self, status, body, kind="application/json", headers=()):
        if not isinstance(body, bytes):
            body = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.head(status, [("Content-Type", kind), *headers], length=len(body))
        await self.send(body)

    async def stream(self, headers=()):
        """The head of an event stream. On its way at once."""
        self.head(200, [("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache"), *headers])
        await self.writer.drain()

    def cut(self):
        """Ends the connection in the middle, with a reset."""
        self.keep = False
        self.writer.transport.abort()


async def read_call(reader):
    """The next request of a connection; None at its end."""
    line = await reader.readline()
    if not line.strip():
        return None
    method, target, _ = line.decode("latin-1").split(" ", 2)
    headers = {}
    while True:
        line = await reader.readline()
        if not line.strip():
            break
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    length = int(headers.get("content-length", "0"))
    if length > BODY_MAX:
        raise ValueError("body too large")
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while True:
            size = int((await reader.readline()).split(b";")[0], 16)
            body += await reader.readexactly(size)
            await reader.readline()
            if size == 0:
                break
    else:
        if headers.get("expect", "").lower() == "100-continue":
            raise ValueError("Expect is not understood")
        body = await reader.readexactly(length)
    return call(method, target, headers, body)


async def serve(handle, host, port, ready=None):
    """Answers calls by `await handle(call, answer)` until it is cancelled. Port 0: any; `ready` is told which."""

    async def talk(reader, writer):
        try:
            while True:
                asked = await read_call(reader)
                if asked is None:
                    break
                out = answer(writer)
                await handle(asked, out)
                if not out.keep:
                    break
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(talk, host, port, limit=1 << 20, backlog=1024)
    if ready:
        ready(server.sockets[0].getsockname()[1])
    async with server:
        await server.serve_forever()


def tokens_of(text):
    """What our servers count and bill: a token for each four characters begun."""
    return (len(text) + 3) // 4


class usage:
    """Tokens of one reply. `cached` is part of `read`, `thought` part of `written`."""

    def __init__(self, read, written, cached=0, thought=0):
        self.read, self.written, self.cached, self.thought = read, written, cached, thought


def event(data, name=""):
    head = "event: %s\n" % name if name else ""
    return (head + "data: " + (data if isinstance(data, str) else json.dumps(data)) + "\n\n").encode()


def flat(content):
    """Text of a message's content in any of the forms that providers take."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return ""


class prompt:
    """What a dialect's body asks for, without the dialect."""

    def __init__(self, model, instructions, messages, cap):
        self.model, self.instructions, self.messages, self.cap = model, instructions, messages, cap

    def text(self):
        return self.instructions + "\n" + "\n".join(text for _, text in self.messages)


class chat:
    """openai-chat. Streams are lists of (bytes, weight) where weight says that usage is in this piece."""

    suffix = "/chat/completions"

    @staticmethod
    def read(body):
        told, messages = [], []
        for message in body.get("messages", []):
            text = flat(message.get("content"))
            if message.get("role") in ("system", "developer"):
                told.append(text)
            else:
                messages.append((message.get("role"), text))
        cap = body.get("max_completion_tokens", body.get("max_tokens", 0))
        return prompt(body.get("model", ""), "\n".join(told), messages, cap)

    @staticmethod
    def chunk(model, number, delta, finish=None):
        return {"id": "chatcmpl-%s" % number, "object": "chat.completion.chunk", "created": 0, "model": model,
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    @classmethod
    def begin(cls, model, number, used):
        return [event(cls.chunk(model, number, {"role": "assistant", "content": None}))]

    @classmethod
    def piece(cls, model, number, text):
        return event(cls.chunk(model, number, {"content": text}))

    @staticmethod
    def usage_object(used):
        return {"prompt_tokens": used.read, "completion_tokens": used.written, "total_tokens": used.read + used.written,
                "prompt_tokens_details": {"cached_tokens": used.cached},
                "completion_tokens_details": {"reasoning_tokens": used.thought}}

    @classmethod
    def usage_event(cls, model, number, used):
        data = cls.chunk(model, number, {})
        data["choices"] = []
        data["usage"] = cls.usage_object(used)
        return event(data)

    @classmethod
    def finish(cls, model, number, text, why, used):
        """The last events: why it stopped, usage unless `used` is None, the terminal one."""
        reason = {"stop": "stop", "length": "length", "refusal": "stop", "filter": "content_filter"}.get(why, why)
        delta = {"refusal": "I cannot help with this."} if why == "refusal" else {}
        out = [event(cls.chunk(model, number, delta, reason))]
        if used:
            out.append(cls.usage_event(model, number, used))
        return out + [event("[DONE]")]

    @staticmethod
    def error(kind, message, code=None):
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    @classmethod
    def error_event(cls, message):
        return event(cls.error("server_error", message))


class messages:
    """anthropic-messages."""

    suffix = "/messages"

    @staticmethod
    def read(body):
        said = [(m.get("role"), flat(m.get("content"))) for m in body.get("messages", [])]
        return prompt(body.get("model", ""), flat(body.get("system", "")), said, body.get("max_tokens", 0))

    @staticmethod
    def begin(model, number, used):
        # Input usage stands at the beginning, without what came from the cache.
        return [event({"type": "message_start", "message": {
            "id": "msg_%s" % number, "type": "message", "role": "assistant", "model": model, "content": [],
            "stop_reason": None, "stop_sequence": None,
            "usage": {"input_tokens": used.read - used.cached, "cache_read_input_tokens": used.cached,
                      "cache_creation_input_tokens": 0, "output_tokens": 1}}}, "message_start"),
            event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                  "content_block_start"),
            event({"type": "ping"}, "ping")]

    @staticmethod
    def piece(model, number, text):
        return event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
                     "content_block_delta")

    @staticmethod
    def usage_event(model, number, used):
        return event({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                      "usage": {"output_tokens": used.written}}, "message_delta")

    @staticmethod
    def finish(model, number, text, why, used):
        reason = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal", "filter": "refusal"}.get(why, why)
        delta = {"stop_reason": reason, "stop_sequence": None}
        if why in ("refusal", "filter"):
            delta["stop_details"] = {"type": "refusal", "category": "frontier_llm"}
        out = [event({"type": "content_block_stop", "index": 0}, "content_block_stop")]
        last = {"type": "message_delta", "delta": delta}
        if used:
            last["usage"] = {"output_tokens": used.written}
        return out + [event(last, "message_delta"), event({"type": "message_stop"}, "message_stop")]

    @staticmethod
    def error(kind, message, code=None):
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_none"}

    @classmethod
    def error_event(cls, message):
        return event(cls.error("overloaded_error", message), "error")


class responses:
    """openai-responses."""

    suffix = "/responses"

    @staticmethod
    def read(body):
        told, said = flat(body.get("instructions", "")), []
        asked = body.get("input", "")
        for item in [{"role": "user", "content": asked}] if isinstance(asked, str) else asked:
            if item.get("role") in ("system", "developer"):
                told += "\n" + flat(item.get("content"))
            else:
                said.append((item.get("role"), flat(item.get("content"))))
        return prompt(body.get("model", ""), told, said, body.get("max_output_tokens", 0))

    @staticmethod
    def whole(model, number, status, text, used, why):
        part = ({"type": "refusal", "refusal": "I cannot help with this."} if why == "refusal"
                else {"type": "output_text", "text": text, "annotations": []})
        out = {"id": "resp_%s" % number, "object": "response", "status": status, "model": model, "error": None,
               "incomplete_details": None,
               "output": [{"type": "reasoning", "id": "rs_1", "summary": []},
                          {"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": [part]}],
               "usage": None}
        if used:
            out["usage"] = {"input_tokens": used.read, "input_tokens_details": {"cached_tokens": used.cached},
                            "output_tokens": used.written,
                            "output_tokens_details": {"reasoning_tokens": used.thought},
                            "total_tokens": used.read + used.written}
        return out

    @classmethod
    def begin(cls, model, number, used):
        first = cls.whole(model, number, "in_progress", "", None, "stop")
        first["output"] = []
        return [event({"type": "response.created", "sequence_number": 0, "response": first}, "response.created"),
                event({"type": "response.in_progress", "sequence_number": 1, "response": first},
                      "response.in_progress")]

    @staticmethod
    def piece(model, number, text):
        return event({"type": "response.output_text.delta", "sequence_number": 2, "item_id": "msg_1",
                      "output_index": 1, "content_index": 0, "delta": text}, "response.output_text.delta")

    @classmethod
    def usage_event(cls, model, number, used):
        return cls.finish(model, number, "", "stop", used)[0]

    @classmethod
    def finish(cls, model, number, text, why, used):
        status = {"stop": "completed", "refusal": "completed", "length": "incomplete", "filter": "incomplete"}.get(
            why, why)
        out = cls.whole(model, number, status, text, used, why)
        if status == "incomplete":
            out["incomplete_details"] = {"reason": "max_output_tokens" if why == "length" else "content_filter"}
        name = "response." + status
        return [event({"type": name, "sequence_number": 9, "response": out}, name)]

    @staticmethod
    def error(kind, message, code=None):
        return chat.error(kind, message, code)

    @staticmethod
    def error_event(message):
        return event({"type": "error", "code": "server_error", "message": message, "param": None,
                      "sequence_number": 5}, "error")


def dialect_of(path):
    """Which dialect a path speaks; None for none."""
    for kind in (chat, responses, messages):
        if path.endswith(kind.suffix):
            return kind
    return None
