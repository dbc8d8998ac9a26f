#include "protocol/mcp/session.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace gristmill;

namespace {

mcp_catalogue small_catalogue() {
  mcp_catalogue out;
  out.version = "0.0.1";
  out.instructions = "Ask.";
  out.tools.push_back({"echo", "Echo", "Says it again.",
    {{"type", "object"},
      {"properties",
        {{"text", {{"type", "string"}, {"maxLength", 8}, {"minLength", 1}}},
          {"times", {{"type", "integer"}, {"minimum", 1}, {"maximum", 3}}},
          {"colour", {{"type", "string"}, {"enum", {"red", "green"}}}},
          {"list", {{"type", "array"}, {"maxItems", 2}, {"items", {{"type", "string"}}}}}}},
      {"required", {"text"}}, {"additionalProperties", false}},
    {{"type", "object"}}, true});
  out.resources.push_back(
    {"gristmill://program.md", "program.md", "rules", "text/markdown", [] { return "# Rules"; }});
  out.prompts.push_back({"begin", "how to begin", {{"problem", "its name", true}},
    [](const std::string& name) -> result<std::string> {
      if (name != "softmax")
        return fail(errc::invalid_input, "no such problem");
      return "Make " + name + " fast.";
    }});
  return out;
}

struct client {
  mcp_session session{small_catalogue()};

  ordered_json only(const mcp_step& step) {
    REQUIRE(step.lines.size() == 1);
    CHECK(step.lines[0].find('\n') == std::string::npos);
    return ordered_json::parse(step.lines[0]);
  }
  ordered_json send(const std::string& line) { return only(session.on_line(line)); }
  int error_of(const std::string& line) { return send(line).at("error").at("code").get<int>(); }

  ordered_json initialize(const std::string& version = "2025-11-25") {
    return send(R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":")"
      + version + R"(","capabilities":{},"clientInfo":{"name":"t","version":"1"}}})");
  }
};

const std::string modern =
  R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}})";

std::string call(
  const std::string& id, const std::string& arguments, const std::string& more = "") {
  return R"({"jsonrpc":"2.0","id":)" + id
    + R"(,"method":"tools/call","params":{"name":"echo","arguments":)" + arguments + more + "}}";
}

} // namespace

TEST_CASE_FIXTURE(
  client, "the handshake agrees on the client's revision, or offers the newest with one") {
  CHECK(initialize("2025-06-18").at("result").at("protocolVersion") == "2025-06-18");
  client other;
  CHECK(other.initialize("1999-01-01").at("result").at("protocolVersion") == "2025-11-25");
  client modern_by_handshake;
  CHECK(modern_by_handshake.initialize("2026-07-28").at("result").at("protocolVersion")
    == "2025-11-25");
  CHECK(session.on_line(R"({"jsonrpc":"2.0","method":"notifications/initialized"})").lines.empty());
  auto tools = send(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})").at("result").at("tools");
  REQUIRE(tools.size() == 1);
  CHECK(tools[0].at("name") == "echo");
  CHECK(tools[0].at("inputSchema").at("required")[0] == "text");
  CHECK(tools[0].at("annotations").at("readOnlyHint") == true);
  CHECK(
    error_of(
      R"({"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25"}})")
    == -32600);
}

TEST_CASE_FIXTURE(client, "calls before initialize are refused, ping is not") {
  CHECK(error_of(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})") == -32600);
  CHECK(error_of(call("1", R"({"text":"a"})")) == -32600);
  CHECK(send(R"({"jsonrpc":"2.0","id":"p","method":"ping"})").at("result").empty());
  CHECK(session.in_flight() == 0);
}

TEST_CASE_FIXTURE(client, "the revision without a handshake says itself with each request") {
  auto found =
    send(R"({"jsonrpc":"2.0","id":1,"method":"server/discover","params":{)" + modern + "}}")
      .at("result");
  CHECK(found.at("resultType") == "complete");
  CHECK(found.at("supportedVersions")[0] == "2026-07-28");
  CHECK(found.at("_meta").at("io.modelcontextprotocol/serverInfo").at("name") == "gristmill");
  CHECK(found.at("ttlMs").is_number());
  CHECK(found.at("cacheScope").is_string());
  auto list = send(R"({"jsonrpc":"2.0","id":2,"method":"tools/list","params":{)" + modern + "}}")
                .at("result");
  CHECK(list.at("resultType") == "complete");
  CHECK(list.at("tools").size() == 1);
  // What went out of that revision is no method of it.
  CHECK(
    error_of(R"({"jsonrpc":"2.0","id":3,"method":"ping","params":{)" + modern + "}}") == -32601);
  CHECK(error_of(R"({"jsonrpc":"2.0","id":4,"method":"server/discover"})") == -32602);
}

