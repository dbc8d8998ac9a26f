#include "protocol/endpoint.hpp"
#include "protocol/model_file.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace gristmill;

namespace {

const std::vector<std::string> dialects{"openai-chat", "openai-responses", "anthropic-messages"};

result<model_file> read(const std::string& text) {
  return parse_model_file(text, "models.toml", dialects);
}

/// The message of a refusal; fails the test when there is none.
std::string refusal(const std::string& text) {
  auto read_text = read(text);
  REQUIRE_FALSE(read_text);
  CHECK(read_text.error().code == errc::invalid_input);
  return read_text.error().what;
}

const std::string local = R"([[deployment]]
name = "local"
dialect = "openai-chat"
endpoint = "http://127.0.0.1:8080/v1/"
model = "toy"
)";

const std::string price = R"(
[[price]]
model = "toy"
as_of = 2026-11-30
input = 1.25
cached_read = 0.125
cache_write = 1.5625
output = 10
)";

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_SUITE_BEGIN("model file");

TEST_CASE("a deployment needs four fields, and all others have the values of the documentation") {
  auto models = read(local);
  REQUIRE(models);
  REQUIRE(models->deployments.size() == 1);
  const auto& d = models->deployments[0];
  CHECK(d.endpoint == "http://127.0.0.1:8080/v1");
  CHECK(d.loopback);
  CHECK(d.instructions_role == "system");
  CHECK(d.in_flight_max == 8);
  CHECK(d.output_tokens_max == 32768);
  CHECK_FALSE(d.requests_per_minute);
  CHECK(d.deadlines == model_deadlines{});
  CHECK(models->role("propose") == std::vector<size_t>{0});
  CHECK(models->role("reflect") == std::vector<size_t>{0});
}

