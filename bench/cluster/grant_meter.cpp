// How long the broker takes from another process: joins a rehearsal (`gristmill run … --gpus
// nodes:sleep:…`) as a node without devices and with one worker, which stands in line like the
// others.
//
//   gristmill-bench-grants HOST:PORT [--tls FOLDER] [--name NAME]
//
// Prints `ready` once it has its worker. Then each line on standard input is answered by a line of
// JSON:
//   tickets N   N times into the line and out of it again: from the request to its answer
//   grants N    N leases, each held as long as the device sleeps: from the request to the grant,
//               which is the way alone where a device is free, else the wait for one as well
// Ends with its standard input, or when the run ends.

#include "actors/cluster_port.hpp"
#include "actors/interfaces.hpp"
#include "actors/system_config.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

using wall = std::chrono::steady_clock;

enum class wish { tickets, grants };

/// Between the main thread, which asks for samples, and the worker, which makes them.
class wish_list {
public:
  struct measured {
    std::vector<int64_t> tickets, grants;
  };

  std::future<measured> ask_for(wish what, uint64_t count) {
    std::lock_guard guard(mutex_);
    what_ = what;
    wanted_ = count;
    now_ = {};
    promise_ = {};
    return promise_.get_future();
  }
  /// What is wanted next, if anything.
  std::optional<wish> next() {
    std::lock_guard guard(mutex_);
    if (wanted_ == 0)
      return std::nullopt;
    if ((what_ == wish::tickets ? now_.tickets : now_.grants).size() < wanted_)
      return what_;
    wanted_ = 0;
    promise_.set_value(std::move(now_));
    return std::nullopt;
  }
  void ticket(wall::duration d) { add(now_.tickets, d); }
  void grant(wall::duration d) { add(now_.grants, d); }

private:
  void add(std::vector<int64_t>& to, wall::duration d) {
    std::lock_guard guard(mutex_);
    to.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(d).count());
  }

  std::mutex mutex_;
  wish what_ = wish::tickets;
  uint64_t wanted_ = 0;
  measured now_;
  std::promise<measured> promise_;
};

/// Has one request at a time.
class meter final : public worker_actor::base {
public:
  meter(caf::actor_config& config, const caf::strong_actor_ptr& broker, std::string node,
    wish_list* wishes)
    : worker_actor::base(config), broker_(caf::actor_cast<gpu_lease_actor>(broker)),
      node_(std::move(node)), wishes_(wishes) {}

  behavior_type make_behavior() override {
    look_again();
    return {
      [](const start_working&) {},
      [this](const lease_granted& what, const caf::strong_actor_ptr& executor) {
        if (what.request == request_ && what_ == wish::grants)
          wishes_->grant(wall::now() - asked_);
        // Also one that came while its request was being withdrawn.
        measure_request run;
        run.under = what.granted;
        seam::ask(this, caf::actor_cast<gpu_actor>(executor), run)
          .then([this](const measurement&) { after_grant(); },
            [this](const caf::error&) { after_grant(); });
      },
      [](const lease_ended&) {},
      [](const peer_restarted&, const caf::strong_actor_ptr&) {},
      [this](const tick&) { next(); },
    };
  }
  void on_exit() override { broker_ = nullptr; }

private:
  void look_again() { seam::tell_later(this, 5ms, worker_actor{this}, tick{}); }

  void after_grant() {
    if (what_ == wish::grants)
      next();
  }

  void next() {
    auto wanted = wishes_->next();
    if (!wanted)
      return look_again();
    what_ = *wanted;
    lease_request what;
    what.request = ++request_;
    what.flow = {"meter", node_};
    asked_ = wall::now();
    seam::ask(this, broker_, what)
      .then(
        [this](const lease_ticket&) {
          wishes_->ticket(wall::now() - asked_);
          if (what_ == wish::tickets)
            withdraw();
        },
        [this](const caf::error& error) {
          std::fprintf(stderr, "no ticket: %s\n", seam::show(system(), error).c_str());
          look_again();
        });
  }

  void withdraw() {
    lease_command cancel;
    cancel.verb = lease_verb::cancel;
    cancel.request = request_;
    seam::ask(this, broker_, cancel)
      .then([this](const lease_ack&) { next(); }, [this](const caf::error&) { look_again(); });
  }

  gpu_lease_actor broker_;
  std::string node_;
  wish_list* wishes_;
  wish what_ = wish::tickets;
  uint64_t request_ = 0;
  wall::time_point asked_;
};

/// As much of a node as a rehearsal needs.
class meter_node final : public node_agent_actor::base {
public:
  meter_node(caf::actor_config& config, cluster_hub_actor hub, std::string name, wish_list* wishes,
    std::promise<bool>* ready)
    : node_agent_actor::base(config), hub_(std::move(hub)), name_(std::move(name)), wishes_(wishes),
      ready_(ready) {}

