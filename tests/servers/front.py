#!/usr/bin/env python3
"""Puts nginx before a test server, for TLS and HTTP/2.

usage: front.py --upstream PORT --folder DIR [--port 0] [--http1] [--streams 128]

Makes a throw-away authority and a certificate for 127.0.0.1 and localhost in DIR, writes a private configuration there
and runs nginx in the foreground, without special rights, until SIGTERM. The first line on stdout is
`listening on PORT with FILE`, FILE being the authority that a client has to trust. Needs nginx and openssl; Standard
library otherwise. `network_cut` in bench/llm_chaos.py kills it and starts it anew: with `--port` it comes back where it
was, and with its old certificate.
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

CONFIGURATION = """\
daemon off;
{user}
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  client_max_body_size 64m;
  client_body_buffer_size 1m;
  upstream behind {{ server 127.0.0.1:{upstream}; keepalive 64; }}
  server {{
    listen 127.0.0.1:{port} ssl{http2};
    http2_max_concurrent_streams {streams};
    keepalive_requests 100000;
    ssl_certificate {folder}/server.pem;
    ssl_certificate_key {folder}/server.key;
    location / {{
      proxy_pass http://behind;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_request_buffering on;
      proxy_next_upstream off;
      proxy_read_timeout 600s;
      proxy_send_timeout 600s;
    }}
  }}
}}
"""


def program(name):
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")
    if not found:
        sys.exit("front.py: the program '%s' is missing: scripts/install-dependencies test" % name)
    return found


def openssl(*arguments):
    subprocess.run([program("openssl"), *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def certificates(folder):
    """authority.pem, server.pem and server.key in the folder, unless they are there already."""
    if (folder / "server.pem").exists():
        return
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    openssl("req", "-x509", *curve, "-subj", "/CN=gristmill test authority", "-keyout", str(folder / "authority.key"),
            "-out", str(folder / "authority.pem"))
    openssl("req", *curve[:-2], "-subj", "/CN=localhost", "-keyout", str(folder / "server.key"),
            "-out", str(folder / "server.csr"))
    names = folder / "names"
    names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", str(folder / "server.csr"), "-CA", str(folder / "authority.pem"), "-CAkey",
            str(folder / "authority.key"), "-CAcreateserial", "-days", "2", "-extfile", str(names), "-out",
            str(folder / "server.pem"))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--upstream", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--http1", action="store_true")
    parser.add_argument("--streams", type=int, default=128)
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    certificates(folder)
    port = options.port or free_port()
    # A master that runs as root would hand its workers to a user who cannot look into the folder.
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(CONFIGURATION.format(
        user=user, folder=folder, upstream=options.upstream, port=port, http2="" if options.http1 else " http2",
        streams=options.streams))
    child = subprocess.Popen([program("nginx"), "-c", str(folder / "nginx.conf"), "-p", str(folder), "-e",
                              str(folder / "error.log")], stderr=subprocess.DEVNULL)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    signal.signal(signal.SIGINT, lambda *_: child.terminate())
    end = time.monotonic() + 10
    while not answers(port):
        if child.poll() is not None or time.monotonic() > end:
            log = folder / "error.log"
            child.kill()
            sys.exit("front.py: nginx does not start:\n" + (log.read_text() if log.exists() else ""))
        time.sleep(0.02)
    print("listening on %d with %s" % (port, folder / "authority.pem"), flush=True)
    child.wait()


if __name__ == "__main__":
    main()
