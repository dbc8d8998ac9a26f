#include "llm/transport/curl_call.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <new>
#include <sys/socket.h>
#include <utility>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

template <class Value>
void set(CURL* easy, CURLoption option, Value value) {
  curl_easy_setopt(easy, option, value);
}

bool is_header_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c > 0x20 && c < 0x7f
      && std::string_view("()<>@,;:\\\"/[]?={}").find(c) == std::string_view::npos;
  });
}

bool is_header_value(std::string_view value) {
  return std::none_of(value.begin(), value.end(),
    [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; });
}

bool equal_but_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : int(c); };
    return lower(x) == lower(y);
  });
}

/// An empty value needs libcurl's own way of writing it, or the header would be left out.
std::string header_line(const std::string& name, const std::string& value) {
  return value.empty() ? name + ";" : name + ": " + value;
}

bool has_header(const http_headers& headers, std::string_view name) {
  return std::any_of(headers.begin(), headers.end(),
    [&](const auto& header) { return equal_but_case(header.first, name); });
}

/// Debian compiles a folder of certificates in as well. With one, libcurl reads and parses all of
/// them again for every connection; with a file alone it keeps them (10 to 20 times the memory and
/// the time to connect, measured with 500 calls).
std::string system_ca_file() {
  const auto* about = curl_version_info(CURLVERSION_NOW);
  return about->cainfo ? about->cainfo : "/etc/ssl/certs/ca-certificates.crt";
}

server_rules rules_for(const std::string& url, const curl_port_options& options) {
  server_rules out;
  out.ca_file = options.ca_file.empty() ? system_ca_file() : options.ca_file;
  out.allow_plain_http = options.allow_plain_http;
  const auto wanted = read_call_url(url, true);
  for (const auto& each : options.servers) {
    const auto known = read_call_url(each.url, true);
    if (!wanted || !known || known->server != wanted->server)
      continue;
    if (!each.ca_file.empty())
      out.ca_file = each.ca_file;
    out.allow_plain_http = out.allow_plain_http || each.allow_plain_http;
  }
  return out;
}

} // namespace

void request_lines::add(const std::string& line) {
  auto* longer = curl_slist_append(list_, line.c_str());
  if (longer == nullptr)
    throw std::bad_alloc{};
  list_ = longer;
}

void request_lines::overwrite() {
  for (auto* each = list_; each != nullptr; each = each->next)
    wipe_memory(each->data, std::strlen(each->data));
}

void request_lines::wipe() {
  overwrite();
  curl_slist_free_all(std::exchange(list_, nullptr));
}

curl_call::curl_call(http_call call, const curl_port_options& options, call_loop& loop)
  : deadlines(call.deadlines, options.waiting_max, options.finished_grace, loop.now),
    call_(std::move(call)), options_(options), loop_(loop), events_(options.events) {
  pending_.id = call_.id;
}

result<void> curl_call::prepare(easy_handle easy) {
  easy_ = std::move(easy);
  rules_ = rules_for(call_.url, options_);
  auto url = read_call_url(call_.url, rules_.allow_plain_http);
  if (!url)
    return pass(url);
  url_ = std::move(*url);
  if (auto written = write_lines(); !written)
    return written;
  set_options();
  if (options_.debug)
    set_debug();
  return {};
}

result<void> curl_call::write_lines() {
  for (const auto& [name, value] : call_.headers) {
    if (!is_header_name(name) || !is_header_value(value))
      return fail(errc::invalid_input,
        fmt::format("the header '{}' of the call has a name or a value that cannot be sent",
          secrets_.redact(name)));
    lines_.add(header_line(name, value));
  }
  if (!has_header(call_.headers, "content-type"))
    lines_.add("Content-Type: application/json");
  if (!has_header(call_.headers, "accept"))
    lines_.add("Accept: text/event-stream, application/json");
  // Without this libcurl asks first whether it may send a large body, and waits for the answer.
  lines_.add("Expect:");
  if (call_.key_environment.empty())
    return {};
  auto key = read_key(call_.key_environment);
  if (!key)
    return pass(key);
  if (!is_header_name(call_.key_header) || !is_header_value(call_.key_prefix))
    return fail(
      errc::invalid_input, fmt::format("'{}' is no header that can carry a key", call_.key_header));
  std::string line;
  line.reserve(call_.key_header.size() + 2 + call_.key_prefix.size() + key->view().size());
  line = call_.key_header + ": ";
  line += call_.key_prefix;
  line += key->view();
  lines_.add(line);
  wipe_memory(line.data(), line.size());
  if (options_.debug)
    secrets_.know(key->view());
  return {};
}

