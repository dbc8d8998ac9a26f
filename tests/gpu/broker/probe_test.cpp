// How a GPU is looked at after a lease.

#include "gpu/broker/short_child.hpp"
#include "gpu/probe.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

std::vector<probe_answer> answers(const std::string& apps, const std::string& memory) {
  return {{0, apps}, {0, memory}};
}

} // namespace

TEST_CASE("a device that is none needs no look") {
  auto probe = make_trivial_probe();
  CHECK(probe->commands("x", probe_occasion::suspicion).empty());
  CHECK(probe->judge("x", {}).outcome == probe_outcome::passed);
}

TEST_CASE("a GPU passes when nobody computes and memory is as it was") {
  auto probe = make_smi_probe();
  CHECK(probe->commands("GPU-a", probe_occasion::after_lease).size() == 2);
  CHECK(probe->judge("GPU-a", answers("", "4\n")).outcome == probe_outcome::passed);
  CHECK(probe->judge("GPU-a", answers("\n", "500\n")).outcome == probe_outcome::passed);
}

TEST_CASE("a foreign process and memory that was left behind fail") {
  auto probe = make_smi_probe();
  auto foreign = probe->judge("GPU-a", answers("4711, 1024\n", "1030\n"));
  CHECK(foreign.outcome == probe_outcome::failed);
  CHECK(foreign.detail.find("4711") != std::string::npos);
  CHECK(probe->judge("GPU-a", answers("", "4")).outcome == probe_outcome::passed);
  auto leak = probe->judge("GPU-a", answers("", "2000"));
  CHECK(leak.outcome == probe_outcome::failed);
  CHECK(leak.detail.find("2000 MiB") != std::string::npos);
  // What another one uses does not count.
  CHECK(probe->judge("GPU-b", answers("", "2000")).outcome == probe_outcome::passed);
}

TEST_CASE("could not probe is never faulty") {
  auto probe = make_smi_probe();
  CHECK(probe->judge("GPU-a", {}).outcome == probe_outcome::could_not);
  CHECK(probe->judge("GPU-a", {{std::nullopt, ""}}).outcome == probe_outcome::could_not);
  CHECK(probe->judge("GPU-a", {{9, "Unable to determine"}}).outcome == probe_outcome::could_not);
  CHECK(probe->judge("GPU-a", answers("", "[N/A]")).outcome == probe_outcome::could_not);
  CHECK(probe->judge("GPU-a", answers("what?", "4")).outcome == probe_outcome::could_not);
}

TEST_CASE("a mock GPU is looked at on suspicion only, and fails by what its canary says") {
  auto probe = make_mock_probe("gristmill-runner");
  CHECK(probe->commands("mock:h200#3", probe_occasion::after_lease).empty());
  CHECK(probe->commands("mock:h200#3", probe_occasion::suspicion)
    == std::vector<std::vector<std::string>>{{"gristmill-runner", "--canary", "mock:h200"}});
  auto judge = [&](std::optional<int> status, const std::string& text) {
    return probe->judge("mock:h200#3", {{status, text}});
  };
  CHECK(judge(0, "{\"canary\":\"passed\"}\n").outcome == probe_outcome::passed);
  CHECK(judge(0, "a note\n{\"canary\":\"passed\"}\n").outcome == probe_outcome::passed);
  auto wrong = judge(1, "{\"canary\":\"failed\",\"detail\":\"element 3\"}");
  CHECK(wrong.outcome == probe_outcome::failed);
  CHECK(wrong.detail.find("element 3") != std::string::npos);
  CHECK(judge(1, "{\"canary\":\"failed\",\"detail\":7}").outcome == probe_outcome::failed);
  for (const char* text : {"", "{", "[]", "7", "{\"canary\":1}", "no such device"})
    for (int status : {0, 1, 2, 127, 137})
      CHECK(judge(status, text).outcome == probe_outcome::could_not);
  CHECK(judge(137, "{\"canary\":\"passed\"}").outcome == probe_outcome::could_not);
  CHECK(judge(std::nullopt, "").outcome == probe_outcome::could_not);
  CHECK(probe->judge("mock:h200#3", {}).outcome == probe_outcome::could_not);
}

TEST_CASE("a child that answers is read, one that hangs is given up in time") {
  auto fine = run_short_child({"sh", "-c", "echo a; exit 3"}, std::chrono::seconds{5});
  CHECK(fine.status == 3);
  CHECK(fine.output == "a\n");
  CHECK_FALSE(run_short_child({"sleep", "30"}, std::chrono::milliseconds{50}).status);
  CHECK_FALSE(
    run_short_child({"/no/such/program"}, std::chrono::seconds{1}).status == std::optional(0));
}
