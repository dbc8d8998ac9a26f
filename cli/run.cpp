#include "cli/commands.hpp"

#include "actors/system_config.hpp"
#include "cli/read_run.hpp"
#include "cli/run_actors.hpp"
#include "cli/run_end.hpp"
#include "cli/run_progress.hpp"
#include "cli/run_setup.hpp"
#include "cli/work_on_run.hpp"
#include "journal/run_lock.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <future>
#include <optional>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <thread>
#include <unistd.h>

namespace gristmill {

namespace {

using namespace std::chrono_literals;

/// Interrupts come to the main thread alone, which waits for them; children start with a mask of
/// their own.
sigset_t block_interrupts() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

/// Waits for the end, passes interrupts on, shows the totals. True when interrupted.
bool wait_for_end(caf::actor_system& system, const supervisor_actor& owner, run_end& end,
  run_progress& progress, std::chrono::nanoseconds used, const sigset_t& interrupts) {
  caf::scoped_actor self{system};
  auto started = std::chrono::steady_clock::now();
  auto next_totals = started + progress.period();
  bool interrupted = false;
  while (!end.get()) {
    timespec wait{0, 50'000'000};
    int signal = sigtimedwait(&interrupts, nullptr, &wait);
    if (signal == SIGINT || signal == SIGTERM) {
      progress.clear_line();
      std::fputs(interrupted ? "gristmill: ending at once\n"
                             : "gristmill: attempts in flight may end; once more to stop at once\n",
        stderr);
      interrupted = true;
      seam::post(owner, drain_request{"interrupted"});
    }
    auto now = std::chrono::steady_clock::now();
    if (now < next_totals)
      continue;
    next_totals = now + progress.period();
    self->request(owner, 1s, planner_query{})
      .receive(
        [&](const planner_snapshot& s) {
          progress.show_totals(
            s, std::chrono::duration_cast<std::chrono::seconds>(now - started + used));
        },
        [](const caf::error&) { /* The run is ending. */ });
  }
  progress.clear_line();
  return interrupted;
}

exit_code exit_of(const run_table& table, bool interrupted, const model_end& models) {
  if (interrupted)
    return exit_code::interrupted;
  if (models.refused)
    return exit_code::provider_refused;
  if (!table.clean || !table.skipped.empty())
    return exit_code::failure;
  for (const auto& p : table.problems)
    if (p.status == "no verdict" || p.status == "not prepared"
      || (models.closed && p.status == "no candidate" && p.attempts == 0))
      return exit_code::budget_gone;
  return table.summary.faster_count > 0 ? exit_code::ok : exit_code::no_improvement;
}

int64_t wall_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
    std::chrono::system_clock::now().time_since_epoch())
    .count();
}

/// Lets nodes in once the hub is there, and tells where: on standard error and in the run
/// directory.
result<void> open_door(
  caf::actor_system& system, const run_setup& setup, std::future<cluster_door_actor>& made) {
  if (made.wait_for(10s) != std::future_status::ready)
    return fail(errc::timed_out, "--listen: the hub of the cluster did not start");
  auto port = cluster_listen(system, made.get(), *setup.listen, std::move(*setup.port));
  if (!port)
    return pass(port);
  auto address = *setup.listen;
  address.port = *port;
  auto text = to_string(address);
  std::fprintf(stderr, "listening on %s\n", text.c_str());
  auto file = setup.context.directory / listen_file;
  std::ofstream out(file, std::ios::binary);
  out << text << "\n";
  out.close();
  if (!out)
    return fail(errc::io_failed, file.string() + ": cannot be written");
  return {};
}

