#include "llm/traffic/call_reader.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

/// "text" adds, "usage" makes usage exact, "end" is the terminal event, "busy" is trouble in the
/// stream.
class toy_decoder final : public reply_decoder {
public:
  void take(const sse_event& event) override {
    ++events;
    if (event.name == "text")
      reply_.text += event.data;
    if (event.name == "usage")
      reply_.usage = {usage_state::exact, 7, 0, 0, 3, 0};
    if (event.name == "busy")
      reply_.failed = {trouble_kind::overload, std::chrono::nanoseconds{0}, "busy"};
    if (event.name == "end" || event.name == "busy")
      finished_ = true;
  }
  bool finished() const override { return finished_; }
  size_t text_bytes() const override { return reply_.text.size(); }
  decoded_reply result(uint32_t) override {
    auto out = reply_;
    if (!finished_)
      out.failed = {trouble_kind::ambiguous, std::chrono::nanoseconds{0}, "no end"};
    else if (out.failed.kind == trouble_kind::none)
      out.finish = finish_kind::stop;
    return out;
  }
  int events = 0;

private:
  decoded_reply reply_;
  bool finished_ = false;
};

class toy_dialect final : public dialect {
public:
  std::string_view name() const override { return "toy"; }
  result<http_call> encode(const llm_request&, const dialect_options&) const override {
    return http_call{};
  }
  std::unique_ptr<reply_decoder> decoder() const override {
    return std::make_unique<toy_decoder>();
  }
  trouble judge_failure(const http_report& ended, std::chrono::sys_seconds) const override {
    last = ended;
    return failure_is;
  }
  rate_limits limits_of(const http_headers& headers, std::chrono::sys_seconds) const override {
    return {static_cast<int64_t>(headers.size()), -1, std::chrono::nanoseconds{-1},
      std::chrono::nanoseconds{-1}};
  }
  mutable http_report last;
  trouble failure_is{trouble_kind::throttle, 5s, "429"};
};

http_report headers(uint32_t status, const std::string& type) {
  http_report out;
  out.id = 4;
  out.status = status;
  out.headers = {{"content-type", type}};
  return out;
}

http_report with(std::vector<sse_event> events) {
  http_report out;
  out.id = 4;
  out.events = std::move(events);
  return out;
}

http_report ending(http_end how, const std::string& why = "") {
  http_report out;
  out.id = 4;
  out.ended = true;
  out.how = how;
  out.why = why;
  return out;
}

struct one_call {
  toy_dialect how;
  call_reader reader{4, how, 100};
  std::optional<try_result> take(http_report r, std::chrono::nanoseconds t = 0s) {
    return reader.take(std::move(r), t, {});
  }
};

} // namespace

TEST_SUITE_BEGIN("call reader");

TEST_CASE_FIXTURE(one_call, "a stream in pieces is one result, decided by its own terminal event") {
  CHECK_FALSE(take(headers(200, "text/event-stream; charset=utf-8")));
  CHECK_FALSE(take(with({{"text", "ab"}}), 2s));
  CHECK_FALSE(reader.just_finished());
  CHECK_FALSE(take(with({{"text", "c"}, {"usage", ""}, {"end", ""}}), 3s));
  CHECK(reader.just_finished());
  CHECK_FALSE(reader.just_finished());
  // Whatever the transport thinks of the rest (curl 7.88 may lose the end).
  auto out = take(ending(http_end::cut_off, "reset"));
  REQUIRE(out);
  CHECK(out->id == 4);
  CHECK(out->status == 200);
  CHECK(out->sent);
  CHECK(out->reply.text == "abc");
  CHECK(out->reply.failed.kind == trouble_kind::none);
  CHECK(out->reply.usage.state == usage_state::exact);
  CHECK(out->first_event == 2s);
  CHECK(out->limits.requests_remaining == 1);
}

TEST_CASE_FIXTURE(one_call, "a stream without its terminal event may have been billed") {
  take(headers(200, "text/event-stream"));
  take(with({{"text", "ab"}, {"usage", ""}}));
  auto out = take(ending(http_end::cut_off, "reset"));
  CHECK(out->reply.failed.kind == trouble_kind::ambiguous);
  CHECK(out->reply.failed.what == "reset");
  CHECK_FALSE(out->refused_unbilled);
  CHECK(out->reply.usage.state == usage_state::estimated);
}

TEST_CASE_FIXTURE(
  one_call, "a stream that ends in order without one event is judged by the dialect") {
  take(headers(200, "text/event-stream"));
  CHECK(take(ending(http_end::complete))->reply.failed.kind == trouble_kind::ambiguous);
}

