// The lines between the broker and its clients.

#include "gpu/broker/line_buffer.hpp"
#include "gpu/broker/wire.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

client_line full(client_verb verb) {
  client_line x;
  x.verb = verb;
  switch (verb) {
  case client_verb::hello:
    x.as = "alice/attention";
    break;
  case client_verb::request:
    x.request = 7;
    x.what = lease_class::profile;
    x.need = "memory>=80GiB";
    x.candidate = "c0ffee";
    x.command = "python3 bench.py \"quoted\" \xc3\xa9";
    x.estimate = 5s;
    x.patience = 10min;
    x.term = 60s;
    x.watch = 1s;
    x.guarded = true;
    break;
  case client_verb::cancel:
    x.request = 7;
    break;
  case client_verb::adopt:
    x.request = 7;
    x.held = 12s;
    [[fallthrough]];
  case client_verb::started:
    x.session = 4711;
    [[fallthrough]];
  case client_verb::renew:
  case client_verb::ended:
  case client_verb::check:
    x.gpu = 3;
    x.token = 99;
    x.lease = "0123456789abcdef";
    if (verb == client_verb::renew)
      x.idle = 2s;
    if (verb == client_verb::ended) {
      x.outcome = lease_outcome::hang;
      x.reason = "cap";
    }
    break;
  case client_verb::status:
    x.waiters = 50;
    break;
  case client_verb::drain:
    x.reason = "a fan is broken";
    [[fallthrough]];
  case client_verb::undrain:
    x.gpu_name = "cuda:0";
    break;
  case client_verb::quota:
    x.user = "alice";
    x.weight = 4;
    break;
  }
  return x;
}

std::string why(std::string_view text) {
  auto read = parse_client_line(text);
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().code == errc::invalid_input);
  return read.error().what;
}

} // namespace

TEST_CASE("every line of a client is read as it was written") {
  for (int verb = 0; verb <= static_cast<int>(client_verb::quota); ++verb) {
    auto line = full(static_cast<client_verb>(verb));
    auto text = write_client_line(line);
    CAPTURE(text);
    auto read = parse_client_line(text);
    REQUIRE_MESSAGE(read.has_value(), read.error().what);
    CHECK(*read == line);
  }
}

TEST_CASE("every line of the broker is read as it was written") {
  for (int say = 0; say <= static_cast<int>(broker_say::error); ++say) {
    broker_line line;
    line.say = static_cast<broker_say>(say);
    line.gpus = {"cuda:0", "cuda:1"};
    line.as = "alice/-";
    line.request = 7;
    line.ticket = 17;
    line.ahead = 3;
    line.estimated_wait = 12s;
    line.gpu = 1;
    line.token = 99;
    line.gpu_name = "cuda:1";
    line.lease = "0123";
    line.visible = "GPU-1-2";
    line.term = 60s;
    line.ttl = 30s;
    line.reason = "ttl";
    line.note = "n";
    line.probe = {probe_outcome::could_not, "no nvidia-smi"};
    line.code = errc::queue_full;
    line.what = "full";
    line.status = {{"gpus", ordered_json::array()}};
    auto text = write_broker_line(line);
    CAPTURE(text);
    auto read = parse_broker_line(text);
    REQUIRE_MESSAGE(read.has_value(), read.error().what);
    // What is written again is the same: all fields of the line have arrived.
    CHECK(write_broker_line(*read) == text);
  }
}

TEST_CASE("a line that does not hold is refused and names the field") {
  CHECK(why("") != "");
  CHECK(why("[]").find("object") != std::string::npos);
  CHECK(why(R"({"line":"helo","protocol":1})").find("hello") != std::string::npos);
  CHECK(why(R"({"line":"hello"})").find("protocol") != std::string::npos);
  CHECK(why(R"({"line":"hello","protocol":1,"x":1})").find("x") != std::string::npos);
  CHECK(why(R"({"line":"request","request":-1})").find("request") != std::string::npos);
  CHECK(
    why(R"({"line":"request","request":1,"class":"timming"})").find("timing") != std::string::npos);
  CHECK(why(R"({"line":"request","request":1,"term_ns":99999999999999999999})") != "");
  CHECK(why(R"({"line":"request","request":1,"term_ns":9223372036854775807})") != "");
  CHECK(why(R"({"line":"request","request":1,"need":"a\u0007b"})").find("control")
    != std::string::npos);
  CHECK(why(R"({"line":"started","gpu":0,"token":1,"lease":"x","session":4294967297})") != "");
  CHECK(why(R"({"line":"quota","user":"a","weight":0})").find("weight") != std::string::npos);
  CHECK(why(R"({"line":"hello","line":"hello","protocol":1})") != "");
  CHECK(why(std::string(20000, '[')) != "");
  CHECK(why("{\"line\":\"drain\",\"reason\":\"" + std::string(20000, 'x') + "\"}") != "");
}

TEST_CASE("a line without its optional fields means the defaults") {
  auto read = parse_client_line(R"({"line":"request","request":1})");
  REQUIRE(read.has_value());
  CHECK(read->what == lease_class::timing);
  CHECK(read->patience == 0s);
  CHECK_FALSE(read->guarded);
}

TEST_CASE("users and projects are plain names") {
  CHECK(parse_user_project("alice")->agent == "-");
  CHECK(parse_user_project("alice/x.y")->agent == "x.y");
  for (const char* bad : {"", "/", "alice/", "/x", "a b", "a/b/c", "a\n", "\xff"})
    CHECK_FALSE(parse_user_project(bad).has_value());
  CHECK_FALSE(parse_user_project(std::string(65, 'a')).has_value());
  CHECK(parse_user_project(std::string(64, 'a')).has_value());
}

TEST_CASE("lines are cut wherever the bytes come apart") {
  line_buffer buffer(8);
  buffer.append("ab");
  CHECK_FALSE(buffer.next());
  buffer.append("c\n\nde");
  CHECK(buffer.next() == "abc");
  CHECK(buffer.next() == "");
  CHECK_FALSE(buffer.next());
  CHECK_FALSE(buffer.overflowed());
  buffer.append("fghijklm");
  CHECK_FALSE(buffer.next());
  CHECK(buffer.overflowed());
}