TEST_CASE_FIXTURE(client, "another revision is refused with the list of those that are spoken") {
  auto refused = send(
    R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"1900-01-01","io.modelcontextprotocol/clientCapabilities":{}}}})");
  CHECK(refused.at("error").at("code") == -32022);
  CHECK(refused.at("error").at("data").at("requested") == "1900-01-01");
  CHECK(refused.at("error").at("data").at("supported").size() == mcp_versions().size());
  CHECK(
    error_of(
      R"({"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}})")
    == -32602);
}

TEST_CASE_FIXTURE(client, "a call is handed on once and answered once") {
  initialize();
  auto step = session.on_line(call("7", R"({"text":"hello"})"));
  CHECK(step.lines.empty());
  REQUIRE(step.calls.size() == 1);
  CHECK(step.calls[0].tool == "echo");
  CHECK(step.calls[0].arguments.at("text") == "hello");
  CHECK_FALSE(step.calls[0].wants_progress);
  CHECK(session.on_progress(step.calls[0].number, 1, "x").empty());
  auto lines = session.on_outcome(step.calls[0].number, {"hello", {{"said", "hello"}}, false});
  REQUIRE(lines.size() == 1);
  auto answer = ordered_json::parse(lines[0]);
  CHECK(answer.at("id") == 7);
  CHECK(answer.at("result").at("content")[0].at("text") == "hello");
  CHECK(answer.at("result").at("structuredContent").at("said") == "hello");
  CHECK(answer.at("result").at("isError") == false);
  CHECK(session.on_outcome(step.calls[0].number, {"again", nullptr, false}).empty());
  CHECK(session.in_flight() == 0);
}

TEST_CASE_FIXTURE(client, "arguments that do not fit are a tool's error, which names the field") {
  initialize();
  auto said = [&](const std::string& arguments) {
    auto answer = send(call("1", arguments)).at("result");
    CHECK(answer.at("isError") == true);
    return answer.at("content")[0].at("text").get<std::string>();
  };
  CHECK(said("{}") == "text: missing");
  CHECK(said(R"({"text":5})").starts_with("text: must be of type string"));
  CHECK(said(R"({"text":""})").starts_with("text: must not be empty"));
  CHECK(said(R"({"text":"far too long"})").starts_with("text: 12 bytes"));
  CHECK(said(R"({"text":"a","tmes":2})").find("did you mean `times`") != std::string::npos);
  CHECK(said(R"({"text":"a","times":9})").starts_with("times: 9 is out of range"));
  CHECK(said(R"({"text":"a","times":1.5})").starts_with("times: must be of type integer"));
  CHECK(said(R"({"text":"a","colour":"gren"})").find("`green`") != std::string::npos);
  CHECK(said(R"({"text":"a","list":["a",1]})").starts_with("list[1]: must be of type string"));
  CHECK(said(R"({"text":"a","list":["a","b","c"]})").starts_with("list: 3 entries"));
  CHECK(session.in_flight() == 0);
}

TEST_CASE_FIXTURE(client, "an unknown tool, method, resource or prompt is the protocol's error") {
  initialize();
  CHECK(
    error_of(
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ech","arguments":{}}})")
    == -32602);
  CHECK(
    error_of(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}})") == -32602);
  CHECK(
    error_of(
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":[]}})")
    == -32602);
  CHECK(error_of(R"({"jsonrpc":"2.0","id":1,"method":"nothing"})") == -32601);
  CHECK(error_of(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}})")
    == -32602);
  CHECK(
    error_of(
      R"({"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}})")
    == -32002);
  CHECK(error_of(R"({"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///x",)"
          + modern + "}}")
    == -32602);
  CHECK(error_of(R"({"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"begin"}})")
    == -32602);
  CHECK(
    error_of(
      R"({"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"begin","arguments":{"problem":"x"}}})")
    == -32602);
  CHECK(
    send(
      R"({"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"begin","arguments":{"problem":"softmax"}}})")
      .at("result")
      .at("messages")[0]
      .at("content")
      .at("text")
    == "Make softmax fast.");
  CHECK(
    send(
      R"({"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"gristmill://program.md"}})")
      .at("result")
      .at("contents")[0]
      .at("text")
    == "# Rules");
}

