// The server's side of gristmill-bench-llm-streams: HTTP/2 over TLS on a port of this machine, one
// thread, answers that cost nothing to make.
//
//   gristmill-bench-llm-server CERTIFICATE.pem
//
// Writes a fresh self-signed certificate for 127.0.0.1 to the file, then its port to stdout, and
// serves until its stdin ends. POST /stream: 20 events over 2 s. POST /call: one event after 200
// ms. POST /connections: how many connections there have been, as a body.

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <queue>
#include <string>
#include <string_view>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <tuple>
#include <unistd.h>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;
using namespace std::chrono_literals;

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "gristmill-bench-llm-server: %s failed: %s\n", what, std::strerror(errno));
  ERR_print_errors_fp(stderr);
  std::exit(1);
}

struct stream {
  std::string path;
  std::string ready;
  size_t events_left = 0;
  clock_type::duration pause{0};
  bool over = false;
};

struct connection {
  int socket = -1;
  SSL* tls = nullptr;
  nghttp2_session* session = nullptr;
  std::map<int32_t, stream> streams;
  std::string output;

  ~connection() {
    nghttp2_session_del(session);
    SSL_free(tls);
    if (socket >= 0)
      ::close(socket);
  }
};

/// When the next event of a stream is due; by the number of its connection, which may have gone.
using alarm_entry = std::tuple<clock_type::time_point, uint64_t, int32_t>;

struct server {
  SSL_CTX* tls = nullptr;
  int epoll = -1;
  int listener = -1;
  uint64_t accepted = 0;
  std::map<uint64_t, std::unique_ptr<connection>> connections;
  std::priority_queue<alarm_entry, std::vector<alarm_entry>, std::greater<>> alarms;
};

server the_server;

uint64_t number_of(const connection* what) {
  for (const auto& [number, each] : the_server.connections)
    if (each.get() == what)
      return number;
  return 0;
}

ssize_t read_data(nghttp2_session*, int32_t id, uint8_t* buffer, size_t room, uint32_t* flags,
  nghttp2_data_source*, void* user) {
  auto& from = static_cast<connection*>(user)->streams[id];
  if (from.ready.empty() && !from.over)
    return NGHTTP2_ERR_DEFERRED;
  const auto count = std::min(room, from.ready.size());
  std::memcpy(buffer, from.ready.data(), count);
  from.ready.erase(0, count);
  if (from.over && from.ready.empty())
    *flags |= NGHTTP2_DATA_FLAG_EOF;
  return static_cast<ssize_t>(count);
}

int on_header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
  const uint8_t* value, size_t value_size, uint8_t, void* user) {
  if (std::string_view(reinterpret_cast<const char*>(name), name_size) == ":path")
    static_cast<connection*>(user)->streams[frame->hd.stream_id].path =
      std::string(reinterpret_cast<const char*>(value), value_size);
  return 0;
}

nghttp2_nv header(const char* name, const char* value) {
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name)),
    reinterpret_cast<uint8_t*>(const_cast<char*>(value)), std::strlen(name), std::strlen(value),
    NGHTTP2_NV_FLAG_NONE};
}

void answer(connection& to, int32_t id) {
  auto& out = to.streams[id];
  const auto now = clock_type::now();
  const char* type = "text/event-stream";
  if (out.path == "/connections") {
    type = "text/plain";
    out.ready = std::to_string(the_server.accepted);
    out.over = true;
  } else {
    const bool is_call = out.path == "/call";
    out.events_left = is_call ? 1 : 20;
    out.pause = is_call ? 200ms : 100ms;
    // A stream begins at once, a call after its pause.
    the_server.alarms.emplace(is_call ? now + out.pause : now, number_of(&to), id);
  }
  std::array<nghttp2_nv, 2> headers{header(":status", "200"), header("content-type", type)};
  nghttp2_data_provider provider{};
  provider.read_callback = read_data;
  nghttp2_submit_response(to.session, id, headers.data(), headers.size(), &provider);
}

int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
  if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS)
    && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
    answer(*static_cast<connection*>(user), frame->hd.stream_id);
  return 0;
}

int on_stream_close(nghttp2_session*, int32_t id, uint32_t, void* user) {
  static_cast<connection*>(user)->streams.erase(id);
  return 0;
}

int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
  const unsigned char* offered, unsigned offered_size, void*) {
  const auto chosen =
    nghttp2_select_next_protocol(const_cast<unsigned char**>(out), out_size, offered, offered_size);
  return chosen == 1 ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

void make_certificate(SSL_CTX* tls, const char* file) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 24 * 3600L);
  X509_set_pubkey(certificate, key);
  auto* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(
    name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("gristmill bench"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  for (const auto& [kind, value] : {std::pair(NID_subject_alt_name, "IP:127.0.0.1"),
         std::pair(NID_basic_constraints, "CA:TRUE")}) {
    auto* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }
  if (X509_sign(certificate, key, EVP_sha256()) == 0
    || SSL_CTX_use_certificate(tls, certificate) != 1 || SSL_CTX_use_PrivateKey(tls, key) != 1)
    give_up("making a certificate");
  FILE* out = std::fopen(file, "w");
  if (out == nullptr || PEM_write_X509(out, certificate) != 1 || std::fclose(out) != 0)
    give_up("writing the certificate");
  X509_free(certificate);
  EVP_PKEY_free(key);
}

nghttp2_session* new_session(connection& owner) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
  nghttp2_session* out = nullptr;
  nghttp2_session_server_new(&out, callbacks, &owner);
  nghttp2_session_callbacks_del(callbacks);
  // What providers allow; and room for the bodies of many calls at once.
  const std::array<nghttp2_settings_entry, 2> settings{
    {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 65535}}};
  nghttp2_submit_settings(out, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(out, NGHTTP2_FLAG_NONE, 0, 16 << 20);
  return out;
}

