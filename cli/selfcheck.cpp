#include "simulation/selfcheck/selfcheck.hpp"
#include "cli/selfcheck_integrity.hpp"
#include "cli/verb.hpp"
#include "cli/whole_number.hpp"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <unistd.h>

namespace gristmill {

namespace {

struct selfcheck_arguments {
  bool quick = false;
  std::vector<std::string> only;
  std::string seeds;
  std::string jobs;
  std::string mutant;
  bool json = false;
  bool list = false;
  /// The corpus of cheats instead of the simulator.
  bool integrity = false;
  integrity_check_arguments corpus;
};

/// JSON has no number for what is none.
nlohmann::json number_or_null(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

std::string to_string(line_rule rule) {
  switch (rule) {
  case line_rule::estimate:
    return "estimate";
  case line_rule::mean_at_most:
    return "mean_at_most";
  case line_rule::at_most:
    return "at_most";
  case line_rule::exactly:
    return "exactly";
  }
  return "?";
}

std::string to_json(const selfcheck_outcome& what) {
  nlohmann::ordered_json out;
  out["schema"] = "gristmill.selfcheck/1";
  out["version"] = GRISTMILL_VERSION;
  out["quick"] = what.quick;
  out["seeds"] = what.seeds;
  out["mutant"] = what.mutant == mutant_kind::none ? "" : to_string(what.mutant);
  out["config_sha256"] = what.config_hash;
  out["digest_sha256"] = what.digest;
  out["passed"] = what.passed();
  out["checks"] = nlohmann::ordered_json::array();
  for (const auto& each : what.checks) {
    nlohmann::ordered_json one;
    one["name"] = each.name;
    one["what"] = each.what;
    one["source"] = each.source;
    one["passed"] = each.passed();
    one["error"] = each.error;
    one["leases"] = each.leases;
    one["cost_s"] = each.cost_s;
    one["lines"] = nlohmann::ordered_json::array();
    for (const auto& line : each.lines) {
      nlohmann::ordered_json row;
      row["name"] = line.name;
      row["rule"] = to_string(line.rule);
      row["exact"] = number_or_null(line.exact);
      row["estimate"] = number_or_null(line.estimate);
      row["standard_error"] = number_or_null(line.standard_error);
      row["tolerance"] = number_or_null(line.tolerance);
      row["verdict"] = to_string(line.verdict);
      one["lines"].push_back(std::move(row));
    }
    out["checks"].push_back(std::move(one));
  }
  return out.dump(2) + "\n";
}

/// What each check cost, apart from the results, which are the same every time.
void tell_costs(const selfcheck_outcome& what, double wall_s) {
  double sum = 0;
  uint64_t leases = 0;
  for (const auto& each : what.checks) {
    fmt::print(stderr, "  {:<24} {:>9.2f} s {:>12} leases\n", each.name, each.cost_s, each.leases);
    sum += each.cost_s;
    leases += each.leases;
  }
  fmt::print(
    stderr, "  {:<24} {:>9.2f} s {:>12} leases, in {:.1f} s\n", "all", sum, leases, wall_s);
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Of this thread on a core: what others do on the machine does not count.
double seconds_worked() {
  timespec out{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &out);
  return static_cast<double>(out.tv_sec) + static_cast<double>(out.tv_nsec) * 1e-9;
}

exit_code check_corpus(const selfcheck_arguments& arguments) {
  auto corpus = arguments.corpus;
  corpus.only = arguments.only;
  corpus.json = arguments.json;
  return integrity_check_command(corpus);
}

exit_code selfcheck_command(const selfcheck_arguments& arguments) {
  if (arguments.integrity)
    return check_corpus(arguments);
  if (arguments.list) {
    for (const auto& each : all_checks(arguments.quick))
      fmt::print("{:<24} {}\n", each.name, each.what);
    return exit_code::ok;
  }
  selfcheck_options options;
  options.quick = arguments.quick;
  options.only = arguments.only;
  options.jobs = std::max(std::thread::hardware_concurrency(), 1u);
  if (!arguments.seeds.empty()) {
    const auto seeds = whole_number("--seeds", arguments.seeds, 1, 1000);
    if (!seeds)
      return complain(seeds.error());
    options.seeds = static_cast<uint32_t>(*seeds);
  }
  if (!arguments.jobs.empty()) {
    const auto jobs = whole_number("--jobs", arguments.jobs, 1, 1024);
    if (!jobs)
      return complain(jobs.error());
    options.jobs = static_cast<uint32_t>(*jobs);
  }
  if (!arguments.mutant.empty()) {
    const auto mutant = mutant_from_text(arguments.mutant);
    if (!mutant)
      return complain(mutant.error());
    options.mutant = *mutant;
  }
  options.clock = seconds_worked;
  const bool live = isatty(STDERR_FILENO) != 0;
  if (live)
    options.progress = [](size_t done, size_t all) {
      fmt::print(stderr, "\r{} of {} seeds done{}", done, all, done == all ? "\n" : "");
      std::fflush(stderr);
    };
  const double begin = seconds_now();
  const auto outcome = run_selfcheck(options);
  if (!outcome)
    return complain(outcome.error());
  const auto text = arguments.json ? to_json(*outcome) : to_text(*outcome, GRISTMILL_VERSION);
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  if (!arguments.json)
    tell_costs(*outcome, seconds_now() - begin);
  return outcome->passed() ? exit_code::ok : exit_code::not_sound;
}

} // namespace

void add_selfcheck_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand(
    "selfcheck", "prove the simulator right against queueing theory, or the rules against cheats");
  auto arguments = std::make_shared<selfcheck_arguments>();
  app->add_flag("--json", arguments->json, "as JSON");
  auto* integrity = app->add_flag("--integrity", arguments->integrity,
    "instead: run the corpus of cheats and their honest twins, and see each caught or accepted");
  app
    ->add_option("--gpus", arguments->corpus.gpus,
      "the device of --integrity: mock:h200, or cuda:0 of a machine that nobody else uses")
    ->needs(integrity);
  app
    ->add_option("--without", arguments->corpus.without,
      "switch a rule off, to see what then gets through; repeatable")
    ->needs(integrity);
  app->add_option("--toolchain", arguments->corpus.toolchain, "auto, nvrtc or clang")
    ->needs(integrity);
  app->add_option("--only", arguments->only,
    "only the check, or with --integrity the candidate, of this name; repeatable");
  // Whatever else the program will check of itself has flags and a group of its own.
  const std::string group = "Of the simulator";
  app->add_flag("--quick", arguments->quick, "fewer and smaller checks, in seconds")->group(group);
  app
    ->add_option(
      "--seeds", arguments->seeds, "seeds 1 to this; 20, which the sample sizes are made for")
    ->group(group);
  app->add_option("--jobs", arguments->jobs, "threads; all cores. The result does not depend on it")
    ->group(group);
  app
    ->add_option("--mutant", arguments->mutant,
      "put a mistake under the engine, to see that it is found: lifo, lost-wakeup or "
      "ignore-free-gpu")
    ->group(group);
  app->add_flag("--list", arguments->list, "name the checks and do nothing")->group(group);
  all.push_back({app, [arguments] { return selfcheck_command(*arguments); }});
}

} // namespace gristmill
