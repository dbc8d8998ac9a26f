// How a GPU is looked at after a lease.

#include "gpu/broker/short_child.hpp"
#include "gpu/probe.hpp"
#include "protocol/device_description.hpp"

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

namespace {

std::string health_line(uint64_t used_mib, uint64_t errors, std::vector<device_process> processes) {
  health_report seen;
  seen.device = "cuda:0";
  seen.uuid = "GPU-a";
  seen.processes = std::move(processes);
  seen.memory_used_bytes = used_mib << 20;
  seen.memory_total_bytes = uint64_t{141} << 30;
  seen.uncorrected_errors = errors;
  return to_json(seen).dump() + "\n";
}

} // namespace

TEST_CASE("a real GPU is looked at after every lease, and must compute on suspicion") {
  auto probe = make_cuda_probe("gristmill-runner");
  using commands = std::vector<std::vector<std::string>>;
  CHECK(probe->commands("cuda:1", probe_occasion::after_lease)
    == commands{{"gristmill-runner", "--health", "cuda:1"}});
  CHECK(probe->commands("cuda:1#0", probe_occasion::suspicion)
    == commands{
      {"gristmill-runner", "--health", "cuda:1"}, {"gristmill-runner", "--canary", "cuda:1"}});
  auto look = [&](const std::string& text) { return probe->judge("cuda:0", {{0, text}}); };
  CHECK(look(health_line(600, 0, {})).outcome == probe_outcome::passed);
  CHECK(look("a note\n" + health_line(1100, 0, {})).outcome == probe_outcome::passed);
  auto leak = look(health_line(1200, 0, {}));
  CHECK(leak.outcome == probe_outcome::failed);
  CHECK(leak.detail.find("1200 MiB in use, 600 MiB") != std::string::npos);
  auto left = look(health_line(600, 0, {{4711, 0}}));
  CHECK(left.outcome == probe_outcome::failed);
  CHECK(left.detail.find("4711") != std::string::npos);
  CHECK(look(health_line(600, 1, {})).outcome == probe_outcome::failed);
  // Another device has its own idea of what is normal.
  CHECK(probe->judge("cuda:1", {{0, health_line(5000, 3, {})}}).outcome == probe_outcome::passed);
}

TEST_CASE("of a real GPU, too, could not look is never faulty") {
  auto probe = make_cuda_probe("gristmill-runner");
  const std::string passed = "{\"canary\":\"passed\"}";
  const std::string failed = "{\"canary\":\"failed\",\"detail\":\"element 3\"}";
  CHECK(probe->judge("cuda:0", {}).outcome == probe_outcome::could_not);
  for (const char* text : {"", "{", "{}", "no driver", "{\"line\":\"health\"}"})
    CHECK(probe->judge("cuda:0", {{0, text}}).outcome == probe_outcome::could_not);
  CHECK(probe->judge("cuda:0", {{2, health_line(1, 0, {})}}).outcome == probe_outcome::could_not);
  CHECK(probe->judge("cuda:0", {{std::nullopt, ""}}).outcome == probe_outcome::could_not);
  const auto healthy = health_line(1, 0, {});
  CHECK(probe->judge("cuda:0", {{0, healthy}, {0, passed}}).outcome == probe_outcome::passed);
  CHECK(probe->judge("cuda:0", {{0, healthy}, {1, failed}}).outcome == probe_outcome::failed);
  CHECK(probe->judge("cuda:0", {{2, ""}, {1, failed}}).outcome == probe_outcome::failed);
  CHECK(probe->judge("cuda:0", {{2, ""}, {0, passed}}).outcome == probe_outcome::could_not);
  CHECK(
    probe->judge("cuda:0", {{0, healthy}, {std::nullopt, ""}}).outcome == probe_outcome::could_not);
}

TEST_CASE("a child that answers is read, one that hangs is given up in time") {
  auto fine = run_short_child({"sh", "-c", "echo a; exit 3"}, std::chrono::seconds{5});
  CHECK(fine.status == 3);
  CHECK(fine.output == "a\n");
  CHECK_FALSE(run_short_child({"sleep", "30"}, std::chrono::milliseconds{50}).status);
  CHECK_FALSE(
    run_short_child({"/no/such/program"}, std::chrono::seconds{1}).status == std::optional(0));
}
