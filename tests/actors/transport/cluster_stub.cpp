// A coordinator and a node of nothing but the transport, for tests that attack it from outside.
//
//   cluster_stub version                         says that of the program
//   cluster_stub init FOLDER NAME...
//   cluster_stub listen ADDRESS TLS_FOLDER|-     says "port N", ends with its standard input
//   cluster_stub join ADDRESS TLS_FOLDER|-       says "joined", then "alive N" ten times a second,
//                                                "lost" when the coordinator is gone, and tries
//                                                again
//   cluster_stub try ADDRESS TLS_FOLDER|-        connects once, says "ok" or the failure

#include "actors/cluster_port.hpp"
#include "actors/system_config.hpp"
#include "actors/transport/certificates.hpp"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <unistd.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

class door : public cluster_door_actor::base {
public:
  explicit door(caf::actor_config& config) : cluster_door_actor::base(config) {}
  behavior_type make_behavior() override {
    return {[](const cluster_hello& hello) {
      auto out = greet(hello);
      // Much longer than the question, so that a peer that reads no answers is soon far behind.
      out.reason.resize(16 * 1024, ' ');
      return out;
    }};
  }
};

int complain(const failure& what) {
  std::printf("%s: %s\n", to_string(what.code).c_str(), what.what.c_str());
  return 2;
}

void wait_for_end_of_input() {
  char byte = 0;
  while (read(0, &byte, 1) > 0)
    continue;
}

int run_listen(caf::actor_system& system, const cluster_address& address) {
  auto hub = system.spawn<door>();
  auto port = cluster_listen(system, hub, address);
  if (port)
    std::printf("port %u\n", *port);
  else
    complain(port.error());
  std::fflush(stdout);
  if (port)
    wait_for_end_of_input();
  cluster_stop_listening(system);
  caf::anon_send_exit(hub, caf::exit_reason::user_shutdown);
  return port ? 0 : 2;
}

int run_once(caf::actor_system& system, const cluster_address& address) {
  auto joined = cluster_connect(system, address, 5s);
  if (!joined)
    return complain(joined.error());
  std::puts("ok");
  return 0;
}

/// Until the coordinator is gone.
result<void> stay_joined(caf::actor_system& system, const cluster_address& address) {
  auto joined = cluster_connect(system, address, 5s);
  if (!joined)
    return pass(joined);
  std::puts("joined");
  caf::scoped_actor self{system};
  self->monitor(*joined);
  bool alive = true;
  for (int n = 1; alive; ++n) {
    self->request(*joined, 2s, cluster_hello{cluster_protocol, cluster_version()})
      .receive([&](const cluster_greeting& answer) { alive = answer.taken; },
        [&](const caf::error&) { alive = false; });
    self->receive([&](const caf::down_msg&) { alive = false; }, caf::after(100ms) >> [] {});
    std::printf(alive ? "alive %d\n" : "lost after %d\n", n);
    std::fflush(stdout);
  }
  return {};
}

int run_join(caf::actor_system& system, const cluster_address& address) {
  while (true) {
    auto over = stay_joined(system, address);
    if (!over) {
      complain(over.error());
      std::fflush(stdout);
      if (over.error().code == errc::refused)
        return 2;
      caf::scoped_actor self{system};
      self->receive([](int) {}, caf::after(200ms) >> [] {});
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "version") {
    std::puts(cluster_version().c_str());
    return 0;
  }
  if (mode == "init" && argc > 2) {
    auto made = make_cluster_folder(argv[2], {{argv + 3, argv + argc}, {}, std::time(nullptr)});
    return made ? 0 : complain(made.error());
  }
  if (argc != 4)
    return 2;
  auto address = read_cluster_address("ADDRESS", argv[2], mode == "listen");
  if (!address)
    return complain(address.error());
  cluster_transport transport;
  transport.heartbeat = 200ms;
  transport.node_timeout = 3s;
  transport.tls = std::string(argv[3]) == "-" ? "" : argv[3];
  const auto side = mode == "listen" ? cluster_side::coordinator : cluster_side::node;
  if (auto good = check_transport(transport, *address, side); !good)
    return complain(good.error());
  caf::actor_system_config config;
  configure(config, 2);
  configure_cluster(config, transport);
  caf::actor_system system{config};
  if (side == cluster_side::coordinator)
    return run_listen(system, *address);
  return mode == "try" ? run_once(system, *address) : run_join(system, *address);
}