/// Runs to the end. True when interrupted; the log has the rest.
bool run_to_end(const run_setup& setup, event_log log, const sigset_t& interrupts,
  std::shared_ptr<restored_run> restored, cluster_start* cluster) {
  auto context = std::make_shared<const run_context>(setup.context);
  auto progress =
    std::make_shared<run_progress>(stderr_is_terminal(), setup.rehearsal, setup.limits);
  run_end end;
  std::unique_ptr<loop_starter> starter;
  auto cores = std::max(1u, std::thread::hardware_concurrency());
  if (!setup.rehearsal)
    starter = std::make_unique<loop_starter>(child_limits(setup, cores));
  bool interrupted = false;
  std::optional<watchdog> guard;
  caf::actor_system_config config;
  configure(config, std::max(2u, std::min(cores, 8u)));
  if (cluster)
    configure_cluster(config, setup.transport);
  auto door = std::make_shared<std::promise<cluster_door_actor>>();
  auto door_made = door->get_future();
  if (cluster)
    cluster->on_door = [door](const cluster_door_actor& made) { door->set_value(made); };
  {
    caf::actor_system system{config};
    supervisor_config owned;
    auto incarnation = log.incarnation();
    owned.make =
      real_actors(setup, context, observed(make_event_sink(std::move(log), wall_now), progress),
        starter.get(), incarnation, restored, cluster);
    owned.gpus = setup.gpu_count;
    owned.workers = setup.workers;
    if (restored)
      owned.time_used = restored->used;
    owned.on_end = [&end](const run_ended& how) { end.set(how); };
    auto owner = system.spawn<supervisor>(std::move(owned));
    seam::post(owner, start_working{});
    if (cluster)
      if (auto open = open_door(system, setup, door_made); !open) {
        std::fprintf(stderr, "gristmill: %s\n", open.error().what.c_str());
        seam::post(owner, run_ended{open.error().what, false});
      }
    interrupted = wait_for_end(system, owner, end, *progress,
      restored ? restored->used : std::chrono::nanoseconds{0}, interrupts);
    if (cluster)
      cluster_stop_listening(system);
    if (starter)
      starter->stop();
    guard.emplace();
  }
  if (auto how = end.get(); how && !how->clean)
    std::fprintf(stderr, "gristmill: the run ended early: %s\n", how->reason.c_str());
  return interrupted;
}

} // namespace

void log_to_stderr() {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("gristmill"));
  spdlog::set_pattern("gristmill: %l: %v");
  spdlog::set_level(spdlog::level::warn);
}

exit_code work_on_run(const run_setup& setup, const run_directory& directory, event_log log,
  std::vector<event> first, std::shared_ptr<restored_run> restored, bool json) {
  gateway_start cassette;
  cassette.run_directory = setup.context.directory;
  cassette.resumed = restored != nullptr;
  if (auto fine = check_cassette(setup.models, cassette); !fine)
    return complain(fine.error());
  cluster_start cluster;
  if (setup.listen) {
    cluster.run = cluster_name_of(setup);
    auto terms = cluster_terms_of(setup, cluster.run);
    if (!terms)
      return complain({terms.error().code, "--listen: " + terms.error().what});
    cluster.terms = *terms;
  }
  auto interrupts = block_interrupts();
  // Before anything else happens: from here on the run can be gone on with.
  if (auto begun = log.append(first, durability::barrier, wall_now()); !begun)
    return complain(begun.error());
  std::fprintf(stderr, "run directory %s\n", directory.root().c_str());
  bool interrupted = run_to_end(
    setup, std::move(log), interrupts, std::move(restored), setup.listen ? &cluster : nullptr);
  if (auto removed = directory.remove_scratch(); !removed)
    spdlog::warn("{}", removed.error().what);
  auto read = read_run(directory.root());
  if (!read)
    return complain(read.error());
  auto text = json ? to_json(read->table) : to_text(read->table);
  std::fputs(text.c_str(), stdout);
  if (!json)
    std::printf("run directory %s\n", directory.root().c_str());
  return exit_of(read->table, interrupted, *setup.models.end);
}

exit_code run_command(const run_arguments& arguments) {
  log_to_stderr();
  auto setup = make_run_setup(arguments.settings);
  if (!setup)
    return complain(setup.error());
  for (const auto& one : setup->skipped)
    std::fprintf(stderr, "gristmill: left out: %s\n", one.reason.c_str());
  if (arguments.dry_run) {
    auto text = dry_run_text(
      setup->models, setup->limits.attempts.value_or(0), setup->problems.size(), setup->workers);
    if (!text)
      return complain(text.error());
    std::fputs(text->c_str(), stdout);
    return exit_code::ok;
  }
  if (auto keys = check_keys(setup->models); !keys)
    return complain(keys.error());
  if (auto taken = take_port(*setup); !taken)
    return complain(taken.error());
  auto utc = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  auto directory = open_run_directory(*setup, utc);
  if (!directory)
    return complain(directory.error());
  auto lock = run_lock::take(directory->root());
  if (!lock)
    return complain(lock.error());
  auto log = event_log::open(directory->database_file(), event_log::mode::create);
  if (!log)
    return complain(log.error());
  std::vector<event> first{run_started_event(*setup)};
  if (setup->models.cassette.replay) // Outside the digest: a replay has that of its original.
    first.push_back({.kind = "progress", .reason = "models are not asked: a cassette answers"});
  return work_on_run(
    *setup, *directory, std::move(*log), std::move(first), nullptr, arguments.json);
}

} // namespace gristmill
