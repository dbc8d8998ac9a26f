#include "llm/transport/redactor.hpp"

#include "llm/transport/curl_call.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <string>
#include <sys/resource.h>

using namespace gristmill;

TEST_CASE("a known value is blacked out wherever it stands, however often") {
  redactor secrets;
  secrets.know("hunter2-hunter2");
  redaction_count count;
  CHECK(secrets.redact("a hunter2-hunter2, hunter2-hunter2hunter2-hunter2", &count)
    == "a [redacted], [redacted][redacted]");
  CHECK(count == redaction_count{3, 0});
}

TEST_CASE("a known value is found as JSON and URLs write it") {
  redactor secrets;
  secrets.know("p\"ass\\wo/rd+1");
  CHECK(secrets.redact(R"({"k":"p\"ass\\wo/rd+1"})") == R"({"k":"[redacted]"})");
  CHECK(secrets.redact(R"({"k":"p\"ass\\wo\/rd+1"})") == R"({"k":"[redacted]"})");
  CHECK(secrets.redact("?k=p%22ass%5Cwo%2Frd%2B1&x") == "?k=[redacted]&x");
}

TEST_CASE("a value too short to be a secret is not looked for") {
  redactor secrets;
  secrets.know("EMPTY");
  CHECK(secrets.redact("EMPTY") == "EMPTY");
}

TEST_CASE("keys are known by their form") {
  const redactor secrets;
  const std::string rest = "abcdefghijklmnopqrstuvwx";
  for (const std::string start :
    {"sk-", "sk-ant-api03-", "sk-proj-", "AIza", "hf_", "gsk_", "xai-", "ghp_", "AKIA"}) {
    CAPTURE(start);
    CHECK(secrets.redact("key " + start + rest + ".") == "key [redacted].");
    CHECK(secrets.redact("{\"a\":\"\\n" + start + rest + "\"}") == "{\"a\":\"\\n[redacted]\"}");
    CHECK(secrets.redact("x%20" + start + rest) == "x%20[redacted]");
    CHECK(secrets.redact("\\u000a" + start + rest) == "\\u000a[redacted]");
  }
}

TEST_CASE("words that look a little like keys stay") {
  const redactor secrets;
  for (const std::string text : {"a task-with-a-rather-long-name", "mask-and-reduce-the-rows-first",
         "sk-short", "the bearer of it", "AIza is short"}) {
    CAPTURE(text);
    CHECK(secrets.redact(text) == text);
  }
}

TEST_CASE("what stands after Bearer is blacked out, in any case") {
  const redactor secrets;
  CHECK(
    secrets.redact("authorization: Bearer abc.def-123~+/=") == "authorization: Bearer [redacted]");
  CHECK(secrets.redact("\"bearer  tokentoken\"") == "\"bearer  [redacted]\"");
  CHECK(secrets.redact("a=Bearer%20tokentoken&b") == "a=Bearer%20[redacted]&b");
}

TEST_CASE("overlapping finds are one black bar") {
  redactor secrets;
  secrets.know("sk-abcdefghijklmnop");
  CHECK(secrets.redact("Bearer sk-abcdefghijklmnopqrst!") == "Bearer [redacted]!");
}

TEST_CASE("a URL loses its user and the values of telling parameters") {
  const redactor secrets;
  CHECK(secrets.redact_url("https://me:pw@host/p?alt=sse&key=abc&API_KEY=def#f")
    == "https://[redacted]@host/p?alt=sse&key=[redacted]&API_KEY=[redacted]#f");
  CHECK(secrets.redact_url("https://host/p?monkey=banana") == "https://host/p?monkey=banana");
  CHECK(secrets.redact_url("https://host/a@b?key=") == "https://host/a@b?key=");
}

TEST_CASE("a key is read by the name of its variable, which every refusal names") {
  ::unsetenv("GRISTMILL_TEST_KEY");
  const auto unset = read_key("GRISTMILL_TEST_KEY");
  REQUIRE_FALSE(unset);
  CHECK(unset.error().what.find("GRISTMILL_TEST_KEY") != std::string::npos);
  CHECK(unset.error().what.find("not set") != std::string::npos);
  ::setenv("GRISTMILL_TEST_KEY", "", 1);
  CHECK(read_key("GRISTMILL_TEST_KEY").error().what.find("empty") != std::string::npos);
  ::setenv("GRISTMILL_TEST_KEY", "hunter2hunter2\n", 1);
  const auto with_line_end = read_key("GRISTMILL_TEST_KEY");
  REQUIRE_FALSE(with_line_end);
  CHECK(with_line_end.error().what.find("GRISTMILL_TEST_KEY") != std::string::npos);
  CHECK(with_line_end.error().what.find("hunter2") == std::string::npos);
  ::setenv("GRISTMILL_TEST_KEY", "hunter2hunter2", 1);
  CHECK(read_key("GRISTMILL_TEST_KEY")->view() == "hunter2hunter2");
  ::unsetenv("GRISTMILL_TEST_KEY");
}

TEST_CASE("a secret that has been moved leaves nothing where it was") {
  secret_text first("short");
  const secret_text second(std::move(first));
  CHECK(second.view() == "short");
  CHECK(first.empty()); // NOLINT(bugprone-use-after-move): this is the promise.
}

TEST_CASE("the lines of a request are overwritten where they stand") {
  request_lines lines;
  const std::string line = "Authorization: Bearer hunter2";
  lines.add(line);
  const std::string_view there(lines.list()->data, line.size());
  CHECK(there == line);
  lines.overwrite();
  CHECK(there.find_first_not_of('\0') == std::string_view::npos);
}

TEST_CASE("a program that uses keys leaves no core file") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_CORE, &before) == 0);
  CHECK(forbid_core_files());
  rlimit after{};
  REQUIRE(::getrlimit(RLIMIT_CORE, &after) == 0);
  CHECK(after.rlim_cur == 0);
  CHECK(after.rlim_max == 0);
}
