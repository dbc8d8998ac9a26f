#include "cli/read_run.hpp"
#include "cli/run_actors.hpp"
#include "cli/verb.hpp"
#include "cli/work_on_run.hpp"
#include "journal/run_lock.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <spdlog/spdlog.h>
#include <tuple>

namespace gristmill {

namespace {

/// Flags of `run` that a resumed run cannot change; given all the same they must say what the run
/// has.
struct resume_arguments {
  std::string run;
  std::vector<std::string> budget;
  bool json = false;
  std::string gpus;
  std::string workers;
  std::string seed;
  std::string proposer;
  std::string planner;
  std::string toolchain;
  std::string lease_policy;
  std::string oracle;
};

result<void> check_same(const resume_arguments& given, const run_settings& has, uint64_t seed) {
  const std::tuple<const char*, std::string, std::string> flags[] = {
    {"--gpus", given.gpus, has.gpus}, {"--workers", given.workers, std::to_string(has.workers)},
    {"--seed", given.seed, std::to_string(seed)}, {"--proposer", given.proposer, has.proposer},
    {"--planner", given.planner, has.planner}, {"--toolchain", given.toolchain, has.toolchain},
    {"--lease-policy", given.lease_policy, has.lease_policy},
    {"--oracle", given.oracle, has.oracle}};
  for (const auto& [flag, wanted, is] : flags)
    if (!wanted.empty() && wanted != is)
      return fail(errc::invalid_input,
        std::string(flag) + " " + wanted + ": the run has '" + is
          + "', and its settings stay; only --budget may be larger");
  return {};
}

/// A part of a budget that may grow and do nothing else.
result<void> check_larger(
  const char* what, const std::optional<uint64_t>& is, const std::optional<uint64_t>& wanted) {
  if (!wanted)
    return {};
  if (!is)
    return fail(errc::invalid_input,
      std::string("--budget: the run has no limit of ") + what
        + ", and a resumed run may only be given more");
  if (*wanted < *is)
    return fail(errc::invalid_input,
      std::string("--budget: the run's limit of ") + what
        + " is larger, and a resumed run may only be given more");
  return {};
}

/// The budget that holds now: that of the run, its parts replaced by what was given.
result<std::vector<std::string>> extended(
  const std::vector<std::string>& is, const std::vector<std::string>& given) {
  auto before = parse_budget(is);
  auto wanted = parse_budget(given);
  if (!before)
    return pass(before);
  if (!wanted)
    return pass(wanted);
  for (auto checked : {check_larger("wall-clock time", before->wall_ns, wanted->wall_ns),
         check_larger("attempts", before->attempts, wanted->attempts),
         check_larger("GPU time", before->gpu_ns, wanted->gpu_ns),
         check_larger("money", before->nano_usd, wanted->nano_usd),
         check_larger("tokens", before->tokens, wanted->tokens),
         check_larger("calls", before->calls, wanted->calls)})
    if (!checked)
      return pass(checked);
  auto out = given;
  for (const auto& text : is) {
    auto one = parse_budget({text});
    bool replaced = one
      && ((one->wall_ns && wanted->wall_ns) || (one->attempts && wanted->attempts)
        || (one->gpu_ns && wanted->gpu_ns) || (one->nano_usd && wanted->nano_usd)
        || (one->tokens && wanted->tokens) || (one->calls && wanted->calls));
    if (!replaced)
      out.push_back(text);
  }
  return out;
}

result<std::vector<event>> events_of(const run_directory& directory) {
  auto events = read_events(directory.root());
  if (events && events->empty())
    return fail(errc::invalid_input,
      directory.root().string()
        + ": the run was ended before it had begun; there is nothing to go on from, start it anew");
  return events;
}

exit_code resume_command(const resume_arguments& arguments) {
  log_to_stderr();
  auto found = open_run(arguments.run);
  if (!found)
    return complain(found.error());
  const auto& directory = *found;
  auto lock = run_lock::take(directory.root());
  if (!lock)
    return complain(lock.error());
  auto events = events_of(directory);
  if (!events)
    return complain(events.error());
  auto beginning = read_beginning(*events);
  if (!beginning)
    return complain(
      {beginning.error().code, directory.root().string() + ": " + beginning.error().what});
  auto settings = read_settings(directory);
  if (!settings)
    return complain(settings.error());
  if (settings->proposer == "sleep")
    return complain({errc::refused,
      directory.root().string()
        + ": a rehearsal (--proposer sleep) has no verdicts to go on from; start it anew"});
  if (auto same = check_same(arguments, *settings, beginning->seed); !same)
    return complain(same.error());
  auto budget = extended(beginning->budget, arguments.budget);
  if (!budget)
    return complain(budget.error());
  settings->budget = *budget;
  // What the agents were told first; the file that it was copied from may have changed.
  if (auto told = directory.root() / "program.md"; !beginning->program.empty())
    settings->program = told.string();
  // Nodes look for the run where it was: a port that was picked for it is its port from then on.
  if (std::ifstream in(directory.root() / listen_file); in && !settings->listen.empty())
    std::getline(in, settings->listen);
  auto setup = make_resumed_setup(*settings, *beginning, directory);
  if (!setup)
    return complain(setup.error());
  if (setup->models.program_sha256 != beginning->program)
    return complain({errc::refused,
      directory.root().string()
        + "/program.md: is not what the run began with, and results under two programs cannot be "
          "compared"});
  if (auto keys = check_keys(setup->models); !keys)
    return complain(keys.error());
  auto restored = restore_run(planner_mind(*setup), setup->problems, *events);
  if (!restored)
    return complain(
      {restored.error().code, directory.root().string() + ": " + restored.error().what});
  if (auto over = restored->mind.stop_reason_at(restored->used);
      beginning->ended_clean && restored->closing.empty() && !over.empty()) {
    // Killed between its last event and its tidying up, it has left its scratch.
    if (auto removed = directory.remove_scratch(); !removed)
      return complain(removed.error());
    std::printf("nothing to resume: the run is over (%s)\n", over.c_str());
    return exit_code::ok;
  }
  if (beginning->toolchain != setup->compiler.version)
    spdlog::warn("the run was begun with {}, it goes on with {}", beginning->toolchain,
      setup->compiler.version);
  setup->models.spent_before = restored->models.spent;
  if (auto port = take_port(*setup); !port)
    return complain({port.error().code,
      directory.root().string() + ": " + port.error().what
        + " (a resumed run stays where its nodes look for it, so this one has to become free)"});
  if (auto taken = reopen_run_directory(*setup, directory); !taken)
    return complain(taken.error());
  auto log = event_log::open(directory.database_file(), event_log::mode::append);
  if (!log)
    return complain(log.error());
  // Job folders and nonces of two starts never have the same number.
  setup->context.child_ids =
    std::make_shared<std::atomic<uint64_t>>((uint64_t{log->incarnation()} - 1) * 1'000'000'000 + 1);
  auto first = restored->closing;
  first.push_back(run_resumed_event(*setup, *restored));
  std::fprintf(stderr, "going on after %.1f s with %zu events; %zu were under way\n",
    std::chrono::duration<double>(restored->used).count(), events->size(),
    restored->closing.size());
  return work_on_run(*setup, directory, std::move(*log), std::move(first),
    std::make_shared<restored_run>(std::move(*restored)), arguments.json);
}

} // namespace

void add_resume_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand("resume", "go on with a run that was killed or interrupted");
  auto a = std::make_shared<resume_arguments>();
  app->add_option("run", a->run, "run directory")->required();
  app->add_option("--budget", a->budget, "a larger budget than the run has; once for each kind")
    ->expected(1)
    ->allow_extra_args(false)
    ->take_all();
  app->add_flag("--json", a->json, "the table as JSON");
  const std::string same = "must be what the run has";
  app->add_option("--gpus", a->gpus, same);
  app->add_option("--workers", a->workers, same);
  app->add_option("--seed", a->seed, same);
  app->add_option("--proposer", a->proposer, same);
  app->add_option("--planner", a->planner, same);
  app->add_option("--toolchain", a->toolchain, same);
  app->add_option("--lease-policy", a->lease_policy, same);
  app->add_option("--oracle", a->oracle, same);
  all.push_back({app, [a] { return resume_command(*a); }});
}

} // namespace gristmill
