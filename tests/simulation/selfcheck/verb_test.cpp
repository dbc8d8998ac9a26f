#include "tests/cli/program.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace gristmill::test;

namespace {

void refused(std::vector<std::string> arguments, const std::string& part) {
  arguments.insert(arguments.begin(), "selfcheck");
  program called(arguments);
  CHECK(called.wait() == 2);
  CAPTURE(called.err());
  CHECK(called.err().find(part) != std::string::npos);
  CHECK(called.out().empty());
}

} // namespace

TEST_CASE("selfcheck prints the same table for every number of threads, and ends with 0") {
  const std::vector<std::string> few = {
    "selfcheck", "--quick", "--only", "halving", "--only", "one-gpu"};
  auto one = few;
  one.insert(one.end(), {"--jobs", "1"});
  auto two = few;
  two.insert(two.end(), {"--jobs", "2"});
  program first(one);
  program second(two);
  CHECK(first.wait() == 0);
  CHECK(second.wait() == 0);
  CHECK(first.out() == second.out());
  CHECK(first.out().find("config ") != std::string::npos);
  CHECK(first.out().find("digest ") != std::string::npos);
  CHECK(first.out().find("all 2 checks pass") != std::string::npos);
}

TEST_CASE("a mutant ends with 4, and the last line says which checks found it") {
  program called({"selfcheck", "--quick", "--only", "work-conserving", "--only", "halving",
    "--mutant", "lost-wakeup"});
  CHECK(called.wait() == 4);
  CHECK(called.out().find("1 of 2 checks FAIL: work-conserving\n") != std::string::npos);
}

TEST_CASE("as JSON it has every number") {
  program called({"selfcheck", "--quick", "--only", "halving", "--json"});
  REQUIRE(called.wait() == 0);
  const auto out = nlohmann::json::parse(called.out());
  CHECK(out["schema"] == "gristmill.selfcheck/1");
  CHECK(out["passed"] == true);
  CHECK(out["checks"][0]["lines"][0]["exact"] == 896);
}

TEST_CASE("what selfcheck cannot do is refused with what would be right") {
  refused({"--only", "having"}, "halving");
  refused({"--quick", "--only", "closed-queue"}, "there is no quick check");
  refused({"--mutant", "fifo"}, "lifo");
  refused({"--seeds", "0"}, "--seeds 0");
  refused({"--seeds", "1"}, "2..1000");
  refused({"--seeds", "2x"}, "--seeds 2x");
  refused({"--jobs", "-1"}, "--jobs");
  refused({"--quik"}, "--quick");
}
