#include "llm/cassette/canonical_request.hpp"

#include "llm/cassette/interaction.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

canonical_request of(const std::string& body, const std::string& url = "https://h/v1") {
  http_call call;
  call.url = url;
  call.body = body;
  const std::vector<std::string> none;
  return canonical(call, none, redactor{});
}

interaction full() {
  interaction out;
  out.request = of(R"({"b":[{}, "x\ny"],"a":1.5})");
  out.ordinal = 3;
  out.status = 200;
  out.headers = {{"request-id", "r"},
    {"retry-after",
      "\xFF"
      "1"}};
  out.events = {{std::chrono::microseconds{5}, {"delta", "gr\xC3\xBC\xC3\x9F"}},
    {std::chrono::microseconds{6}, {"", "broken \xC3"}}};
  out.body = std::string("\0\xFE\x7F", 3);
  out.how = http_end::idle_timeout;
  out.why = "silent";
  out.took = std::chrono::microseconds{77};
  out.redacted = {1, 2};
  return out;
}

std::string refusal(std::string line, const std::string& from, const std::string& to) {
  line.replace(line.find(from), from.size(), to);
  line.pop_back();
  const auto read = read_interaction(line, "f:1");
  REQUIRE_FALSE(read);
  CHECK(read.error().code == errc::invalid_input);
  CHECK(read.error().what.starts_with("f:1"));
  return read.error().what;
}

} // namespace

TEST_CASE("the address is part of a request") {
  CHECK(of("{}").hash == of("{}").hash);
  CHECK(of("{}").hash != of("{}", "https://h/v2").hash);
}

TEST_CASE("a JSON text and the same bytes as no JSON are two requests, null included") {
  CHECK(of("null").json.is_null());
  CHECK(of("null").text == "null");
  CHECK(of("1").hash != of("1 x").hash);
  CHECK(of("").hash == of("").hash);
}

TEST_CASE("nested too deep to be read is text, and still has a hash of its own") {
  const auto deep = of(std::string(100000, '['));
  CHECK(deep.json.is_null());
  CHECK(deep.hash != of(std::string(100001, '[')).hash);
}

TEST_CASE("a request in lines names each value by its path") {
  CHECK(lines_of(of(R"({"messages":[{"content":"eins\nzwei\n","role":"user"}],"n":1,"s":[]})"))
    == std::vector<std::string>{"url: https://h/v1", "messages.0.content: eins", "zwei", "",
      "messages.0.role: user", "n: 1", "s: []"});
  CHECK(lines_of(of("plain\ntext"))
    == std::vector<std::string>{"url: https://h/v1", "body: plain", "text"});
}

TEST_CASE("a difference shows the changed lines only, old before new") {
  CHECK(short_diff({"a", "b", "c", "d"}, {"a", "x", "c", "d", "e"}) == "- b\n+ x\n+ e\n");
  CHECK(short_diff({"a"}, {"a"}) == "");
  CHECK(short_diff({}, {"a"}) == "+ a\n");
  CHECK(
    short_diff({"a", "b", "c"}, {"d", "e", "f"}, 3) == "- a\n+ d\n- b\n(3 more lines differ)\n");
}

TEST_CASE("a long line is cut to where it differs, at whole characters") {
  const std::string start(500, 'x');
  std::string umlauts;
  for (int i = 0; i < 300; ++i)
    umlauts += "\xC3\xBC";
  const auto diff = short_diff({start + "old" + umlauts}, {start + "new" + umlauts});
  CHECK(diff.find("old") != std::string::npos);
  CHECK(diff.find("new") != std::string::npos);
  CHECK(diff.size() < 400);
  CHECK_NOTHROW((void)ordered_json(diff).dump());
}

TEST_CASE("an interaction survives being written and read, whatever bytes it holds") {
  const auto before = full();
  const auto line = write_interaction(before);
  CHECK(line.find('\n') == line.size() - 1);
  const auto after = read_interaction(line.substr(0, line.size() - 1), "f:1");
  REQUIRE_MESSAGE(after, (after ? "" : after.error().what));
  CHECK(after->request.hash == before.request.hash);
  CHECK(after->request.url == before.request.url);
  CHECK(after->request.json == before.request.json);
  CHECK(after->ordinal == 3);
  CHECK(after->status == 200);
  CHECK(after->headers == before.headers);
  CHECK(after->events == before.events);
  CHECK(after->body == before.body);
  CHECK(after->how == http_end::idle_timeout);
  CHECK(after->why == "silent");
  CHECK(after->took.count() == 77);
  CHECK(after->redacted == redaction_count{1, 2});
  CHECK(write_interaction(*after) == line);
}

TEST_CASE("a line that is no interaction is refused by the name of its field") {
  const auto line = write_interaction(full());
  CHECK(refusal(line, "\"cassette\":1", "\"cassette\":2").find("cassette") != std::string::npos);
  CHECK(refusal(line, "\"ordinal\":3", "\"ordinal\":-3").find("ordinal") != std::string::npos);
  CHECK(refusal(line, "\"status\":200", "\"status\":\"200\"").find("status") != std::string::npos);
  CHECK(refusal(line, "[5,", "[-5,").find("events") != std::string::npos);
  CHECK(
    refusal(line, "\"idle_timeout\"", "\"idle_timeot\"").find("idle_timeout") != std::string::npos);
  CHECK(refusal(line, "\"why\"", "\"whi\"").find("why") != std::string::npos);
  CHECK(refusal(line, "\"took_us\"", "\"took_ms\"").find("took_us") != std::string::npos);
  CHECK(
    refusal(line, "{\"cassette\"", "{\"extra\":1,\"cassette\"").find("extra") != std::string::npos);
}
