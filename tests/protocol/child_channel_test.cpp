#include "protocol/child_channel.hpp"

#include <array>
#include <cerrno>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace gristmill;

namespace {

constexpr const char* nonce = "0123456789abcdef";

/// A pipe whose write end the channel takes over.
struct pipe_fixture {
  std::array<int, 2> ends{-1, -1};
  std::string seen;

  pipe_fixture() { REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0); }
  ~pipe_fixture() { close(ends[0]); }

  /// The next line; fails instead of hanging.
  std::string line() {
    for (;;) {
      if (const auto end = seen.find('\n'); end != std::string::npos) {
        auto text = seen.substr(0, end);
        seen.erase(0, end + 1);
        return text;
      }
      pollfd one{ends[0], POLLIN, 0};
      REQUIRE(poll(&one, 1, 20'000) == 1);
      char buffer[4096];
      const auto n = read(ends[0], buffer, sizeof buffer);
      if (n <= 0)
        return "";
      seen.append(buffer, static_cast<size_t>(n));
    }
  }

  std::vector<child_line> rest() {
    std::vector<child_line> all;
    for (std::string text; !(text = line()).empty();) {
      auto parsed = parse_child_line(text, nonce);
      REQUIRE(parsed);
      if (parsed->kind != child_line_kind::heartbeat)
        all.push_back(*parsed);
    }
    return all;
  }
};

} // namespace

TEST_CASE_FIXTURE(pipe_fixture, "what a child writes is what the parent reads") {
  {
    auto channel = child_channel::open(nonce, ends[1]);
    REQUIRE(channel);
    (*channel)->hello("gristmill-runner", "none");
    (*channel)->phase("check");
    (*channel)->sample({{"time_ns", 12}});
    (*channel)->fault({{"fault", "out_of_bounds"}});
    (*channel)->done({{"workloads", 1}});
  }
  const auto lines = rest();
  REQUIRE(lines.size() == 5);
  CHECK(lines[0].kind == child_line_kind::hello);
  CHECK(lines[0].body.at("program") == "gristmill-runner");
  CHECK(lines[0].body.at("network") == "none");
  CHECK(lines[1].kind == child_line_kind::phase);
  CHECK(lines[1].body == ordered_json{{"name", "check"}});
  CHECK(lines[2].kind == child_line_kind::sample);
  CHECK(lines[2].body == ordered_json{{"time_ns", 12}});
  CHECK(lines[3].kind == child_line_kind::fault);
  CHECK(lines[4].kind == child_line_kind::done);
  CHECK(lines[4].body == ordered_json{{"workloads", 1}});
}

TEST_CASE_FIXTURE(pipe_fixture, "a child that says nothing else still beats") {
  auto channel = child_channel::open(nonce, ends[1]);
  REQUIRE(channel);
  for (int i = 0; i < 2; ++i) {
    auto parsed = parse_child_line(line(), nonce);
    REQUIRE(parsed);
    CHECK(parsed->kind == child_line_kind::heartbeat);
  }
}

TEST_CASE_FIXTURE(pipe_fixture, "nothing follows done") {
  {
    auto channel = child_channel::open(nonce, ends[1]);
    REQUIRE(channel);
    (*channel)->done();
    (*channel)->sample({{"late", true}});
    (*channel)->done();
  }
  const auto lines = rest();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].kind == child_line_kind::done);
}

TEST_CASE_FIXTURE(pipe_fixture, "lines of several threads do not mix") {
  {
    auto channel = child_channel::open(nonce, ends[1]);
    REQUIRE(channel);
    // Less than a pipe holds, since nobody reads meanwhile.
    std::vector<std::thread> writers;
    for (int i = 0; i < 4; ++i)
      writers.emplace_back([&] {
        for (int k = 0; k < 50; ++k)
          (*channel)->sample({{"text", std::string(100, 'x')}});
      });
    for (auto& writer : writers)
      writer.join();
  }
  CHECK(rest().size() == 200);
}

TEST_CASE_FIXTURE(pipe_fixture, "bytes that are no UTF-8 do not end the child") {
  {
    auto channel = child_channel::open(nonce, ends[1]);
    REQUIRE(channel);
    (*channel)->sample({{"text", "\xff\xfe"}});
  }
  CHECK(rest().size() == 1);
}

TEST_CASE("a child without its descriptor refuses to work") {
  auto closed = child_channel::open(nonce, 999);
  REQUIRE_FALSE(closed);
  CHECK(closed.error().code == errc::refused);
  CHECK(closed.error().what.find("999") != std::string::npos);

  const int readable = open("/dev/null", O_RDONLY | O_CLOEXEC);
  auto wrong_way = child_channel::open(nonce, readable);
  CHECK_FALSE(wrong_way);
  close(readable);
}

TEST_CASE("every kind of line has its name") {
  for (auto kind : {child_line_kind::hello, child_line_kind::phase, child_line_kind::heartbeat,
         child_line_kind::sample, child_line_kind::fault, child_line_kind::done}) {
    const ordered_json line{{"line", to_string(kind)}, {"nonce", nonce}, {"x", 1}};
    auto parsed = parse_child_line(line.dump(), nonce);
    REQUIRE(parsed);
    CHECK(parsed->kind == kind);
    CHECK(parsed->body == ordered_json{{"x", 1}});
  }
}

TEST_CASE("a line that is not a child's line is refused") {
  const std::string good = R"({"line":"done","nonce":"0123456789abcdef"})";
  REQUIRE(parse_child_line(good, nonce));
  CHECK_FALSE(parse_child_line(good, "another-nonce-0000"));
  CHECK_FALSE(parse_child_line(good, ""));
  for (const char* line :
    {"", "x", "[]", "null", "{}", R"({"line":"done"})", R"({"nonce":"0123456789abcdef"})",
      R"({"line":"end","nonce":"0123456789abcdef"})", R"({"line":3,"nonce":"0123456789abcdef"})",
      R"({"line":"done","nonce":7})", R"({"line":"done","nonce":"0123456789abcdef"} {})",
      R"({"line":"done","nonce":"0123456789abcdef")"}) {
    CAPTURE(line);
    auto parsed = parse_child_line(line, nonce);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code == errc::invalid_input);
  }
}

TEST_CASE("a line that is too long or too deep is refused, not followed") {
  const std::string head = R"({"line":"sample","nonce":"0123456789abcdef","x":)";
  CHECK_FALSE(
    parse_child_line(head + "\"" + std::string(child_line_bytes_max, 'x') + "\"}", nonce));
  CHECK_FALSE(
    parse_child_line(head + std::string(100'000, '[') + std::string(100'000, ']') + "}", nonce));
}
