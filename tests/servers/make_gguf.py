#!/usr/bin/env python3
"""Writes a tiny language model with random weights as a GGUF file, for tests against a real model server.

usage: make_gguf.py OUT.gguf [--seed 1] [--layers 1] [--width 64] [--context 65536] [--reply FILE.reply]…
                    [--text FILE]…

The model is of the architecture `llama`, with a vocabulary of single bytes and printable characters, so that it reads
and writes any text. Its weights are drawn from `--seed`; the same arguments give the same bytes. It knows nothing: with
a grammar in the request (tests/servers/make_grammar.py) it is an honest random proposer, whose choices the grammar keeps
well-formed. It shows that transport, streaming, truncation, concurrency and the loop of attempts work against a real
server. It shows nothing about the quality of kernels.

So that two cores can serve fifty agents, what is always written and often read may be one token each: the fixed pieces
of the lines of `--reply`, which the model is made to prefer over spelling (one number of every embedding is the same,
and the output weights of these tokens read it), and the lines of `--text`, such as those of the protocol file.

Format: GGUF version 3, little-endian, float32 tensors aligned to 32 bytes. Standard library only.
"""

import argparse
import random
import struct
import sys
from array import array
from pathlib import Path

import make_grammar

UINT32, FLOAT32, STRING, ARRAY, INT32 = 4, 6, 8, 9, 5
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
ALIGNMENT = 32

# A turn is written as the role's name on a line of its own. The template shows what a server makes of a
# conversation; it is part of the model file because the server takes it from there.
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "[{{ message['role'] }}]\n{{ message['content'] }}\n"
    "{% endfor %}{% if add_generation_prompt %}[assistant]\n{% endif %}"
)


# Lines shorter than this are spelled.
LINE_MIN = 12
# How much the model prefers a piece of a reply: in units of the spread of its random weights.
PREFERENCE = 60.0


def pieces(reply_text):
    """What is fixed in a reply with choices, line by line."""
    found = []
    for part in make_grammar.parts(reply_text):
        if isinstance(part, str):
            found += [line for line in part.split("\n") if len(line) > 1]
    return found


def vocabulary(preferred, lines):
    """(text, score, kind) of each token: three special ones, 256 bytes, the printable characters of ASCII, then whole
    pieces of text."""
    tokens = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    tokens += [("<0x%02X>" % byte, 0.0, BYTE) for byte in range(256)]
    # SentencePiece writes a blank as U+2581.
    tokens += [("\u2581" if code == 32 else chr(code), -1.0, NORMAL) for code in range(32, 127)]
    tokens += [(line, 0.0, USER_DEFINED) for line in dict.fromkeys(preferred + lines)]
    return tokens


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, value):
    out = text(key) + struct.pack("<I", kind)
    if kind == STRING:
        return out + text(value)
    return out + struct.pack({UINT32: "<I", FLOAT32: "<f"}[kind], value)


def list_entry(key, kind, values):
    out = text(key) + struct.pack("<IIQ", ARRAY, kind, len(values))
    if kind == STRING:
        return out + b"".join(text(value) for value in values)
    return out + struct.pack("<%d%s" % (len(values), {FLOAT32: "f", INT32: "i"}[kind]), *values)


def model(seed, layers, width, context, preferred=(), lines=()):
    """The bytes of the file. The texts of `preferred` and `lines` are tokens of their own."""
    heads = max(1, width // 32)
    hidden = 2 * width
    tokens = vocabulary(list(preferred), list(lines))
    liked = set(preferred)
    keys = [
        entry("general.architecture", STRING, "llama"),
        entry("general.name", STRING, "gristmill-random-%d" % seed),
        entry("llama.context_length", UINT32, context),
        entry("llama.embedding_length", UINT32, width),
        entry("llama.block_count", UINT32, layers),
        entry("llama.feed_forward_length", UINT32, hidden),
        entry("llama.attention.head_count", UINT32, heads),
        entry("llama.attention.head_count_kv", UINT32, heads),
        entry("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5),
        entry("llama.rope.dimension_count", UINT32, width // heads),
        entry("llama.vocab_size", UINT32, len(tokens)),
        entry("tokenizer.ggml.model", STRING, "llama"),
        list_entry("tokenizer.ggml.tokens", STRING, [t[0] for t in tokens]),
        list_entry("tokenizer.ggml.scores", FLOAT32, [t[1] for t in tokens]),
        list_entry("tokenizer.ggml.token_type", INT32, [t[2] for t in tokens]),
        entry("tokenizer.ggml.bos_token_id", UINT32, 1),
        entry("tokenizer.ggml.eos_token_id", UINT32, 2),
        entry("tokenizer.ggml.unknown_token_id", UINT32, 0),
        entry("tokenizer.chat_template", STRING, TEMPLATE),
    ]
    # The first number of a shape is the contiguous one.
    tensors = [("token_embd.weight", (width, len(tokens)))]
    for layer in range(layers):
        block = "blk.%d." % layer
        tensors += [(block + "attn_norm.weight", (width,)), (block + "ffn_norm.weight", (width,))]
        tensors += [(block + name + ".weight", (width, width)) for name in ("attn_q", "attn_k", "attn_v", "attn_output")]
        tensors += [
            (block + "ffn_gate.weight", (width, hidden)),
            (block + "ffn_up.weight", (width, hidden)),
            (block + "ffn_down.weight", (hidden, width)),
        ]
    tensors += [("output_norm.weight", (width,)), ("output.weight", (width, len(tokens)))]

    draw = random.Random(seed)
    infos, data = [], bytearray()
    for name, shape in tensors:
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        infos.append(text(name) + struct.pack("<I%dQIQ" % len(shape), len(shape), *shape, 0, len(data)))
        if len(shape) == 1:
            values = array("f", [1.0]) * count
        else:
            deviation = shape[0] ** -0.5
            values = array("f", (draw.gauss(0.0, deviation) for _ in range(count)))
            if name == "token_embd.weight":
                # The first number of every embedding is the same, and no layer adds to it.
                values[0::width] = array("f", [0.5]) * shape[1]
            elif name.endswith(("attn_output.weight", "ffn_down.weight")):
                values[: shape[0]] = array("f", [0.0]) * shape[0]
            elif name == "output.weight":
                for number, (word, _, _) in enumerate(tokens):
                    values[number * width] = PREFERENCE * deviation if word in liked else 0.0
        if sys.byteorder == "big":
            values.byteswap()
        data += values.tobytes()
        data += b"\0" * (-len(data) % ALIGNMENT)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys) + b"".join(infos)
    return head + b"\0" * (-len(head) % ALIGNMENT) + bytes(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--context", type=int, default=65536)
    parser.add_argument("--reply", type=Path, action="append", default=[])
    parser.add_argument("--text", type=Path, action="append", default=[])
    options = parser.parse_args()
    if options.layers < 1 or options.width < 32 or options.width % 32 != 0:
        parser.error("--layers must be at least 1 and --width a multiple of 32")
    preferred = [piece for file in options.reply for piece in pieces(file.read_text(encoding="utf-8"))]
    lines = [line for file in options.text for line in file.read_text(encoding="utf-8").split("\n")]
    lines = [line for line in lines if len(line) >= LINE_MIN]
    options.out.write_bytes(model(options.seed, options.layers, options.width, options.context, preferred, lines))


if __name__ == "__main__":
    main()