TEST_CASE("every field is read") {
  auto models = read(R"(
[[deployment]]
name = "a"
dialect = "anthropic-messages"
endpoint = "https://api.example.org"
model = "big"
key_env = "MY_KEY"
instructions_role = "developer"
output_cap_field = "max_tokens"
reasoning_effort = "high"
extra_body = '{"top_k": 5}'
send_cache_key = true
deadlines = { connect = "5s", first_event = "0s", idle = "90s", wall = "10m" }
requests_per_minute = 50
input_tokens_per_minute = 40000
output_tokens_per_minute = 8000
in_flight_max = 4
context_tokens = 200000
output_tokens_max = 64000
ca_file = "ours.pem"

[[deployment]]
name = "b"
dialect = "openai-chat"
endpoint = "http://gpu-box:8000/v1"
allow_plain_http = true
model = "small"

[[price]]
model = "big"
as_of = 2026-11-30
input = 3
cached_read = 0.3
cache_write = 3.75
output = 15.000001

[role.propose]
deployments = ["a", "b"]
[role.reflect]
deployments = ["b"]
)");
  REQUIRE_MESSAGE(models, models.error().what);
  const auto& a = models->deployments[0];
  CHECK(a.key_env == "MY_KEY");
  CHECK(a.instructions_role == "developer");
  CHECK(a.output_cap_field == "max_tokens");
  CHECK(a.reasoning_effort == "high");
  CHECK(a.extra_body == R"({"top_k": 5})");
  CHECK(a.send_cache_key);
  CHECK(a.deadlines.connect == std::chrono::seconds{5});
  CHECK(a.deadlines.first_event == std::chrono::seconds{0});
  CHECK(a.deadlines.idle == std::chrono::seconds{90});
  CHECK(a.deadlines.wall == std::chrono::minutes{10});
  CHECK(a.requests_per_minute == 50);
  CHECK(a.input_tokens_per_minute == 40'000);
  CHECK(a.output_tokens_per_minute == 8'000);
  CHECK(a.in_flight_max == 4);
  CHECK(a.context_tokens == 200'000);
  CHECK(a.output_tokens_max == 64'000);
  CHECK(a.ca_file == "ours.pem");
  CHECK_FALSE(a.loopback);
  CHECK(models->deployments[1].allow_plain_http);
  const auto* p = models->price_of("big");
  REQUIRE(p != nullptr);
  CHECK(p->input == 3'000'000);
  CHECK(p->cached_read == 300'000);
  CHECK(p->cache_write == 3'750'000);
  CHECK(p->output == 15'000'001);
  CHECK(p->as_of == std::chrono::year{2026} / 11 / 30);
  CHECK(models->price_of("small") == nullptr);
  CHECK(models->role("propose") == std::vector<size_t>{0, 1});
  CHECK(models->role("reflect") == std::vector<size_t>{1});
  CHECK(models->role("repair") == std::vector<size_t>{0, 1});
  CHECK(key_variables(*models) == std::vector<std::string>{"MY_KEY"});
}

TEST_CASE("an unknown key is refused with file, line, field and the nearest known one") {
  auto what = refusal(local + "modle = \"x\"\n");
  CHECK(what == "models.toml:6: deployment.modle: unknown key; did you mean `model`?");
  CHECK(
    holds(refusal(local + price + "outptu = 1\n"), "models.toml:14: price.outptu: unknown key"));
  CHECK(holds(refusal(local + "[[prise]]\n"), "did you mean `price`?"));
  CHECK(holds(refusal(local + "deadlines = { conect = \"1s\" }\n"),
    "deadlines.conect: unknown key; did you mean `connect`?"));
  CHECK(holds(refusal(local + "[role.propose]\ndeployments = [\"local\"]\nfoo = 1\n"),
    "role.propose.foo: unknown key"));
}

TEST_CASE("a missing field is named with the line of its table") {
  CHECK(
    refusal("\n[[deployment]]\nname = \"x\"\n") == "models.toml:2: deployment.dialect: is missing");
  CHECK(holds(refusal("[[deployment]]\nname = \"x\"\ndialect = \"openai-chat\"\nmodel = \"m\"\n"),
    "deployment.endpoint: is missing"));
  CHECK(holds(refusal(""), "there is no [[deployment]]"));
}

TEST_CASE("unknown names of dialects, roles and deployments are refused with the nearest") {
  CHECK(holds(refusal(R"([[deployment]]
name = "x"
dialect = "openai-chta"
endpoint = "https://h"
model = "m"
)"),
    "models.toml:3: deployment.dialect: 'openai-chta' is unknown; did you mean `openai-chat`?"));
  CHECK(holds(refusal(local + "[role.propse]\ndeployments = [\"local\"]\n"),
    "role.propse: unknown role; did you mean `propose`?"));
  CHECK(holds(refusal(local + "[role.propose]\ndeployments = [\"locl\"]\n"),
    "role.propose.deployments: there is no deployment 'locl'; did you mean `local`?"));
  CHECK(holds(refusal(local + "[role.propose]\ndeployments = []\n"), "at least one"));
  CHECK(holds(
    refusal(local + "[role.propose]\ndeployments = [\"local\", \"local\"]\n"), "is there twice"));
  CHECK(holds(
    refusal(local + "[role.reflect]\ndeployments = [\"local\"]\n"), "role.propose: is missing"));
  CHECK(holds(refusal(local + local), "deployment.name: 'local' is there twice"));
}

TEST_CASE("a price without its date is refused, and so is one that nobody can mean") {
  auto with = [](const std::string& from, const std::string& to) {
    auto text = local + price;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  REQUIRE(read(local + price));
  CHECK(
    holds(refusal(with("as_of = 2026-11-30\n", "")), "a price without its date is worth nothing"));
  CHECK(holds(refusal(with("2026-11-30", "\"2026-11-30\"")), "must be a date without quotes"));
  CHECK(holds(refusal(with("2026-11-30", "1999-01-01")), "from 2020 on"));
  CHECK_FALSE(read(with("2026-11-30", "2026-13-30")));
  CHECK_FALSE(read(with("2026-11-30", "2026-02-30")));
  // headroom#2757: a negative price made a budget see nothing.
  CHECK(
    holds(refusal(with("input = 1.25", "input = -1.25")), "price.input: must be USD per million"));
  CHECK(holds(refusal(with("input = 1.25", "input = nan")), "price.input"));
  CHECK(holds(refusal(with("input = 1.25", "input = inf")), "price.input"));
  CHECK(holds(refusal(with("input = 1.25", "input = 1000001")), "from 0 to 1000000"));
  CHECK(holds(refusal(with("input = 1.25", "input = 0.0000001")), "more than six digits"));
  CHECK(holds(refusal(with("input = 1.25", "input = \"1.25\"")), "price.input"));
  CHECK(holds(refusal(with("output = 10\n", "")), "price.output: is missing"));
  CHECK(holds(refusal(local + price + price), "'toy' has two prices"));
}

TEST_CASE("http to another machine is refused unless it is allowed") {
  auto with = [](const std::string& url, const std::string& more) {
    return "[[deployment]]\nname = \"x\"\ndialect = \"openai-chat\"\nmodel = \"m\"\nendpoint = \""
      + url + "\"\n" + more;
  };
  CHECK(holds(refusal(with("http://10.0.0.5/v1", "")), "allow_plain_http = true"));
  // A name that only looks like this machine.
  CHECK(holds(refusal(with("http://127.0.0.1.example.org/v1", "")), "allow_plain_http"));
  CHECK(holds(refusal(with("http://localhost.example.org", "")), "allow_plain_http"));
  CHECK(read(with("http://10.0.0.5/v1", "allow_plain_http = true\n")));
  for (const char* here :
    {"http://127.0.0.1", "http://127.8.9.10:1/v1", "http://[::1]:80/v1", "http://LOCALHOST:8080"}) {
    CAPTURE(here);
    auto models = read(with(here, ""));
    REQUIRE(models);
    CHECK(models->deployments[0].loopback);
  }
}

TEST_CASE("a bad URL is refused, and a password in it is never repeated") {
  for (const char* wrong : {"", "ftp://h", "h", "http://", "https:///v1", "https://h:0",
         "https://h:70000", "https://h:x", "https://h/v1?key=1", "https://h/#a", "https://a b",
         "https://h\\x", "https://[::1", "https://[zz]", "https://[::1]x", "https://h_ä"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_endpoint(wrong));
  }
  auto secret =
    model_file_from_flags("https://user:hunter2@host/v1", "m", "openai-chat", "", dialects);
  REQUIRE_FALSE(secret);
  CHECK_FALSE(holds(secret.error().what, "hunter2"));
  CHECK(holds(secret.error().what, "environment variable"));
}

TEST_CASE("a key is named, never written") {
  auto what = refusal(local + "key_env = \"sk-abc123\"\n");
  CHECK(holds(what, "NAME of an environment variable"));
  CHECK_FALSE(holds(what, "abc123"));
}

TEST_CASE("limits of nothing, times without a unit and bodies that are no object are refused") {
  CHECK(holds(refusal(local + "requests_per_minute = 0\n"), "from 1 to"));
  CHECK(holds(refusal(local + "in_flight_max = -1\n"), "deployment.in_flight_max"));
  CHECK(holds(refusal(local + "context_tokens = 1.5\n"), "deployment.context_tokens"));
  CHECK(holds(refusal(local + "output_tokens_max = \"many\"\n"), "deployment.output_tokens_max"));
  CHECK(holds(refusal(local + "deadlines = { wall = 30 }\n"), "deadlines.wall"));
  CHECK(holds(refusal(local + "deadlines = \"30s\"\n"), "must be a table"));
  CHECK(holds(refusal(local + "extra_body = '[1]'\n"), "must be a JSON object"));
  CHECK(holds(refusal(local + "extra_body = '{'\n"), "must be a JSON object"));
  CHECK(holds(refusal(local + "send_cache_key = 1\n"), "true or false"));
  CHECK(holds(refusal(local + "instructions_role = \"user\"\n"), "developer"));
  CHECK(holds(refusal(local + "output_cap_field = \"cap\"\n"), "max_completion_tokens"));
  CHECK(holds(refusal("deployment = 3\n"), "[[deployment]]"));
  CHECK(holds(refusal("[[deployment]\n"), "models.toml:1: "));
  CHECK(holds(refusal("x = \"" + std::string(2 << 20, 'x') + "\""), "bytes"));
}

TEST_CASE("two files of certificates in one run are refused: one transport carries all calls") {
  auto second = local;
  second.replace(second.find("local"), 5, "other");
  CHECK(read(local + "ca_file = \"a.pem\"\n" + second + "ca_file = \"a.pem\"\n"));
  CHECK(holds(refusal(local + "ca_file = \"a.pem\"\n" + second + "ca_file = \"b.pem\"\n"),
    "models.toml:12: deployment.ca_file: a run has one file of certificates"));
}

TEST_CASE("the short form of flags is one deployment for all roles") {
  auto models = model_file_from_flags("http://127.0.0.1:8080/v1", "toy", "", "", dialects);
  REQUIRE(models);
  CHECK(models->deployments[0].dialect == "openai-chat");
  CHECK(models->role("reflect") == std::vector<size_t>{0});
  models = model_file_from_flags("https://api.anthropic.com", "m", "", "A_KEY", dialects);
  REQUIRE(models);
  CHECK(models->deployments[0].dialect == "anthropic-messages");
  CHECK(key_variables(*models) == std::vector<std::string>{"A_KEY"});
  CHECK(holds(model_file_from_flags("", "m", "", "", dialects).error().what, "--model-endpoint"));
  CHECK(holds(model_file_from_flags("https://h", "", "", "", dialects).error().what, "--model:"));
  CHECK(holds(model_file_from_flags("https://h", "m", "opnai-chat", "", dialects).error().what,
    "did you mean `openai-chat`?"));
  CHECK(holds(
    model_file_from_flags("https://h", "m", "", "sk-1", dialects).error().what, "--model-key-env"));
  CHECK(holds(
    model_file_from_flags("http://elsewhere", "m", "", "", dialects).error().what, "for --models"));
}

TEST_CASE("a model file that is not there is not found") {
  CHECK(load_model_file("/nowhere/models.toml", dialects).error().code == errc::not_found);
}

TEST_SUITE_END();