  behavior_type make_behavior() override {
    monitor(hub_);
    set_down_handler([this](caf::down_msg&) { quit(); });
    node_offer what;
    what.node = name_;
    what.boot = std::to_string(getpid());
    what.workers = 1;
    // Nobody fetches anything in a rehearsal, so the agent stands for the keeper as well.
    auto me = caf::actor_cast<caf::strong_actor_ptr>(this);
    seam::tell(this, hub_, what, me, me);
    return {
      [this](const node_welcome& answer, const caf::strong_actor_ptr&) {
        if (!answer.taken) {
          std::fprintf(stderr, "turned away: %s\n", answer.reason.c_str());
          return quit();
        }
        seam::tell(this, hub_, node_ready{});
      },
      [this](const node_task& task) {
        node_answer answer;
        answer.id = task.id;
        seam::tell(this, hub_, answer);
      },
      [](const node_task_cancel&) {},
      [this](const worker_order& order, const worker_peers& peers) {
        if (order.end || worker_)
          return;
        worker_ = system().spawn<meter>(peers.lease, name_, wishes_);
        seam::tell(this, hub_, worker_started{order.index, true, {}},
          caf::actor_cast<caf::strong_actor_ptr>(worker_));
        ready_->set_value(true);
      },
      [](const node_drain&) {},
      [this](const node_farewell&) { quit(); },
      [](const tick&) {},
    };
  }
  void on_exit() override {
    if (worker_)
      send_exit(worker_, caf::exit_reason::user_shutdown);
    else
      ready_->set_value(false);
    worker_ = nullptr;
    hub_ = nullptr;
  }

private:
  cluster_hub_actor hub_;
  std::string name_;
  wish_list* wishes_;
  std::promise<bool>* ready_;
  worker_actor worker_;
};

void print(const wish_list::measured& what) {
  const auto at = [](std::vector<int64_t> ns, double q) {
    std::sort(ns.begin(), ns.end());
    return ns.empty() ? 0.0
                      : double(ns[std::min(ns.size() - 1, size_t(q * double(ns.size())))]) / 1e3;
  };
  std::printf("{\"tickets\":%zu,\"grants\":%zu,\"ticket_p50_us\":%.1f,\"ticket_p99_us\":%.1f,"
              "\"grant_p50_us\":%.1f,"
              "\"grant_p99_us\":%.1f,\"grant_max_us\":%.1f}\n",
    what.tickets.size(), what.grants.size(), at(what.tickets, 0.5), at(what.tickets, 0.99),
    at(what.grants, 0.5), at(what.grants, 0.99), at(what.grants, 1.0));
  std::fflush(stdout);
}

int usage() {
  std::fputs("usage: gristmill-bench-grants HOST:PORT [--tls FOLDER] [--name NAME]\n", stderr);
  return 2;
}

} // namespace

int main(int argc, char** argv) {
  cluster_transport transport;
  std::string name = "meter";
  if (argc < 2 || argc % 2 != 0)
    return usage();
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--tls")
      transport.tls = argv[i + 1];
    else if (flag == "--name")
      name = argv[i + 1];
    else
      return usage();
  }
  auto address = read_cluster_address("HOST:PORT", argv[1], false);
  if (!address) {
    std::fprintf(stderr, "%s\n", address.error().what.c_str());
    return 2;
  }
  wish_list wishes;
  std::promise<bool> ready;
  caf::actor_system_config config;
  configure(config, 2);
  configure_cluster(config, transport);
  caf::actor_system system{config};
  auto door = cluster_connect(system, *address, 10s);
  if (!door) {
    std::fprintf(stderr, "%s\n", door.error().what.c_str());
    return 1;
  }
  auto hub = caf::actor_cast<cluster_hub_actor>(*door);
  *door = nullptr;
  auto agent = system.spawn<meter_node>(hub, name, &wishes, &ready);
  hub = nullptr;
  auto placed = ready.get_future();
  if (placed.wait_for(60s) == std::future_status::ready && placed.get()) {
    std::puts("ready");
    std::fflush(stdout);
    for (std::string line; std::getline(std::cin, line);) {
      const auto space = line.find(' ');
      if (space == std::string::npos)
        break;
      auto answer = wishes.ask_for(line.starts_with("grants") ? wish::grants : wish::tickets,
        std::strtoull(line.c_str() + space, nullptr, 10));
      // The run may end before so many are granted.
      if (answer.wait_for(300s) != std::future_status::ready)
        break;
      print(answer.get());
    }
  } else {
    std::fputs("no worker was placed here\n", stderr);
  }
  caf::anon_send_exit(agent, caf::exit_reason::user_shutdown);
  return 0;
}
