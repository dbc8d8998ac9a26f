#include "tests/llm/cassette/cassette_fixture.hpp"

#include <cstdlib>

using namespace gristmill;

namespace {

struct planted : cassette_fixture {
  const std::string key = "correct-horse/battery\"staple";
  const std::string other = "a-second-secret-of-ours";
  const std::string sk = "sk-abcdefghijklmnopqrstuvwxyz0123";
  const std::string google = "AIzaSyA0123456789abcdefghijklmnopqrstu";
  const std::string token = "token.token-token_1234567890";

  planted() {
    ::setenv("GRISTMILL_TEST_SECRET", key.c_str(), 1);
    ::setenv("GRISTMILL_TEST_OTHER", other.c_str(), 1);
  }
  ~planted() {
    ::unsetenv("GRISTMILL_TEST_SECRET");
    ::unsetenv("GRISTMILL_TEST_OTHER");
  }

  /// Also as JSON writes it inside JSON.
  void check_nothing_in(const std::string& text) const {
    for (const auto& secret : {key, other, sk, google, token, std::string("correct-horse"),
           std::string("battery"), std::string("hunter2")}) {
      CAPTURE(secret);
      CHECK(text.find(secret) == std::string::npos);
    }
  }

  http_call leaking_call(uint64_t id) const {
    http_call out;
    out.id = id;
    out.url = "https://me:hunter2@api.example.com/v1/chat?key=" + google + "&alt=sse&x=" + sk;
    out.headers = {{"Authorization", "Bearer " + token}, {"x-api-key", key}};
    out.key_header = "x-api-key";
    out.key_environment = "GRISTMILL_TEST_SECRET";
    out.body =
      R"({"model":"m","messages":[{"content":"my key is correct-horse/battery\"staple and )" + sk
      + R"("}],")" + other + R"(":"Bearer )" + token + R"(","n":1})";
    return out;
  }
};

} // namespace

TEST_CASE_FIXTURE(planted, "secrets in URLs, headers and bodies appear nowhere in the file") {
  auto options = recording();
  options.secret_environment = {"GRISTMILL_TEST_OTHER"};
  {
    auto port = make_recording_port(options, factory, reports.sink());
    REQUIRE(port);
    (*port)->start(leaking_call(1));
    // The transport gets the call as it is.
    CHECK(hand->started.front().url.find(google) != std::string::npos);
    hand->head(1, 200,
      {{"x-request-id", sk}, {"set-cookie", "session=" + key}, {"x-ratelimit-reset", other}});
    hand->event(1, R"({"text":"you said correct-horse\/battery\"staple"})", sk);
    hand->event(1, "plain " + key + " and Bearer " + token + " and " + google);
    hand->end(1, http_end::cut_off, "<html>" + key + other + "</html>", "broke at " + sk);
    (*port)->start(call(2, "no JSON, but " + key + " and " + other));
    hand->head(2, 401);
    hand->end(2, http_end::complete, R"({"error":"wrong key )" + sk + R"("})");
  }
  const auto text = content();
  CHECK(lines() == 2);
  check_nothing_in(text);
  CHECK(text.find("set-cookie") == std::string::npos);
  CHECK(text.find("[redacted]") != std::string::npos);
  CHECK(text.find("alt=sse") != std::string::npos);
  CHECK(text.find(R"("redacted":{"known":)") != std::string::npos);
  // What the reader gets is what the server said.
  CHECK(reports.ended(1).events.back().data.find(key) != std::string::npos);
}

TEST_CASE_FIXTURE(planted, "a call whose secrets were blacked out is found again") {
  {
    auto options = recording();
    options.secret_environment = {"GRISTMILL_TEST_OTHER"};
    auto port = make_recording_port(options, factory, reports.sink());
    REQUIRE(port);
    (*port)->start(leaking_call(1));
    hand->answer(1, "answer");
  }
  collector again;
  replay_options options;
  options.secret_environment = {"GRISTMILL_TEST_OTHER"};
  auto port = player(again, options);
  port->start(leaking_call(1));
  CHECK(again.ended(1).data() == "answer");
}

TEST_CASE_FIXTURE(
  planted, "a replay needs no key, and another key in a URL makes no other request") {
  {
    auto port = recorder();
    auto sent = prompt(1, "hello");
    sent.url += "?key=" + google;
    sent.key_environment = "GRISTMILL_TEST_SECRET";
    port->start(sent);
    hand->answer(1, "answer");
  }
  ::unsetenv("GRISTMILL_TEST_SECRET");
  collector again;
  auto port = player(again);
  auto asked = prompt(1, "hello");
  asked.url += "?key=nothing";
  asked.key_environment = "GRISTMILL_TEST_SECRET";
  port->start(asked);
  CHECK(again.ended(1).data() == "answer");
}

TEST_CASE_FIXTURE(planted, "what a miss shows holds no secret either") {
  {
    auto port = recorder();
    port->start(leaking_call(1));
    hand->answer(1, "answer");
  }
  collector again;
  auto port = player(again);
  auto asked = leaking_call(1);
  asked.body += " ";
  asked.body.replace(asked.body.find("my key"), 6, "our key");
  port->start(asked);
  const auto got = again.ended(1);
  REQUIRE(got.how == http_end::not_sent);
  CHECK(got.why.find("our key") != std::string::npos);
  for (const auto& secret : {key, sk, google, token, std::string("battery")})
    CHECK(got.why.find(secret) == std::string::npos);
}
