#include "gpu/children/canary.hpp"
#include "gpu/children/job_directory.hpp"
#include "gpu/children/runner_pass.hpp"
#include "gpu/mock/mock_device.hpp"
#include "protocol/child_answers.hpp"
#include "protocol/child_program.hpp"
#include "protocol/device_name.hpp"
#include "protocol/json_document.hpp"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <map>
#include <string_view>

namespace gristmill {

namespace {

constexpr uint64_t code_bytes_max = uint64_t{16} << 20;
/// What the printf of kernels may add to this child's log, of which 64 KiB are kept.
constexpr uint64_t printed_bytes_max = uint64_t{32} << 10;

/// Writes what device code prints to our standard output, which is the log of this child.
class printer {
public:
  void operator()(const ptx::entry_info& entry, const ptx::launch&, const ptx::outcome& run) {
    if (run.printed.empty() || left_ == 0)
      return;
    const std::string_view text = std::string_view(run.printed).substr(0, left_);
    left_ -= text.size();
    fmt::print("printed by {}:\n{}{}", entry.name, text, text.ends_with('\n') ? "" : "\n");
    if (left_ == 0 || run.printed_left_out > 0)
      fmt::print("(more was printed, which is not kept)\n");
    std::fflush(stdout);
  }

private:
  uint64_t left_ = printed_bytes_max;
};

result<std::unique_ptr<device>> open_device(const std::string& name, uint64_t instruction_limit) {
  auto groups = parse_devices(name, known_profiles());
  if (!groups)
    return pass(groups);
  if (groups->size() != 1 || groups->front().what != device_group::kind::mock)
    return fail(errc::unsupported, fmt::format("{}: the runner opens mock devices", name));
  auto model = profile(groups->front().model);
  if (!model)
    return pass(model);
  mock_device_config config;
  config.profile = std::move(*model);
  config.instruction_limit = instruction_limit;
  config.printed_bytes_max = printed_bytes_max;
  config.executed = printer{};
  return make_mock_device(std::move(config));
}

uint64_t median(std::vector<uint64_t> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t middle = samples.size() / 2;
  if (samples.size() % 2 == 1)
    return samples[middle];
  return samples[middle - 1] + (samples[middle] - samples[middle - 1]) / 2;
}

/// Runs all workloads of a job. A fault of one ends that one only.
class runner {
public:
  runner(child_context& context, device& gpu) : context_(context), gpu_(gpu) {}

  result<void> read_units() {
    for (const auto& unit : context_.what.run.units) {
      auto code = read_whole_file(context_.path(unit.file), code_bytes_max);
      if (!code)
        return pass(code);
      units_.emplace(unit.key, loaded_unit{&unit, std::move(*code)});
    }
    return {};
  }

  void run(const run_workload& work, size_t index) {
    workload_measurement measured;
    measured.uuid = work.uuid;
    measured.shrunken = work.shrunken;
    measured.status = verdict_status::passed;
    std::vector<finding> findings;
    if (work.has_check) {
      auto in = make_pass(work.check, index);
      if (auto done = in.check(findings); !done)
        note(measured, done.error());
    }
    for (auto& found : findings) {
      found.workload = work.uuid;
      context_.channel.sample(to_json(found));
    }
    if (work.has_clock && measured.status == verdict_status::passed)
      time(work.clock, index, measured);
    context_.channel.sample(to_json(measured));
  }

private:
  struct loaded_unit {
    const run_unit* unit;
    std::string code;
  };

  runner_pass make_pass(const run_pass& pass, size_t index) {
    auto fill = context_.what.run.fill;
    for (size_t i = 0; i < 4; ++i)
      fill.bytes[8 + i] ^= static_cast<uint8_t>(index >> (8 * i));
    const auto& loaded = units_.at(pass.unit);
    return {gpu_, context_, pass, *loaded.unit, loaded.code, fill};
  }

  void time(const run_pass& pass, size_t index, workload_measurement& measured) {
    for (uint32_t i = 0; i < context_.what.run.samples; ++i) {
      auto in = make_pass(pass, index);
      auto timed = in.time();
      if (!timed) {
        measured.samples_ns.clear();
        measured.terms.clear();
        measured.bound.clear();
        return note(measured, timed.error());
      }
      measured.samples_ns.push_back(timed->ns);
      measured.terms = std::move(timed->terms);
      measured.bound = std::move(timed->bound);
    }
    measured.time_ns = median(measured.samples_ns);
  }

  void note(workload_measurement& measured, const pass_failure& why) {
    measured.status = why.status;
    measured.detail = why.detail;
    if (why.fault)
      context_.channel.fault({{"workload", measured.uuid}, {"fault", why.fault->kind},
        {"text", why.fault->what}, {"ptx_line", why.fault->ptx_line}});
  }

  child_context& context_;
  device& gpu_;
  std::map<std::string, loaded_unit> units_;
};

result<void> run_all(child_context& context) {
  auto gpu = open_device(context.what.run.device, context.what.run.instruction_limit);
  if (!gpu)
    return pass(gpu);
  runner all(context, **gpu);
  if (auto read = all.read_units(); !read)
    return read;
  const auto& workloads = context.what.run.workloads;
  for (size_t i = 0; i < workloads.size(); ++i) {
    context.channel.phase(fmt::format("workload {} of {}", i + 1, workloads.size()));
    all.run(workloads[i], i);
  }
  return {};
}

/// The command of a probe (gpu/probe.hpp): one line on the standard output. Exit status 0: passed;
/// 1: the device is wrong; 2: it could not be looked at.
int canary(const std::string& name) {
  auto gpu = open_device(name, 1'000'000);
  if (!gpu) {
    fmt::print(stderr, "gristmill-runner: {}\n", gpu.error().what);
    return 2;
  }
  auto done = run_canary(**gpu);
  ordered_json line{{"canary", done ? "passed" : "failed"}};
  if (!done)
    line["detail"] = done.error().what;
  fmt::print("{}\n", line.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  return done ? 0 : 1;
}

} // namespace

} // namespace gristmill

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--canary")
    return gristmill::canary(argv[2]);
  return gristmill::child_main(
    argc, argv, "gristmill-runner", gristmill::job_kind::run, gristmill::run_all);
}
