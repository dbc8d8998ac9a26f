#include "gpu/planner/external_allocation.hpp"

#include "planning/allocation/allocation_text.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <unistd.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

/// Fast machines answer in microseconds; the tests must also pass on one that is busy.
std::unique_ptr<allocation> external(
  const std::string& command, uint32_t problems, std::chrono::nanoseconds timeout = 30s) {
  auto out = make_external_allocation({command, timeout, 3}, problems, true);
  for (problem_index p = 0; p < problems; ++p)
    out->on_eligible(p, true);
  return out;
}

std::string source_folder() {
  const char* folder = std::getenv("GRISTMILL_SOURCE");
  return folder == nullptr ? "." : folder;
}

/// A rule in the shell that greets and then answers each question with what the text makes of it;
/// `$id` is the number of the question. What it is told goes to `heard`.
std::string shell_rule(const std::string& on_pick, const std::string& heard = "/dev/null") {
  return "while read -r line; do echo \"$line\" >> " + heard
    + "; case \"$line\" in *hello*) echo '{\"id\":0}';; "
      "*'\"pick\"'*) id=${line#*\\\"id\\\":}; id=${id%%\\}*}; "
    + on_pick + ";; esac; done";
}

std::string why(const allocation& who) {
  return to_string(who.pick(0ns)->why);
}

} // namespace

TEST_CASE("the Python example decides: the fewest given first") {
  auto who =
    external("python3 '" + source_folder() + "/examples/planner_policy/fewest_given.py'", 3, 60s);
  for (problem_index expected : {0u, 1u, 2u, 0u, 1u}) {
    auto picked = who->pick(0ns);
    REQUIRE(picked);
    CHECK(picked->problem == expected);
    CHECK(picked->why.rule == allocation_rule::own);
    CHECK(who->pick(0ns)->problem == expected); // Asked again: the same answer.
    who->on_given(expected);
    who->on_finished(expected, {5, 0.25});
  }
  who->on_eligible(2, false);
  CHECK(who->pick(0ns)->problem == 0);
  for (problem_index p : {0u, 1u})
    who->on_eligible(p, false);
  CHECK_FALSE(who->pick(0ns));
}

TEST_CASE("a process is told what it has missed, and then every event") {
  const std::string heard =
    std::filesystem::temp_directory_path() / fmt::format("gristmill-heard-{}.txt", ::getpid());
  {
    auto who = external(shell_rule("echo \"{\\\"id\\\":$id,\\\"problem\\\":1}\"", heard), 2);
    who->on_given(1);
    who->on_finished(1, {7, 0.5});
    who->on_headroom(0, 0.25);
    CHECK(who->pick(0ns)->problem == 1);
    CHECK(why(*who) == "external: score 0; 0 in flight, 1 attempts given");
    who->on_eligible(0, false);
    who->on_given(1);
    who->on_finished(1, {8, -1});
    who->on_headroom(1, 2);
    CHECK(who->pick(0ns)->problem == 1);
  }
  std::ostringstream text;
  text << std::ifstream(heard).rdbuf();
  ::unlink(heard.c_str());
  CHECK(text.str() == R"({"event":"hello","version":1,"id":0,"problems":2,"by_attempts":true}
{"event":"problem","problem":0,"eligible":true,"given":0,"in_flight":0,"gpu_ns":0,"log_gain":0,"log_headroom":0.25}
{"event":"problem","problem":1,"eligible":true,"given":1,"in_flight":0,"gpu_ns":7,"log_gain":0.5,"log_headroom":null}
{"event":"pick","id":1}
{"event":"eligible","problem":0,"eligible":false}
{"event":"given","problem":1}
{"event":"finished","problem":1,"gpu_ns":8,"log_gain":0}
{"event":"headroom","problem":1,"log_headroom":2}
{"event":"pick","id":2}
)");
}

TEST_CASE("nobody, a stranger and one who cannot use an attempt leave it to equal share") {
  for (const char* answer : {"null", "7", "1", "18446744073709551615"}) {
    CAPTURE(std::string{answer});
    auto who = external(
      shell_rule(std::string{"echo \"{\\\"id\\\":$id,\\\"problem\\\":"} + answer + "}\""), 2);
    who->on_eligible(1, false);
    CHECK(who->pick(0ns)->problem == 0);
    CHECK(why(*who).starts_with("external named nobody who can use an attempt, equal share"));
  }
}

TEST_CASE("a late answer is not waited for, and the next one counts again") {
  // The first question is never answered.
  auto who =
    external(shell_rule("[ $id -gt 1 ] && echo \"{\\\"id\\\":$id,\\\"problem\\\":1}\""), 2, 200ms);
  // Greeting included: wait until it is there.
  int asked = 0;
  bool was_late = false;
  while (who->pick(0ns)->why.rule != allocation_rule::own) {
    CHECK(who->pick(0ns)->problem == (asked % 2 == 0 ? 0 : 1));
    was_late = was_late || why(*who).find("no answer in time") != std::string::npos
      || why(*who).find("not ready") != std::string::npos;
    REQUIRE(++asked < 100);
    who->on_given(who->pick(0ns)->problem);
  }
  CHECK(was_late);
  CHECK(who->pick(0ns)->problem == 1);
}

TEST_CASE("a process that ends or talks nonsense is started again three times, then no more") {
  for (const char* command : {"exit 0", "read -r line; echo nonsense; sleep 60",
         "read -r line; echo '{\"id\":0}'; echo '{\"id\":99}'; sleep 60",
         "read -r line; echo '{\"id\":0,\"ticket\":1}'; sleep 60"}) {
    CAPTURE(std::string{command});
    auto who = external(command, 2);
    for (int i = 0; i < 10; ++i) {
      auto picked = who->pick(0ns);
      REQUIRE(picked);
      CHECK(picked->problem == static_cast<problem_index>(i % 2));
      CHECK(picked->why.rule == allocation_rule::own_failed);
      CHECK(picked->why.label.starts_with("external (the process"));
      who->on_given(picked->problem);
    }
  }
}

TEST_CASE("external is read from a text once it is installed, and its errors say what to write") {
  auto what = [](const std::string& text) { return allocation_from_text(text).error().what; };
  CHECK(what("external(cmd=\"x\")").find("starts no processes") != std::string::npos);
  CHECK(what("externl").find("'external'") == std::string::npos);
  install_external_planner();
  CHECK(what("externl").find("did you mean 'external'?") != std::string::npos);
  CHECK(what("external").find("it needs a command") != std::string::npos);
  CHECK(what("external()").find("it needs a command") != std::string::npos);
  CHECK(what("external(cmd=\"x").find("expected '\"'") != std::string::npos);
  CHECK(what("external(cmnd=x)").find("did you mean 'cmd'?") != std::string::npos);
  CHECK(what("external(cmd=x, cmd=y)").find("given twice") != std::string::npos);
  for (const char* timeout : {"0ms", "2s", "x", "50"})
    CHECK(what(fmt::format("external(cmd=x, timeout={})", timeout)).find("from 1ms to 1s")
      != std::string::npos);
  CHECK(register_allocation(
          "external", [](uint32_t, bool) { return nullptr; }, "")
          .error()
          .code
    == errc::refused);
  bool is_listed = false;
  for (const auto& rule : allocation_catalogue())
    is_listed = is_listed || rule.name == "external";
  CHECK(is_listed);
  auto made = allocation_from_text("floor(0.5, external(cmd=\"exit \\\"1\\\"\", timeout=1s))");
  REQUIRE(made);
  auto who = (*made)(2, true);
  who->on_eligible(1, true);
  CHECK(who->pick(0ns)->problem == 1);
}