TEST_CASE_FIXTURE(one_call, "trouble before the first word was not billed, after it nobody knows") {
  take(headers(200, "text/event-stream"));
  take(with({{"busy", ""}}));
  auto out = take(ending(http_end::complete));
  CHECK(out->reply.failed.kind == trouble_kind::overload);
  CHECK(out->refused_unbilled);
  one_call late;
  late.take(headers(200, "text/event-stream"));
  late.take(with({{"text", "ab"}, {"busy", ""}}));
  CHECK_FALSE(late.take(ending(http_end::complete))->refused_unbilled);
}

TEST_CASE_FIXTURE(
  one_call, "a status that says no is judged by the dialect, with status and headers") {
  take(headers(429, "application/json"));
  auto last = ending(http_end::complete);
  last.body = "{}";
  auto out = take(last);
  CHECK(out->reply.failed.kind == trouble_kind::throttle);
  CHECK(out->reply.failed.wait == 5s);
  CHECK(out->refused_unbilled);
  CHECK(how.last.status == 429);
  CHECK(how.last.headers.size() == 1);
  CHECK(how.last.body == "{}");
}

TEST_CASE("a gateway that lost its model server may hide work that is billed; others do not") {
  for (auto [status, unbilled] : {std::pair{502u, false}, {524u, false}, {504u, false},
         {408u, false}, {500u, true}, {503u, true}, {529u, true}, {401u, true}}) {
    CAPTURE(status);
    one_call c;
    c.how.failure_is = {trouble_kind::transient, 0s, "no"};
    c.take(headers(status, "text/html"));
    CHECK(c.take(ending(http_end::complete))->refused_unbilled == unbilled);
  }
}

TEST_CASE_FIXTURE(one_call, "200 with something that is no stream is never an answer") {
  how.failure_is = {};
  take(headers(200, "text/html"));
  auto out = take(ending(http_end::complete));
  CHECK(out->reply.failed.kind == trouble_kind::ambiguous);
  CHECK_FALSE(out->refused_unbilled);
  one_call error;
  error.how.failure_is = {trouble_kind::money, 0s, "no credit"};
  error.take(headers(200, "application/json"));
  CHECK(error.take(ending(http_end::complete))->refused_unbilled);
}

TEST_CASE_FIXTURE(
  one_call, "200 without a stream may be a model that has worked: its bill is unknown") {
  how.failure_is = {trouble_kind::config, 0s, "no event stream"};
  take(headers(200, "application/json"));
  CHECK_FALSE(take(ending(http_end::complete))->refused_unbilled);
}

TEST_CASE_FIXTURE(
  one_call, "a key that is not in its variable is a setting, and no server's trouble") {
  how.failure_is = {trouble_kind::config, 0s, "the variable"};
  const auto out = take(ending(http_end::not_sent, "the variable"));
  CHECK(out->reply.failed.kind == trouble_kind::config);
  CHECK_FALSE(out->sent);
}

TEST_CASE_FIXTURE(one_call, "the provider's number of the request is the one in its headers") {
  auto head = headers(200, "text/event-stream");
  head.headers.emplace_back("x-request-id", "req-77");
  take(head);
  CHECK(take(ending(http_end::cut_off))->reply.request_id == "req-77");
}

TEST_CASE("each end of a transfer is sent or not, known or not, in time or not") {
  struct row {
    http_end how;
    trouble_kind kind;
    bool sent;
    bool timed_out;
  };
  for (auto r : {row{http_end::not_sent, trouble_kind::overload, false, false},
         {http_end::connect_timeout, trouble_kind::overload, false, true},
         {http_end::first_event_timeout, trouble_kind::ambiguous, true, true},
         {http_end::idle_timeout, trouble_kind::ambiguous, true, true},
         {http_end::wall_timeout, trouble_kind::ambiguous, true, true},
         {http_end::cut_off, trouble_kind::transient, true, false},
         {http_end::too_large, trouble_kind::ambiguous, true, false}}) {
    CAPTURE(to_string(r.how));
    one_call c;
    auto out = c.take(ending(r.how, "why"));
    REQUIRE(out);
    CHECK(out->reply.failed.kind == r.kind);
    CHECK(out->sent == r.sent);
    CHECK(out->timed_out == r.timed_out);
    CHECK_FALSE(out->refused_unbilled);
    CHECK(out->reply.failed.what == "why");
    CHECK_FALSE(out->cancelled);
  }
  one_call c;
  CHECK(c.take(ending(http_end::cancelled))->cancelled);
}

TEST_CASE_FIXTURE(one_call, "events after the terminal one change nothing") {
  take(headers(200, "text/event-stream"));
  take(with({{"text", "a"}, {"end", ""}, {"text", "b"}}));
  CHECK(take(ending(http_end::complete))->reply.text == "a");
}

TEST_SUITE_END();
