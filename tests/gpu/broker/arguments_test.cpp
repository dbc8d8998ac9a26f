// What a person writes behind `gristmill lease`.

#include "gpu/broker/lease_arguments.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

result<lease_arguments> read(std::vector<std::string> words) {
  return parse_lease_arguments(words);
}

std::string why(std::vector<std::string> words) {
  auto out = parse_lease_arguments(words);
  REQUIRE_FALSE(out.has_value());
  CHECK(out.error().code == errc::invalid_input);
  return out.error().what;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("flags are read in both forms and the command is left alone") {
  auto out = read({"--class=profile", "--as", "alice/x", "--cap", "60s", "--wait=10m", "--need",
    "memory>=80GiB", "--estimate", "5s", "--grace", "1s", "--socket", "/tmp/s", "--quiet", "--",
    "python3", "--json", "--", "x"});
  REQUIRE(out.has_value());
  CHECK(out->what == lease_class::profile);
  CHECK(out->as == "alice/x");
  CHECK(out->cap == 60s);
  CHECK(out->wait == 10min);
  CHECK(out->need == "memory>=80GiB");
  CHECK(out->estimate == 5s);
  CHECK(out->grace == 1s);
  CHECK(out->socket == "/tmp/s");
  CHECK(out->quiet);
  CHECK_FALSE(out->json);
  CHECK(out->command == std::vector<std::string>{"python3", "--json", "--", "x"});
}

TEST_CASE("a wait of nothing takes only what is free") {
  CHECK(read({"--wait", "0s", "--", "x"})->wait == 1ns);
}

TEST_CASE("what does not hold is refused with the nearest flag") {
  CHECK(has(why({}), "no command"));
  CHECK(has(why({"--"}), "no command"));
  CHECK(has(why({"python3"}), "behind --"));
  CHECK(has(why({"--clas", "timing", "--", "x"}), "--class"));
  CHECK(has(why({"--class", "timming", "--", "x"}), "timing"));
  CHECK(has(why({"--class", "--", "x"}), "needs a value"));
  CHECK(has(why({"--cap", "0s", "--", "x"}), "--cap"));
  CHECK(has(why({"--cap", "60", "--", "x"}), "60s"));
  CHECK(has(why({"--grace", "11s", "--", "x"}), "10s"));
  CHECK(has(why({"--as", "a b", "--", "x"}), "USER/PROJECT"));
  CHECK(has(why({"--quiet=yes", "--", "x"}), "--quiet"));
  CHECK(has(why({"--socket=", "--", "x"}), "--socket"));
}

TEST_CASE("help needs no command and names every flag") {
  CHECK(read({"--help"})->help);
  for (const char* flag : {"--class", "--as", "--cap", "--wait", "--need", "--estimate", "--grace",
         "--socket", "--quiet", "--json"})
    CHECK(has(lease_help(), flag));
}