TEST_CASE_FIXTURE(client, "what is no request is refused, and the session goes on") {
  initialize();
  CHECK(error_of("{") == -32700);
  CHECK(error_of("hello") == -32700);
  CHECK(error_of("\xff\xfe{}") == -32700);
  CHECK(error_of("[]") == -32600);
  CHECK(error_of("5") == -32600);
  CHECK(error_of("{}") == -32600);
  CHECK(error_of(R"({"jsonrpc":"1.0","id":1,"method":"ping"})") == -32600);
  CHECK(error_of(R"({"jsonrpc":"2.0","id":1,"method":5})") == -32600);
  CHECK(error_of(R"({"jsonrpc":"2.0","id":null,"method":"ping"})") == -32600);
  CHECK(error_of(R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})") == -32600);
  CHECK(error_of(R"({"jsonrpc":"2.0","id":{},"method":"ping"})") == -32600);
  CHECK(error_of(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[1]})") == -32602);
  CHECK(
    error_of(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":5}})") == -32602);
  CHECK(error_of(R"({"jsonrpc":"2.0","id":")" + std::string(300, 'a') + R"(","method":"ping"})")
    == -32600);
  CHECK(error_of(std::string(1000, '[')) == -32600);
  CHECK(error_of(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":)" + std::string(100, '[')
          + std::string(100, ']') + "}")
    == -32600);
  CHECK(error_of(std::string((size_t{4} << 20) + 1, ' ') + "{}") == -32600);
  CHECK(session.on_line("").lines.empty());
  CHECK(session.on_line(" \t\r").lines.empty());
  CHECK(session.on_line(R"({"jsonrpc":"2.0","id":1,"result":{}})").lines.empty());
  CHECK(session.on_line(R"({"jsonrpc":"2.0","method":"unheard/of","params":[]})").lines.empty());
  CHECK(send(R"({"jsonrpc":"2.0","id":1,"method":"ping"})").contains("result"));
}

TEST_CASE_FIXTURE(client, "an id in flight is not used twice, and is free again after its answer") {
  initialize();
  auto step = session.on_line(call("1", R"({"text":"a"})"));
  REQUIRE(step.calls.size() == 1);
  CHECK(error_of(call("1", R"({"text":"b"})")) == -32600);
  CHECK(error_of(R"({"jsonrpc":"2.0","id":1,"method":"ping"})") == -32600);
  CHECK(session.on_line(call("\"1\"", R"({"text":"b"})")).calls.size() == 1);
  CHECK(session.on_outcome(step.calls[0].number, {"a", nullptr, false}).size() == 1);
  CHECK(session.on_line(call("1", R"({"text":"b"})")).calls.size() == 1);
}

TEST_CASE_FIXTURE(client, "progress is told to whoever asked, and only forwards") {
  initialize();
  auto step = session.on_line(call("1", R"({"text":"a"})", R"(,"_meta":{"progressToken":"t"})"));
  REQUIRE(step.calls.size() == 1);
  CHECK(step.calls[0].wants_progress);
  auto number = step.calls[0].number;
  auto lines = session.on_progress(number, 1, "compiling");
  REQUIRE(lines.size() == 1);
  auto told = ordered_json::parse(lines[0]);
  CHECK(told.at("method") == "notifications/progress");
  CHECK(told.at("params").at("progressToken") == "t");
  CHECK(told.at("params").at("progress") == 1);
  CHECK(told.at("params").at("message") == "compiling");
  CHECK_FALSE(told.contains("id"));
  CHECK(session.on_progress(number, 1, "compiling").empty());
  CHECK(session.on_progress(number, 0.5, "back").empty());
  CHECK(session.on_progress(number, 2, "").size() == 1);
  CHECK(session.on_outcome(number, {"a", nullptr, false}).size() == 1);
  CHECK(session.on_progress(number, 3, "late").empty());
  CHECK(error_of(call("2", R"({"text":"a"})", R"(,"_meta":{"progressToken":{}})")) == -32602);
}

TEST_CASE_FIXTURE(client, "a call that was cancelled is never answered") {
  initialize();
  auto step = session.on_line(call("1", R"({"text":"a"})"));
  auto number = step.calls.at(0).number;
  auto cancel = [&](const std::string& id) {
    return session
      .on_line(
        R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)" + id + "}}")
      .cancelled;
  };
  CHECK(cancel("9").empty());
  CHECK(cancel("\"1\"").empty());
  CHECK(
    session.on_line(R"({"jsonrpc":"2.0","method":"notifications/cancelled"})").cancelled.empty());
  CHECK(cancel("1") == std::vector<uint64_t>{number});
  CHECK(cancel("1").empty());
  CHECK(session.on_outcome(number, {"late", nullptr, false}).empty());
}

TEST_CASE("more calls than the limit are turned away with a word, not with silence") {
  mcp_limits limits;
  limits.calls_in_flight = 2;
  mcp_session session(small_catalogue(), limits);
  session.on_line(
    R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}})");
  CHECK(session.on_line(call("1", R"({"text":"a"})")).calls.size() == 1);
  CHECK(session.on_line(call("2", R"({"text":"a"})")).calls.size() == 1);
  auto step = session.on_line(call("3", R"({"text":"a"})"));
  CHECK(step.calls.empty());
  REQUIRE(step.lines.size() == 1);
  CHECK(ordered_json::parse(step.lines[0]).at("result").at("isError") == true);
  CHECK(session.in_flight() == 2);
}