void curl_call::set_options() {
  CURL* e = easy_.get();
  set(e, CURLOPT_URL, call_.url.c_str());
  set(e, CURLOPT_PROTOCOLS_STR, url_.https ? "https" : "http");
  set(e, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  set(e, CURLOPT_FOLLOWLOCATION, 0L);
  set(e, CURLOPT_POST, 1L);
  set(e, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call_.body.size()));
  set(e, CURLOPT_POSTFIELDS, call_.body.data());
  set(e, CURLOPT_HTTPHEADER, lines_.list());
  set(e, CURLOPT_USERAGENT, "gristmill");
  set(e, CURLOPT_NOSIGNAL, 1L);
  set(e, CURLOPT_ERRORBUFFER, error_.data());

  set(e, CURLOPT_HTTP_VERSION,
    static_cast<long>(url_.https ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
  set(e, CURLOPT_PIPEWAIT, 1L);
  set(e, CURLOPT_CAINFO, rules_.ca_file.c_str());
  set(e, CURLOPT_CAPATH, static_cast<const char*>(nullptr));
  set(e, CURLOPT_SSL_VERIFYPEER, 1L);
  set(e, CURLOPT_SSL_VERIFYHOST, 2L);
  if (url_.loopback)
    set(e, CURLOPT_PROXY, "");
  set(e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);

  set(e, CURLOPT_TCP_KEEPALIVE, 1L);
  set(e, CURLOPT_TCP_KEEPIDLE, 60L);
  // So that a server that has moved is found again.
  set(e, CURLOPT_MAXLIFETIME_CONN, 900L);
  // libcurl's own default, and no less: with 4 KiB the HTTP/2 of 7.88.1 writes past the end of the
  // buffer (seen by memcheck when many streams of one connection ended early).
  set(e, CURLOPT_BUFFERSIZE, 16384L);
  // libcurl's own limit counts the time that a call waits for a connection; ours does not.
  set(e, CURLOPT_CONNECTTIMEOUT, 24 * 3600L);
  // A backstop only: it cannot tell thinking from dead, and runs before the first byte as well.
  const auto& limits = call_.deadlines;
  const auto longest = std::max(limits.first_event, limits.idle);
  if (limits.first_event > nanoseconds{0} && limits.idle > nanoseconds{0}) {
    set(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(e, CURLOPT_LOW_SPEED_TIME,
      std::max(
        4L, static_cast<long>(std::chrono::ceil<std::chrono::seconds>(2 * longest).count())));
  }

  set(e, CURLOPT_PRIVATE, this);
  set(e, CURLOPT_HEADERFUNCTION, &curl_call::on_head);
  set(e, CURLOPT_HEADERDATA, this);
  set(e, CURLOPT_WRITEFUNCTION, &curl_call::on_body);
  set(e, CURLOPT_WRITEDATA, this);
  set(e, CURLOPT_RESOLVER_START_FUNCTION, &curl_call::on_resolving);
  set(e, CURLOPT_RESOLVER_START_DATA, this);
  set(e, CURLOPT_OPENSOCKETFUNCTION, &curl_call::on_connecting);
  set(e, CURLOPT_OPENSOCKETDATA, this);
  set(e, CURLOPT_PREREQFUNCTION, &curl_call::on_sending);
  set(e, CURLOPT_PREREQDATA, this);
}

void curl_call::set_debug() {
  set(easy_.get(), CURLOPT_VERBOSE, 1L);
  set(easy_.get(), CURLOPT_DEBUGFUNCTION, &curl_call::on_debug);
  set(easy_.get(), CURLOPT_DEBUGDATA, this);
}

easy_handle curl_call::release() {
  curl_easy_reset(easy_.get());
  lines_.wipe();
  return std::move(easy_);
}

bool curl_call::is_http1() const {
  long version = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_HTTP_VERSION, &version);
  return version == CURL_HTTP_VERSION_1_0 || version == CURL_HTTP_VERSION_1_1;
}

http_report curl_call::take_news() {
  news_ = false;
  if (head_.complete() && !head_told_) {
    head_told_ = true;
    pending_.headers = head_.headers();
  }
  if (head_.complete())
    pending_.status = head_.status();
  http_report fresh;
  fresh.id = call_.id;
  return std::exchange(pending_, std::move(fresh));
}

http_report curl_call::end(http_end how, std::string why) {
  if (head_.complete() && !head_.is_event_stream())
    pending_.body = std::move(body_);
  auto out = take_news();
  out.ended = true;
  out.how = how;
  out.why = secrets_.redact(why);
  return out;
}

http_report curl_call::end_by_transfer(CURLcode code) {
  if (!too_large_.empty())
    return end(http_end::too_large, too_large_);
  if (code == CURLE_OK || finished_asked) {
    if (code == CURLE_OK && head_.is_event_stream()) {
      events_.finish(pending_.events);
      if (!events_.broken().empty())
        return end(http_end::too_large, events_.broken());
    }
    const bool redirect = head_.status() >= 300 && head_.status() < 400;
    return end(http_end::complete,
      redirect ? "the server sends us elsewhere, and redirects are not "
                 "followed: they would carry the key to another host"
               : "");
  }
  const std::string said = cut_unanswered_ ? "the connection ended before an answer"
    : error_[0]                            ? error_.data()
                                           : curl_easy_strerror(code);
  if (!deadlines.was_sent())
    return end(http_end::not_sent, fmt::format("{}: {}", url_.server, said));
  if (code == CURLE_OPERATION_TIMEDOUT)
    return end(http_end::idle_timeout, fmt::format("{}: {}", url_.server, said));
  return end(http_end::cut_off, fmt::format("{}: {}", url_.server, said));
}

void curl_call::touch() {
  if (!std::exchange(touched_, true))
    loop_.touched.push_back(call_.id);
}

/// A prompt may be large and an answer take minutes. Once the answer has begun, libcurl never sends
/// a request again, so what it has read of the body it will not read twice.
void curl_call::drop_sent_body() {
  if (call_.body.empty())
    return;
  curl_off_t sent = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_SIZE_UPLOAD_T, &sent);
  if (sent == static_cast<curl_off_t>(call_.body.size()))
    std::string().swap(call_.body);
}

size_t curl_call::take_head(std::string_view line) {
  touch();
  // An answer means that the request's head is out, so the key is not needed any more. What a proxy
  // says before that is no answer.
  if (deadlines.was_sent())
    lines_.overwrite();
  if (!head_.take_line(line)) {
    too_large_ = "the headers of the answer are larger than allowed";
    return 0;
  }
  news_ = news_ || head_.complete();
  return line.size();
}

size_t curl_call::take_body(std::string_view bytes) {
  touch();
  drop_sent_body();
  deadlines.byte(loop_.now);
  answer_bytes_ += bytes.size();
  if (!head_.is_event_stream()) {
    deadlines.event(loop_.now);
    const auto room = options_.body_max - std::min(options_.body_max, body_.size());
    body_ += bytes.substr(0, room);
    if (bytes.size() > room) {
      too_large_ = fmt::format("the answer is larger than {} bytes", options_.body_max);
      return 0;
    }
    return bytes.size();
  }
  const auto before = pending_.events.size();
  if (answer_bytes_ > options_.answer_max)
    too_large_ = fmt::format("the answer is larger than {} bytes", options_.answer_max);
  else if (!events_.take(bytes, pending_.events))
    too_large_ = events_.broken();
  if (pending_.events.size() > before) {
    news_ = true;
    deadlines.event(loop_.now);
  }
  return too_large_.empty() ? bytes.size() : 0;
}

void curl_call::tell_debug(curl_infotype kind, std::string_view text) {
  if (kind != CURLINFO_TEXT && kind != CURLINFO_HEADER_IN && kind != CURLINFO_HEADER_OUT)
    return;
  const char* mark = kind == CURLINFO_TEXT ? "*" : kind == CURLINFO_HEADER_IN ? "<" : ">";
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    if (!line.empty())
      options_.debug(fmt::format("{} {} {}", call_.id, mark, secrets_.redact_url(line)));
  }
}

