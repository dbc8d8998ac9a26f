#include "cli/mcp_server.hpp"
#include "cli/run_actors.hpp"
#include "cli/run_end.hpp"
#include "cli/verb.hpp"
#include "cli/whole_number.hpp"
#include "cli/work_on_run.hpp"

#include "actors/system_config.hpp"
#include "journal/run_lock.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <spdlog/spdlog.h>
#include <thread>
#include <unistd.h>

namespace gristmill {

namespace {

using namespace std::chrono_literals;

/// Agents come and go for hours; what a run may use is the user's to say.
constexpr const char* default_budget = "24h";
/// From the first actor to the planner.
constexpr auto start_limit = 30s;
/// After the last client: attempts in flight may end.
constexpr auto drain_grace = 30s;

struct mcp_arguments {
  run_settings settings;
  std::string seed;
  std::string workers;
};

int64_t wall_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
    std::chrono::system_clock::now().time_since_epoch())
    .count();
}

/// The factories, with a note of who was made.
run_factories noted(run_factories make, std::shared_ptr<tool_peers> peers, run_context_ptr context,
  const std::string& toolchain) {
  auto planner = make.planner;
  make.planner = [planner, peers, context, toolchain](
                   caf::actor_system& system, const run_peers& all) {
    auto made = planner(system, all);
    agent_tools_config config;
    config.context = context;
    config.compiler = all.compiler;
    config.child_front = all.child_front;
    config.toolchain = toolchain;
    auto tools = system.spawn<agent_tools>(std::move(config));
    std::lock_guard lock(peers->mutex);
    peers->planner = made;
    peers->tools = tools;
    peers->journal = all.journal;
    peers->run_start = all.run_start;
    peers->filled.notify_all();
    return made;
  };
  auto compiler = make.compiler;
  make.compiler = [compiler, peers](caf::actor_system& system, const run_peers& all) {
    auto made = compiler(system, all);
    std::lock_guard lock(peers->mutex);
    if (peers->tools)
      seam::post(
        peers->tools, peer_restarted{role::compiler}, caf::actor_cast<caf::strong_actor_ptr>(made));
    return made;
  };
  return make;
}

/// Waits until the run has its planner, for a client may ask before that. A run that fails at its
/// start has none.
void wait_for_start(tool_peers& peers, run_end& end) {
  const auto due = std::chrono::steady_clock::now() + start_limit;
  std::unique_lock lock(peers.mutex);
  while (!peers.planner && !end.get() && std::chrono::steady_clock::now() < due)
    peers.filled.wait_for(lock, 20ms);
}

/// Ends what is no part of the run, and lets go of the rest.
void forget(tool_peers& peers) {
  std::lock_guard lock(peers.mutex);
  if (peers.tools)
    caf::anon_send_exit(peers.tools, caf::exit_reason::user_shutdown);
  peers.planner = nullptr;
  peers.tools = nullptr;
  peers.journal = nullptr;
}

/// Waits until the run has ended, and ends it by force at a signal or when it takes too long.
void wait_for_end(const supervisor_actor& owner, run_end& end, const sigset_t& interrupts) {
  const auto due = std::chrono::steady_clock::now() + drain_grace;
  bool forced = false;
  while (!end.get()) {
    timespec wait{0, 20'000'000};
    const bool interrupted = sigtimedwait(&interrupts, nullptr, &wait) > 0;
    if (!forced && (interrupted || std::chrono::steady_clock::now() > due)) {
      forced = true;
      // The second one ends the run at once.
      seam::post(owner, drain_request{interrupted ? "interrupted" : "attempts took too long"});
    }
  }
}

