#include "journal/event_line.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <vector>

using namespace gristmill;

namespace {

event full_event() {
  event e;
  e.seq = 7;
  e.incarnation = 2;
  e.t = std::chrono::nanoseconds{123456789};
  e.wall = 1764000000000000000;
  e.kind = "verdict";
  e.problem = "rmsnorm";
  e.attempt = "rmsnorm/cuda/3";
  e.candidate = "abcd";
  e.gpu = "mock:h200#0";
  e.token = 41;
  e.reason = "say \"hi\"\n\\ \x01";
  e.data = R"({"a":1,"b":[1.5,null,true],"held_ns":12})";
  return e;
}

bool same(const event& a, const event& b) {
  return canonical_line(a) == canonical_line(b);
}

} // namespace

TEST_CASE("a line has all fields in the canonical order") {
  event e;
  e.kind = "start";
  CHECK(canonical_line(e)
    == R"({"seq":0,"v":1,"incarnation":0,"t":0,"wall":0,"kind":"start","problem":"","attempt":"",)"
       R"("candidate":"","gpu":"","token":0,"reason":"","data":{}})");
}

TEST_CASE("a line that is read and written again is the same, byte for byte") {
  auto e = full_event();
  auto back = parse_line(canonical_line(e));
  REQUIRE(back);
  CHECK(same(*back, e));
  CHECK(back->reason == e.reason);
  CHECK(back->t == e.t);
  CHECK(back->wall == e.wall);
  CHECK(back->token == e.token);
  CHECK(back->data == e.data);
}

TEST_CASE("an unknown kind is kept") {
  auto e = full_event();
  e.kind = "from_the_future";
  CHECK(parse_line(canonical_line(e))->kind == "from_the_future");
}

TEST_CASE("bytes that are not UTF-8 never break a line") {
  auto e = full_event();
  e.reason = "\xff\xfe broken";
  auto back = parse_line(canonical_line(e));
  REQUIRE(back);
  CHECK(back->reason.find("broken") != std::string::npos);
}

TEST_CASE("a broken line is refused and the field is named") {
  auto line = canonical_line(full_event());
  auto with = [&](const std::string& from, const std::string& to) {
    auto changed = line;
    auto at = changed.find(from);
    REQUIRE(at != std::string::npos);
    return parse_line(changed.replace(at, from.size(), to));
  };
  CHECK(
    with("\"kind\":\"verdict\"", "\"kind\":3").error().what.find("'kind'") != std::string::npos);
  CHECK(with("\"token\":41", "\"token\":-1").error().what.find("'token'") != std::string::npos);
  CHECK(with("\"token\":41", "\"token\":1.5").error().what.find("'token'") != std::string::npos);
  CHECK(with("\"t\":123456789", "\"t\":99999999999999999999").error().what.find("'t'")
    != std::string::npos);
  CHECK(with("\"incarnation\":2", "\"incarnation\":4294967296").error().what.find("'incarnation'")
    != std::string::npos);
  CHECK(with("\"seq\":7,", "").error().what.find("'seq'") != std::string::npos);
  CHECK(with("\"seq\":7", "\"seq\":7,\"sequ\":7").error().what.find("'sequ'") != std::string::npos);
  CHECK(with("\"data\":{", "\"datum\":{").error().code == errc::invalid_input);
  CHECK(with("\"v\":1", "\"v\":2").error().code == errc::unsupported);
  CHECK(parse_line("").error().code == errc::invalid_input);
  CHECK(parse_line("[]").error().code == errc::invalid_input);
  CHECK(parse_line(line.substr(0, line.size() - 1)).error().code == errc::invalid_input);
}

TEST_CASE("a hostile line is refused before anything is built of it") {
  CHECK(parse_line(std::string(event_line_bytes_max + 1, ' ')).error().code == errc::invalid_input);
  auto deep = "{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  auto refused = canonical_data(deep);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what.find("deeper") != std::string::npos);
  CHECK(canonical_data("{\"a\":\"" + std::string(200, '[') + "\"}"));
}

TEST_CASE("canonical data has sorted keys and no white space") {
  CHECK(*canonical_data("{ \"b\" : 1,\n \"a\" : { \"d\":2, \"c\":[1, 2] } }")
    == R"({"a":{"c":[1,2],"d":2},"b":1})");
  CHECK_FALSE(canonical_data("[1]"));
  CHECK_FALSE(canonical_data("nonsense"));
}

TEST_CASE("the digest does not see the order of independent actors") {
  auto a = full_event();
  auto b = full_event();
  b.kind = "attempt";
  std::vector<event> one{a, b};
  std::vector<event> two{b, a};
  CHECK(digest(one) == digest(two));
}

TEST_CASE("the digest does not see what a clock decides") {
  auto a = full_event();
  auto b = a;
  b.seq = 99;
  b.t += std::chrono::seconds{1};
  b.wall += 1;
  b.incarnation = 5;
  b.gpu = "mock:h200#1";
  b.token = 1234;
  b.data = R"({"a":1,"b":[1.5,null,true],"held_ns":99})";
  CHECK(digest(std::vector{a}) == digest(std::vector{b}));
  b.data = R"({"a":1,"b":[1.5,null,true]})";
  CHECK(digest(std::vector{a}) == digest(std::vector{b}));
}

TEST_CASE("every key of the wall-clock table is left out at any depth") {
  CHECK(std::is_sorted(wall_clock_keys.begin(), wall_clock_keys.end()));
  auto plain = full_event();
  plain.data = R"({"x":[{"y":{}}]})";
  for (auto key : wall_clock_keys) {
    CAPTURE(std::string{key});
    auto e = full_event();
    e.data = "{\"x\":[{\"y\":{\"" + std::string{key} + "\":5}}]}";
    CHECK(digest_line(e) == digest_line(plain));
  }
}

TEST_CASE("the digest sees everything else") {
  auto base = full_event();
  auto changed = [&](auto change) {
    auto e = base;
    change(e);
    return digest(std::vector{e}) != digest(std::vector{base});
  };
  CHECK(changed([](event& e) { e.kind += "x"; }));
  CHECK(changed([](event& e) { e.problem += "x"; }));
  CHECK(changed([](event& e) { e.attempt += "x"; }));
  CHECK(changed([](event& e) { e.candidate += "x"; }));
  CHECK(changed([](event& e) { e.reason += "x"; }));
  CHECK(changed([](event& e) { e.data = R"({"a":2})"; }));
  CHECK(digest(std::vector{base, base}) != digest(std::vector{base}));
}

TEST_CASE("kinds whose number depends on the interleaving are outside the digest") {
  auto block = full_event();
  block.kind = "token_block";
  CHECK(digest(std::vector{full_event(), block}) == digest(std::vector{full_event()}));
}

TEST_CASE("the digest of no events is the SHA-256 of nothing") {
  CHECK(digest({}) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