size_t curl_call::on_head(char* bytes, size_t size, size_t count, void* self) {
  return static_cast<curl_call*>(self)->take_head({bytes, size * count});
}

size_t curl_call::on_body(char* bytes, size_t size, size_t count, void* self) {
  return static_cast<curl_call*>(self)->take_body({bytes, size * count});
}

/// libcurl would leave its sockets open in the children that we start.
curl_socket_t curl_call::on_connecting(void* self, curlsocktype, curl_sockaddr* address) {
  auto& call = *static_cast<curl_call*>(self);
  call.deadlines.connecting(call.loop_.now);
  call.touch();
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

int curl_call::on_resolving(void*, void*, void* self) {
  auto& call = *static_cast<curl_call*>(self);
  call.deadlines.connecting(call.loop_.now);
  call.touch();
  return 0;
}

int curl_call::on_sending(void* self, char*, char*, int, int) {
  auto& call = *static_cast<curl_call*>(self);
  call.touch();
  // libcurl asks again by itself when a kept connection ends before an answer. What was sent once
  // may be billed, so whether it is sent again is for those who count.
  if (call.deadlines.was_sent()) {
    call.cut_unanswered_ = true;
    return CURL_PREREQFUNC_ABORT;
  }
  call.deadlines.sent(call.loop_.now);
  return CURL_PREREQFUNC_OK;
}

int curl_call::on_debug(CURL*, curl_infotype kind, char* bytes, size_t size, void* self) {
  static_cast<curl_call*>(self)->tell_debug(kind, {bytes, size});
  return 0;
}

} // namespace gristmill
