#include "actors/blob_keeper.hpp"
#include "actors/child_front.hpp"
#include "actors/reconnect_delay.hpp"
#include "actors/system_config.hpp"
#include "cli/node_setup.hpp"
#include "cli/run_end.hpp"
#include "cli/verb.hpp"
#include "cli/work_on_run.hpp"

#include <CLI/CLI.hpp>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <deque>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <random>
#include <spdlog/spdlog.h>
#include <thread>

namespace gristmill {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds connect_limit{5};

/// News of the agent, from its thread to the main one.
class news_queue {
public:
  void put(const node_news& what) {
    std::lock_guard lock(mutex_);
    all_.push_back(what);
  }
  std::optional<node_news> take() {
    std::lock_guard lock(mutex_);
    if (all_.empty())
      return std::nullopt;
    auto out = std::move(all_.front());
    all_.pop_front();
    return out;
  }

private:
  std::mutex mutex_;
  std::deque<node_news> all_;
};

/// Also as process 1 of a container, where the kernel delivers no signal that nobody waits for.
sigset_t block_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

double in_seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

void say(const std::string& text) {
  std::fprintf(stderr, "gristmill: %s\n", text.c_str());
}

/// Connects, again and again, until the node is to end.
class node_process {
public:
  node_process(node_setup setup, const sigset_t& signals)
    : setup_(std::move(setup)), signals_(signals),
      chance_(std::hash<std::string>{}(setup_.agent.boot)) {}

  exit_code run() {
    loop_starter starter(setup_.children);
    caf::actor_system_config config;
    const auto cores = std::max(1u, std::thread::hardware_concurrency());
    configure(config, std::max(2u, std::min(cores, 8u)));
    configure_cluster(config, setup_.transport);
    exit_code how = exit_code::failure;
    std::optional<watchdog> guard;
    {
      caf::actor_system system{config};
      auto agent_config = setup_.agent;
      agent_config.make_child_front = [&starter](caf::actor_system& in) -> child_front_actor {
        child_front_config front;
        front.starter = &starter;
        return in.spawn<child_front>(front);
      };
      agent_config.make_keeper = [this](caf::actor_system& in) {
        blob_keeper_config keeper;
        keeper.store = setup_.agent.folders.blobs;
        keeper.cache = setup_.agent.cache;
        return start_blob_keeper(in, std::move(keeper));
      };
      agent_config.on_news = [this](const node_news& what) { news_.put(what); };
      agent_ = system.spawn<node_agent>(std::move(agent_config));
      how = stay(system);
      agent_ = nullptr;
      starter.stop();
      guard.emplace();
    }
    std::error_code error; // What is left goes with the next start.
    std::filesystem::remove_all(setup_.agent.folders.directory, error);
    return how;
  }

private:
  /// Waits for the agent's news; a signal is passed on to it meanwhile.
  std::optional<node_news> wait(std::chrono::milliseconds limit) {
    const auto until = std::chrono::steady_clock::now() + limit;
    for (;;) {
      if (auto news = news_.take())
        return news;
      const auto left = until - std::chrono::steady_clock::now();
      if (left <= 0ns)
        return std::nullopt;
      const auto slice = std::min<std::chrono::nanoseconds>(left, 50ms);
      timespec pause{0, static_cast<long>(slice.count())};
      if (const int signal = sigtimedwait(&signals_, nullptr, &pause);
          signal == SIGINT || signal == SIGTERM)
        leave(std::exchange(leaving_, true) ? "at once" : "told to end");
    }
  }

  void leave(const std::string& reason) {
    say(leaving_ && reason == "at once"
        ? "ending at once"
        : "leaving: what measures may end; once more to end at once");
    leaving_ = true;
    seam::post(agent_, drain_request{reason});
  }

  exit_code stay(caf::actor_system& system) {
    for (;;) {
      auto door = cluster_connect(system, setup_.coordinator, connect_limit);
      if (door) {
        heard_last_ = std::chrono::steady_clock::now();
        seam::post(agent_, cluster_greeting{}, caf::actor_cast<caf::strong_actor_ptr>(*door));
        door = fail(errc::node_lost, "");
        if (auto end = while_connected())
          return *end;
      } else if (door.error().code == errc::refused) {
        // Another try would give the same.
        return give_up(door.error().what);
      } else {
        complain_once(door.error().what);
        const auto away = std::chrono::steady_clock::now() - heard_last_;
        if (setup_.give_up_after && away >= *setup_.give_up_after)
          return give_up(fmt::format("no coordinator at {} for {:.1f} s; giving up after {:g} s",
            to_string(setup_.coordinator), in_seconds(away), in_seconds(*setup_.give_up_after)));
      }
      if (auto end = pause())
        return *end;
    }
  }

