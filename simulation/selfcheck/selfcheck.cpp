#include "simulation/selfcheck/selfcheck.hpp"

#include "journal/hash.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <mutex>
#include <optional>
#include <thread>

namespace gristmill {

namespace {

/// A seed of a check.
struct task {
  size_t check = 0;
  uint32_t seed = 0;
};

/// Works off all tasks. Where a result lies depends on its task alone.
class seed_runner {
public:
  seed_runner(const std::vector<check>& checks, const selfcheck_options& options)
    : checks_(checks), options_(options) {
    for (size_t i = 0; i < checks.size(); ++i)
      for (uint32_t seed = 1; seed <= options.seeds; ++seed)
        tasks_.push_back({i, seed});
    outcomes_.resize(tasks_.size());
    costs_.resize(tasks_.size(), 0);
  }

  /// False when it was stopped.
  bool run() {
    const auto count = std::min<size_t>(std::max(options_.jobs, 1u), tasks_.size());
    std::vector<std::thread> others;
    for (size_t i = 1; i < count; ++i)
      others.emplace_back([this] { work(); });
    work();
    for (auto& each : others)
      each.join();
    return !stopped_;
  }

  const std::optional<result<seed_outcome>>& outcome(size_t check, uint32_t seed) const {
    return outcomes_[check * options_.seeds + seed - 1];
  }
  double cost_s(size_t check, uint32_t seed) const {
    return costs_[check * options_.seeds + seed - 1];
  }

private:
  void work() {
    for (size_t i = next_++; i < tasks_.size() && !stopped_; i = next_++) {
      if (options_.stop && options_.stop()) {
        stopped_ = true;
        return;
      }
      const auto& each = tasks_[i];
      const double before = options_.clock ? options_.clock() : 0;
      outcomes_[i] = checks_[each.check].run(each.seed, options_.mutant);
      costs_[i] = options_.clock ? options_.clock() - before : 0;
      if (!options_.progress)
        continue;
      const std::scoped_lock lock(progress_);
      options_.progress(++done_, tasks_.size());
    }
  }

  const std::vector<check>& checks_;
  const selfcheck_options& options_;
  std::vector<task> tasks_;
  std::vector<std::optional<result<seed_outcome>>> outcomes_;
  std::vector<double> costs_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> stopped_ = false;
  std::mutex progress_;
  size_t done_ = 0;
};

check_outcome judge_check(const check& of, size_t index, const seed_runner& ran,
  const selfcheck_options& options, std::string& trace) {
  check_outcome out;
  out.name = of.name;
  out.what = of.what;
  out.source = of.source;
  std::vector<std::vector<double>> values(of.lines.size());
  std::vector<double> sample;
  trace += of.name + "\n";
  for (uint32_t seed = 1; seed <= options.seeds; ++seed) {
    out.cost_s += ran.cost_s(index, seed);
    const auto& one = *ran.outcome(index, seed);
    if (!one) {
      trace += fmt::format("{} {}\n", seed, one.error().what);
      if (out.error.empty())
        out.error = fmt::format("seed {}: {}", seed, one.error().what);
      continue;
    }
    out.leases += one->leases;
    trace += fmt::format("{} {}", seed, one->digest);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i].push_back(i < one->values.size() ? one->values[i] : NAN);
      trace += fmt::format(" {}", values[i].back());
    }
    trace += "\n";
    sample.insert(sample.end(), one->sample.begin(), one->sample.end());
  }
  for (size_t i = 0; i < values.size(); ++i)
    out.lines.push_back(judge(of.lines[i], values[i]));
  if (of.distribution)
    out.lines.push_back(judge_distribution(of.distribution, std::move(sample)));
  return out;
}

result<std::vector<check>> chosen_checks(const selfcheck_options& options) {
  auto all = all_checks(options.quick);
  if (options.only.empty())
    return all;
  std::vector<std::string> known;
  for (const auto& each : all)
    known.push_back(each.name);
  for (const auto& name : options.only)
    if (std::find(known.begin(), known.end(), name) == known.end())
      return fail(errc::invalid_input,
        "--only: there is no " + std::string(options.quick ? "quick " : "") + "check '" + name + "'"
          + suggestion(name, known));
  std::erase_if(all, [&](const check& each) {
    return std::find(options.only.begin(), options.only.end(), each.name) == options.only.end();
  });
  return all;
}

} // namespace

std::vector<check> all_checks(bool quick) {
  std::vector<check> out;
  add_closed_checks(out, quick);
  add_open_checks(out, quick);
  add_order_checks(out, quick);
  add_law_checks(out, quick);
  add_share_checks(out, quick);
  add_plan_checks(out, quick);
  return out;
}

bool check_outcome::passed() const {
  return error.empty() && std::all_of(lines.begin(), lines.end(), [](const judged_line& line) {
    return line.verdict == line_verdict::pass;
  });
}

bool selfcheck_outcome::passed() const {
  return std::all_of(
    checks.begin(), checks.end(), [](const check_outcome& each) { return each.passed(); });
}

result<selfcheck_outcome> run_checks(
  const std::vector<check>& checks, const selfcheck_options& options) {
  if (options.seeds < 2 || options.seeds > 1000)
    return fail(
      errc::invalid_input, fmt::format("--seeds: {} is not within 2..1000", options.seeds));
  seed_runner runner(checks, options);
  if (!runner.run())
    return fail(errc::shutting_down, "the self-check was stopped before its end");
  selfcheck_outcome out;
  out.seeds = options.seeds;
  out.quick = options.quick;
  out.mutant = options.mutant;
  std::string config =
    fmt::format("seeds {} mutant {}\n", options.seeds, to_string(options.mutant));
  std::string trace;
  for (size_t i = 0; i < checks.size(); ++i) {
    config += checks[i].name + "\n" + checks[i].config;
    out.checks.push_back(judge_check(checks[i], i, runner, options, trace));
  }
  out.config_hash = sha256_hex(config);
  out.digest = sha256_hex(trace);
  return out;
}

result<selfcheck_outcome> run_selfcheck(const selfcheck_options& options) {
  const auto checks = chosen_checks(options);
  if (!checks)
    return pass(checks);
  return run_checks(*checks, options);
}

} // namespace gristmill
