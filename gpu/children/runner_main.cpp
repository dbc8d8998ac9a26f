#include "gpu/children/canary.hpp"
#include "gpu/children/comparison_run.hpp"
#include "gpu/children/helper_process.hpp"
#include "gpu/children/runner_devices.hpp"
#include "gpu/children/runner_workloads.hpp"
#include "gpu/children/sanitized_calls.hpp"
#include "gpu/children/watchdog.hpp"
#include "protocol/child_program.hpp"
#include "protocol/json_document.hpp"

#include <cstdio>
#include <fmt/format.h>
#include <string_view>
#include <unistd.h>

namespace gristmill {

namespace {

result<void> run_all(child_context& context) {
  const auto& run = context.what.run;
  if (!run.against.empty())
    return run_comparison(context);
  auto gpu = open_device(run.device,
    {.instruction_limit = run.instruction_limit, .trace = run.timing.trace, .measure = true});
  if (!gpu)
    return pass(gpu);
  auto units = unit_store::read(context);
  if (!units)
    return pass(units);
  if (gpu->use.real == nullptr) {
    workload_runner(context, gpu->use, std::move(*units)).run_all();
    return {};
  }
  workload_runner* running = nullptr;
  watchdog guard(work_allowance, [&] {
    // The driver waits for an endless kernel and will not come back: the process has to end, and
    // the kernel ends with it.
    if (running->give_up(
          fmt::format("a call did not end within {} s", run.timing.limit_ns / 1'000'000'000)))
      context.channel.done();
    _exit(0);
  });
  gpu->use.allow = [&](std::chrono::nanoseconds time) { guard.allow(time); };
  workload_runner all(context, gpu->use, std::move(*units));
  running = &all;
  guard.allow(work_allowance);
  all.run_all();
  // With a broken context the driver's own clean-up may not return either.
  context.channel.done();
  std::fflush(stdout);
  _exit(0);
}

int complain(const failure& why) {
  fmt::print(stderr, "gristmill-runner: {}\n", why.what);
  return 2;
}

void print_line(const ordered_json& line) {
  fmt::print("{}\n", line.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

/// The command of a probe (gpu/probe.hpp): one line on the standard output. Exit status 0: passed;
/// 1: the device is wrong; 2: it could not be looked at.
int canary(const std::string& name) {
  auto gpu = open_device(name, {});
  if (!gpu)
    return complain(gpu.error());
  auto done = run_canary(*gpu->use.any);
  ordered_json line{{"canary", done ? "passed" : "failed"}};
  if (!done)
    line["detail"] = done.error().what;
  print_line(line);
  return done ? 0 : 1;
}

/// One line a device. Exit status 0, or 2 when one could not be opened.
int describe(const std::string& name) {
  auto all = describe_devices(name);
  if (!all)
    return complain(all.error());
  for (const auto& one : *all)
    print_line(to_json(one));
  return 0;
}

/// The other command of a probe: one line. Exit status 0, or 2 when it could not be looked at; what
/// is healthy is for the probe to say, who knows what was there before.
int health(const std::string& name) {
  auto seen = look_at_device(name);
  if (!seen)
    return complain(seen.error());
  print_line(to_json(*seen));
  return 0;
}

int helper(char* program, char* folder) {
  if (auto done = become_helper(); !done)
    return complain(done.error());
  char* arguments[] = {program, folder, nullptr};
  return child_main(2, arguments, "gristmill-runner", job_kind::run, run_all);
}

} // namespace

} // namespace gristmill

int main(int argc, char** argv) {
  using namespace gristmill;
  const std::string_view option = argc == 3 ? argv[1] : "";
  if (option == "--canary")
    return canary(argv[2]);
  if (option == "--describe")
    return describe(argv[2]);
  if (option == "--health")
    return health(argv[2]);
  if (option == helper_option)
    return helper(argv[0], argv[2]);
  if (argc == 4 && std::string_view(argv[1]) == sanitized_option) {
    auto done = run_sanitized(argv[2], argv[3]);
    return done ? 0 : complain(done.error());
  }
  return child_main(argc, argv, "gristmill-runner", job_kind::run, run_all);
}