  exit_code give_up(const std::string& why) {
    say(why);
    seam::post(agent_, drain_request{why});
    while (auto news = wait(connect_limit))
      if (is_last(*news))
        break;
    return exit_code::failure;
  }

  /// Until the agent has no hub any more. The exit code when that is the end.
  std::optional<exit_code> while_connected() {
    for (;;) {
      auto news = wait(1h);
      if (!news)
        continue;
      switch (news->what) { // no default: the compiler reports a missing case
      case node_news::kind::ready:
        delay_.reset();
        complained_.clear();
        say(fmt::format("works for {} at {} as {}", news->text, to_string(setup_.coordinator),
          setup_.agent.node));
        break;
      case node_news::kind::turned_away:
      case node_news::kind::hub_lost:
        heard_last_ = std::chrono::steady_clock::now();
        complain_once(news->text);
        return std::nullopt;
      case node_news::kind::run_over:
        if (!setup_.until_run_ends()) {
          complain_once(news->text);
          return std::nullopt;
        }
        seam::post(agent_, drain_request{news->text});
        break;
      case node_news::kind::left:
        say("left: " + news->text);
        return exit_code::ok;
      case node_news::kind::broken:
        say(news->text);
        return exit_code::failure;
      }
    }
  }

  std::optional<exit_code> pause() {
    const auto until = std::chrono::steady_clock::now() + delay_.next(chance_());
    for (;;) {
      const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      auto news = wait(left);
      if (!news)
        return std::nullopt;
      if (news->what == node_news::kind::left)
        return exit_code::ok;
      if (news->what == node_news::kind::broken) {
        say(news->text);
        return exit_code::failure;
      }
    }
  }

  static bool is_last(const node_news& what) {
    return what.what == node_news::kind::left || what.what == node_news::kind::broken;
  }

  /// A node that waits for days says why once, whatever the numbers in it.
  void complain_once(const std::string& text) {
    auto words = text;
    std::erase_if(words, [](char c) { return c >= '0' && c <= '9'; });
    if (words == complained_)
      return;
    complained_ = words;
    say(text + "; trying again");
  }

  node_setup setup_;
  sigset_t signals_;
  std::mt19937_64 chance_;
  own_node_agent_actor agent_;
  news_queue news_;
  reconnect_delay delay_;
  std::string complained_;
  std::chrono::steady_clock::time_point heard_last_ = std::chrono::steady_clock::now();
  bool leaving_ = false;
};

exit_code node_command(const node_arguments& arguments) {
  log_to_stderr();
  auto signals = block_signals();
  auto setup = make_node_setup(arguments);
  if (!setup)
    return complain(setup.error());
  node_process process(std::move(*setup), signals);
  return process.run();
}

} // namespace

void add_node_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand(
    "node", "give this machine's devices, compilers and places for workers to a run elsewhere");
  auto arguments = std::make_shared<node_arguments>();
  app->add_option("--join", arguments->join, "HOST:PORT of `gristmill run --listen`")->required();
  app->add_option(
    "--tls", arguments->tls, "this node's folder of `gristmill cluster init` (docs/cluster.md)");
  app->add_option("--name", arguments->name, "unique in the cluster; default: the machine's");
  app->add_option("--gpus", arguments->gpus, "as of run: cuda:all, mock:h200:2, sleep:100ms:8");
  app->add_option(
    "--compile-slots", arguments->compile_slots, "compilers at a time; default: half the cores");
  app->add_option("--workers", arguments->workers, "places for workers; default: two a device");
  app->add_flag("--oracle", arguments->oracle, "make inputs and references without a device too");
  app->add_option("--state", arguments->state,
    "folder of this node alone; default: below TMPDIR, kept over starts");
  app->add_option("--cache-max", arguments->cache_max, "cap of the cache of blobs; 8GiB");
  app->add_option("--toolchain", arguments->toolchain, "auto, nvrtc or clang");
  app->add_option("--python", arguments->python, "interpreter of the torch oracle");
  app->add_option("--heartbeat", arguments->heartbeat, "1s; the same on all machines of a cluster");
  app->add_option("--node-timeout", arguments->node_timeout,
    "silence after which the coordinator counts as lost; 15s; the same on all machines");
  app->add_flag("--until-run-ends", arguments->until_run_ends, "end with the run, exit code 0");
  app->add_option("--give-up-after", arguments->give_up_after,
    "with --until-run-ends: how long without a coordinator, before exit code 1; 10m");
  all.push_back({app, [arguments] { return node_command(*arguments); }});
}

} // namespace gristmill