exit_code serve_run(const run_setup& setup, event_log log, const sigset_t& interrupts) {
  auto context = std::make_shared<const run_context>(setup.context);
  auto watch = std::make_shared<run_watch>();
  auto peers = std::make_shared<tool_peers>();
  run_end end;
  loop_starter starter(child_limits(setup, std::max(1u, std::thread::hardware_concurrency())));
  std::optional<watchdog> guard;
  caf::actor_system_config config;
  configure(config, std::max(2u, std::min(std::thread::hardware_concurrency(), 8u)));
  auto how = mcp_server::ending::input_closed;
  {
    caf::actor_system system{config};
    supervisor_config owned;
    auto incarnation = log.incarnation();
    owned.make =
      noted(real_actors(setup, context, watched(make_event_sink(std::move(log), wall_now), watch),
              &starter, incarnation),
        peers, context, setup.settings.toolchain);
    owned.gpus = setup.gpu_count;
    owned.workers = setup.workers;
    owned.on_end = [&end, peers](const run_ended& what) {
      end.set(what);
      forget(*peers);
    };
    auto owner = system.spawn<supervisor>(std::move(owned));
    seam::post(owner, start_working{});
    tool_run run{&setup, context, &system, peers, watch, setup.models.program.get(),
      setup.models.docs.get(), [&end] {
        auto what = end.get();
        return what ? what->reason : std::string{};
      }};
    mcp_tools tools(std::move(run));
    wait_for_start(*peers, end);
    {
      mcp_server server(mcp_session(tools.catalogue()), tools, STDIN_FILENO, STDOUT_FILENO);
      how = server.serve(interrupts);
    }
    planner_actor planner;
    {
      std::lock_guard lock(peers->mutex);
      planner = peers->planner;
    }
    if (planner)
      seam::post(planner, plant_close{"the client has gone"});
    planner = nullptr;
    const auto* why =
      how == mcp_server::ending::interrupted ? "interrupted" : "the client has gone";
    seam::post(owner, drain_request{why});
    wait_for_end(owner, end, interrupts);
    forget(*peers);
    owner = nullptr;
    starter.stop();
    guard.emplace();
  }
  if (auto what = end.get(); what && !what->clean) {
    std::fprintf(stderr, "gristmill: the run ended early: %s\n", what->reason.c_str());
    return how == mcp_server::ending::interrupted ? exit_code::interrupted : exit_code::failure;
  }
  return how == mcp_server::ending::interrupted ? exit_code::interrupted : exit_code::ok;
}

exit_code mcp_command(const mcp_arguments& arguments) {
  log_to_stderr();
  auto settings = arguments.settings;
  if (settings.budget.empty())
    settings.budget = {default_budget};
  auto setup = make_open_setup(settings);
  if (!setup)
    return complain(setup.error());
  if (setup->rehearsal)
    return complain({errc::invalid_input,
      "--gpus " + settings.gpus + ": runs no kernel, so there is nothing for an agent to measure"});
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
  sigset_t interrupts;
  sigemptyset(&interrupts);
  sigaddset(&interrupts, SIGINT);
  sigaddset(&interrupts, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &interrupts, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  const std::vector<event> first{run_started_event(*setup)};
  if (auto begun = log->append(first, durability::barrier, wall_now()); !begun)
    return complain(begun.error());
  std::fprintf(stderr, "run directory %s\n", directory->root().c_str());
  auto code = serve_run(*setup, std::move(*log), interrupts);
  if (auto removed = directory->remove_scratch(); !removed)
    spdlog::warn("{}", removed.error().what);
  return code;
}

} // namespace

void add_mcp_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand(
    "mcp", "serve a run to a coding agent over the Model Context Protocol, on stdin and stdout");
  auto arguments = std::make_shared<mcp_arguments>();
  auto& s = arguments->settings;
  app->add_option("problems", s.problems, "problem folders or built-in names; `built-in` for all");
  app->add_option("--gpus", s.gpus, "devices, such as mock:h200:2")->capture_default_str();
  app->add_option("--budget", s.budget, "when the run ends, such as 2h or 500attempts; default 24h")
    ->expected(1)
    ->allow_extra_args(false)
    ->take_all();
  app->add_option("--out", s.out, "run directory, which must not exist");
  app->add_option("--seed", arguments->seed, "of inputs and search");
  app->add_option("--workers", arguments->workers, "attempts at the same time; default: by GPUs");
  app->add_option("--program", s.program, "the protocol file; default: the one that comes along");
  app->add_option("--docs", s.docs, "a folder of documentation that the agent may search");
  app->add_option("--toolchain", s.toolchain, "auto, nvrtc or clang")->capture_default_str();
  app->add_option("--bounds", s.bounds, "table of T_SOL and T_b");
  app->add_option("--oracle", s.oracle, "auto, native or torch")->capture_default_str();
  app->add_option("--python", s.python, "interpreter of the torch oracle")->capture_default_str();
  all.push_back({app, [arguments] {
                   if (!arguments->seed.empty()) {
                     auto seed = whole_number("--seed", arguments->seed, 0, UINT64_MAX);
                     if (!seed)
                       return complain(seed.error());
                     arguments->settings.seed = *seed;
                   }
                   if (!arguments->workers.empty()) {
                     auto workers = whole_number("--workers", arguments->workers, 1, 1024);
                     if (!workers)
                       return complain(workers.error());
                     arguments->settings.workers = static_cast<uint32_t>(*workers);
                   }
                   return mcp_command(*arguments);
                 }});
}

} // namespace gristmill