void accept_all() {
  while (true) {
    const int socket =
      ::accept4(the_server.listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0)
      return;
    const int one = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    auto fresh = std::make_unique<connection>();
    fresh->socket = socket;
    fresh->tls = SSL_new(the_server.tls);
    SSL_set_fd(fresh->tls, socket);
    SSL_set_accept_state(fresh->tls);
    fresh->session = new_session(*fresh);
    const auto number = ++the_server.accepted;
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.u64 = number;
    ::epoll_ctl(the_server.epoll, EPOLL_CTL_ADD, socket, &wanted);
    the_server.connections.emplace(number, std::move(fresh));
  }
}

/// Writes what it can; false when the connection is broken.
bool flush(connection& to, uint64_t number) {
  while (true) {
    const uint8_t* bytes = nullptr;
    const auto count = nghttp2_session_mem_send(to.session, &bytes);
    if (count < 0)
      return false;
    if (count == 0)
      break;
    to.output.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
  }
  bool blocked = false;
  while (!to.output.empty() && !blocked) {
    ERR_clear_error();
    const int sent = SSL_write(to.tls, to.output.data(), int(to.output.size()));
    if (sent > 0) {
      to.output.erase(0, static_cast<size_t>(sent));
    } else {
      const int why = SSL_get_error(to.tls, sent);
      if (why != SSL_ERROR_WANT_WRITE && why != SSL_ERROR_WANT_READ)
        return false;
      blocked = true;
    }
  }
  epoll_event wanted{};
  wanted.events = blocked ? EPOLLIN | EPOLLOUT : EPOLLIN;
  wanted.data.u64 = number;
  ::epoll_ctl(the_server.epoll, EPOLL_CTL_MOD, to.socket, &wanted);
  return true;
}

/// Reads what is there; false when the connection is over.
bool read_all(connection& from) {
  std::array<uint8_t, 16384> part;
  while (true) {
    // What another connection left behind would be taken for this one's.
    ERR_clear_error();
    const int got = SSL_read(from.tls, part.data(), int(part.size()));
    if (got <= 0) {
      const int why = SSL_get_error(from.tls, got);
      return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
    }
    if (nghttp2_session_mem_recv(from.session, part.data(), static_cast<size_t>(got)) < 0)
      return false;
  }
}

void ring(std::vector<uint64_t>& changed) {
  const auto now = clock_type::now();
  while (!the_server.alarms.empty() && std::get<0>(the_server.alarms.top()) <= now) {
    const auto [due, number, id] = the_server.alarms.top();
    the_server.alarms.pop();
    const auto at = the_server.connections.find(number);
    if (at == the_server.connections.end() || !at->second->streams.contains(id))
      continue;
    auto& to = at->second->streams[id];
    to.ready +=
      "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a few words of text\"}}]}\n\n";
    if (--to.events_left == 0) {
      to.ready += "data: [DONE]\n\n";
      to.over = true;
    } else {
      the_server.alarms.emplace(due + to.pause, number, id);
    }
    nghttp2_session_resume_data(at->second->session, id);
    changed.push_back(number);
  }
}

int until_next() {
  if (the_server.alarms.empty())
    return -1;
  const auto left = std::get<0>(the_server.alarms.top()) - clock_type::now();
  return std::max(0, int(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
}

void listen_somewhere() {
  the_server.listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(the_server.listener, reinterpret_cast<sockaddr*>(&address), size) != 0
    || ::listen(the_server.listener, 1024) != 0
    || ::getsockname(the_server.listener, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    give_up("listening");
  std::printf("%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
}

constexpr uint64_t listener_tag = 0;
constexpr uint64_t stdin_tag = UINT64_MAX;

void watch(int file, uint64_t tag) {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.u64 = tag;
  if (::epoll_ctl(the_server.epoll, EPOLL_CTL_ADD, file, &wanted) != 0)
    give_up("epoll_ctl");
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: gristmill-bench-llm-server CERTIFICATE.pem\n");
    return 2;
  }
  rlimit files{8192, 8192};
  ::setrlimit(RLIMIT_NOFILE, &files);
  the_server.tls = SSL_CTX_new(TLS_server_method());
  SSL_CTX_set_mode(
    the_server.tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_alpn_select_cb(the_server.tls, choose_protocol, nullptr);
  make_certificate(the_server.tls, argv[1]);
  the_server.epoll = ::epoll_create1(EPOLL_CLOEXEC);
  listen_somewhere();
  watch(the_server.listener, listener_tag);
  watch(STDIN_FILENO, stdin_tag);
  std::array<epoll_event, 256> ready;
  std::vector<uint64_t> changed;
  while (true) {
    const int count = ::epoll_wait(the_server.epoll, ready.data(), int(ready.size()), until_next());
    for (int i = 0; i < count; ++i) {
      const auto tag = ready[static_cast<size_t>(i)].data.u64;
      if (tag == stdin_tag)
        return 0;
      if (tag == listener_tag) {
        accept_all();
        continue;
      }
      const auto at = the_server.connections.find(tag);
      if (at == the_server.connections.end())
        continue;
      if (read_all(*at->second))
        changed.push_back(tag);
      else
        the_server.connections.erase(at);
    }
    ring(changed);
    std::sort(changed.begin(), changed.end());
    changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    for (const auto number : changed)
      if (const auto at = the_server.connections.find(number); at != the_server.connections.end())
        if (!flush(*at->second, number))
          the_server.connections.erase(at);
    changed.clear();
  }
}
