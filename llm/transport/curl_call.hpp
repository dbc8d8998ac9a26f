#pragma once

#include "llm/transport/answer_head.hpp"
#include "llm/transport/call_deadlines.hpp"
#include "llm/transport/call_url.hpp"
#include "llm/transport/curl_multis.hpp"
#include "llm/transport/curl_port.hpp"
#include "llm/transport/key.hpp"
#include "llm/transport/redactor.hpp"
#include "messages/result.hpp"

#include <array>
#include <chrono>
#include <curl/curl.h>
#include <memory>
#include <string>
#include <vector>

namespace gristmill {

struct free_easy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
using easy_handle = std::unique_ptr<CURL, free_easy>;

/// Lines of a request's head. The one with the key is overwritten when they go.
class request_lines {
public:
  request_lines() = default;
  ~request_lines() { wipe(); }
  request_lines(const request_lines&) = delete;
  request_lines& operator=(const request_lines&) = delete;

  void add(const std::string& line);
  curl_slist* list() const { return list_; }
  /// Overwrites every line but keeps the list, which libcurl still points to.
  void overwrite();
  void wipe();

private:
  curl_slist* list_ = nullptr;
};

/// What the thread of the port and its calls share.
struct call_loop {
  std::chrono::nanoseconds now{0};
  /// Calls that libcurl told of something since the loop last looked, each once.
  std::vector<uint64_t> touched;
};

/// One call on one easy handle: its options, what libcurl tells of it, and what is to be reported.
/// Used by the thread of the port only.
class curl_call {
public:
  curl_call(http_call call, const curl_port_options& options, call_loop& loop);
  curl_call(const curl_call&) = delete;
  curl_call& operator=(const curl_call&) = delete;

  /// Sets the handle up, the key included. `invalid_input` when the call cannot be sent at all.
  result<void> prepare(easy_handle easy);
  /// Gives the handle back, reset.
  easy_handle release();

  uint64_t id() const { return call_.id; }
  CURL* easy() const { return easy_.get(); }
  const call_url& url() const { return url_; }
  /// The protocol is known to be older than HTTP/2: from the answer's first line.
  bool is_http1() const;

  /// Whether there is something that the reader has not been told.
  bool has_news() const { return news_; }
  http_report take_news();
  void seen_by_loop() { touched_ = false; }
  /// What is left, with the end. `code` as libcurl ended it.
  http_report end_by_transfer(CURLcode code);
  http_report end(http_end how, std::string why);

  call_deadlines deadlines;
  curl_multis::lane lane = curl_multis::lane::few;
  /// When the alarm queue looks at it next; 0 for never.
  std::chrono::nanoseconds armed_at{0};
  bool finished_asked = false;

private:
  result<void> write_lines();
  void set_options();
  void set_debug();
  size_t take_head(std::string_view line);
  size_t take_body(std::string_view bytes);
  void touch();
  void drop_sent_body();
  void tell_debug(curl_infotype kind, std::string_view text);

  static size_t on_head(char* bytes, size_t size, size_t count, void* self);
  static size_t on_body(char* bytes, size_t size, size_t count, void* self);
  static curl_socket_t on_connecting(void* self, curlsocktype purpose, curl_sockaddr* address);
  static int on_resolving(void* resolver, void* reserved, void* self);
  static int on_sending(void* self, char* to, char* from, int to_port, int from_port);
  static int on_debug(CURL* easy, curl_infotype kind, char* bytes, size_t size, void* self);

  http_call call_;
  const curl_port_options& options_;
  call_loop& loop_;
  call_url url_;
  server_rules rules_;
  easy_handle easy_;
  request_lines lines_;
  /// Knows the key only while libcurl's own words are passed on.
  redactor secrets_;
  answer_head head_;
  sse_parser events_;
  http_report pending_;
  std::string body_;
  size_t answer_bytes_ = 0;
  bool touched_ = false;
  bool news_ = false;
  bool head_told_ = false;
  /// The connection ended before an answer, and libcurl wanted to send the request again.
  bool cut_unanswered_ = false;
  std::string too_large_;
  std::array<char, CURL_ERROR_SIZE> error_{};
};

} // namespace gristmill
