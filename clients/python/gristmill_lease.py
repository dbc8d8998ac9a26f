"""A GPU of `gristmill broker` for this process:  with lease(cls="timing", cap=60) as gpu: ..."""
import contextlib, json, os, socket  # noqa: E401


@contextlib.contextmanager
def lease(cls="timing", cap=0, wait=0, need="", user="", path=None):
    """Waits for its turn, sets CUDA_VISIBLE_DEVICES and yields the grant (a dict); times in seconds."""
    path = path or os.environ.get("GRISTMILL_LEASE_SOCKET") or (
        os.environ["XDG_RUNTIME_DIR"] + "/gristmill-broker.sock" if os.environ.get("XDG_RUNTIME_DIR")
        else "/tmp/gristmill-broker-%d.sock" % os.getuid())
    with socket.socket(socket.AF_UNIX) as link, link.makefile("rw") as lines:
        link.connect(path)
        def say(**fields): lines.write(json.dumps(fields) + "\n"); lines.flush()  # noqa: E301, E704
        say(line="hello", protocol=1, **({"as": user} if user else {}))
        say(**{"line": "request", "request": 1, "class": cls, "need": need, "term_ns": int(cap * 1e9),
               "patience_ns": int(wait * 1e9), "command": "python"})
        heard = next((m for m in map(json.loads, lines) if m["line"] in ("granted", "over", "error")), {})
        if heard.get("line") != "granted":
            raise TimeoutError(heard.get("what") or heard.get("reason") or "the broker has gone")
        os.environ["CUDA_VISIBLE_DEVICES"] = heard["visible"]
        mine = {k: heard[k] for k in ("gpu", "token", "lease")}
        reason = "exception"
        try:
            yield heard
            reason = "done"
        finally:
            say(line="ended", outcome="fine", reason=reason, **mine)
