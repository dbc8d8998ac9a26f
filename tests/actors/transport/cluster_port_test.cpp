#include "actors/cluster_port.hpp"
#include "actors/system_config.hpp"
#include "actors/transport/certificates.hpp"
#include "tests/journal/temporary_folder.hpp"

#include <ctime>
#include <doctest/doctest.h>
#include <future>
#include <memory>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

/// Takes everybody, or turns everybody away with this reason.
class door : public cluster_door_actor::base {
public:
  door(caf::actor_config& config, std::string refusal)
    : cluster_door_actor::base(config), refusal_(std::move(refusal)) {}
  behavior_type make_behavior() override {
    return {[this](const cluster_hello& hello) {
      auto out = greet(hello);
      if (!refusal_.empty()) {
        out.taken = false;
        out.reason = refusal_;
      }
      return out;
    }};
  }

private:
  std::string refusal_;
};

/// One process of a cluster, as far as the actor library can tell.
class process {
public:
  explicit process(const std::string& tls = "") {
    cluster_transport transport;
    transport.heartbeat = 100ms;
    transport.node_timeout = 5s;
    transport.tls = tls;
    configure(config_, 2);
    configure_cluster(config_, transport);
    system = std::make_unique<caf::actor_system>(config_);
  }
  ~process() {
    cluster_stop_listening(*system);
    for (const auto& each : doors_)
      caf::anon_send_exit(each, caf::exit_reason::user_shutdown);
  }

  result<uint16_t> listen(const cluster_address& address, const std::string& refusal = "") {
    doors_.push_back(system->spawn<door>(refusal));
    return cluster_listen(*system, doors_.back(), address);
  }

  /// On a port that was taken before.
  result<uint16_t> listen(listening_socket port) {
    doors_.push_back(system->spawn<door>(""));
    return cluster_listen(*system, doors_.back(), {"127.0.0.1", port.port()}, std::move(port));
  }

  result<cluster_door_actor> join(uint16_t port) {
    return cluster_connect(*system, {"127.0.0.1", port}, 10s);
  }

private:
  caf::actor_system_config config_;
  std::vector<cluster_door_actor> doors_;

public:
  std::unique_ptr<caf::actor_system> system;
};

constexpr const char* here = "127.0.0.1";

bool hears_down(caf::actor_system& system, const cluster_door_actor& peer) {
  caf::scoped_actor self{system};
  self->monitor(peer);
  bool down = false;
  self->receive([&](const caf::down_msg&) { down = true; }, caf::after(10s) >> [] {});
  return down;
}

} // namespace

TEST_CASE("a node hears that the coordinator is gone, and joins the next one at the same address") {
  process node;
  uint16_t port = 0;
  result<cluster_door_actor> joined;
  {
    process hub;
    port = hub.listen({here, 0}).value();
    joined = node.join(port);
    REQUIRE_MESSAGE(joined, joined.error().what);
  }
  CHECK(hears_down(*node.system, *joined));
  auto nobody = node.join(port);
  REQUIRE_FALSE(nobody);
  CHECK(nobody.error().code == errc::node_lost);
  process next;
  REQUIRE(next.listen({here, port}).value() == port);
  auto again = node.join(port);
  REQUIRE_MESSAGE(again, again.error().what);
  CHECK(again->node() == next.system->node());
}

TEST_CASE("joining again while the older connection lives makes a new one, and it works") {
  process hub;
  process node;
  const auto port = hub.listen({here, 0}).value();
  for (int i = 0; i < 3; ++i) {
    auto joined = node.join(port);
    REQUIRE_MESSAGE(joined, joined.error().what);
    caf::scoped_actor self{*node.system};
    bool taken = false;
    self->request(*joined, 5s, cluster_hello{cluster_protocol, cluster_version()})
      .receive(
        [&](const cluster_greeting& answer) { taken = answer.taken; }, [](const caf::error&) {});
    CHECK(taken);
  }
}

TEST_CASE("the coordinator's own reason reaches whoever is turned away") {
  process hub;
  process node;
  auto joined = node.join(hub.listen({here, 0}, "the run is over").value());
  REQUIRE_FALSE(joined);
  CHECK(joined.error().code == errc::refused);
  CHECK(joined.error().what.find("the run is over") != std::string::npos);
}

TEST_CASE("a port that is closed is closed, and listening again replaces the first door") {
  process hub;
  process node;
  const auto first = hub.listen({here, 0}).value();
  const auto second = hub.listen({here, 0}, "another door").value();
  CHECK(node.join(first).error().code == errc::node_lost);
  CHECK(node.join(second).error().what.find("another door") != std::string::npos);
  cluster_stop_listening(*hub.system);
  CHECK(node.join(second).error().code == errc::node_lost);
}

TEST_CASE("a port that is taken early is nobody else's, and who comes early is let in later") {
  auto taken = listening_socket::at({here, 0});
  REQUIRE_MESSAGE(taken, taken.error().what);
  const auto port = taken->port();
  auto other = listening_socket::at({here, port});
  REQUIRE_FALSE(other);
  CHECK(other.error().code == errc::invalid_input);
  CHECK(other.error().what.starts_with("--listen 127.0.0.1:" + std::to_string(port)));
  process hub;
  process node;
  CHECK_FALSE(hub.listen({here, port}));
  auto joined = std::async(std::launch::async, [&] { return node.join(port); });
  CHECK(joined.wait_for(100ms) == std::future_status::timeout);
  CHECK(hub.listen(std::move(*taken)).value() == port);
  auto door = joined.get();
  REQUIRE_MESSAGE(door, door.error().what);
  CHECK(door->node() == hub.system->node());
  cluster_stop_listening(*hub.system);
  CHECK_MESSAGE(listening_socket::at({here, port}), "it is free again");
}

TEST_CASE("each process has a node id of its own, however often it is made") {
  process one;
  process other;
  CHECK(one.system->node() != other.system->node());
}

TEST_CASE("a node is called as its certificate says") {
  const temporary_folder folder;
  const auto trust = folder.path / "c";
  REQUIRE(make_cluster_folder(trust, {{"a", "b"}, {}, std::time(nullptr)}));
  process hub{trust / "coordinator"};
  process node{trust / "nodes/a"};
  auto joined = node.join(hub.listen({here, 0}).value());
  REQUIRE_MESSAGE(joined, joined.error().what);
  // A handle knows where it lives, so the node's own stands for what the hub would have.
  caf::scoped_actor of_node{*node.system};
  auto far = caf::actor_cast<caf::strong_actor_ptr>(of_node);
  CHECK(check_node_name(*hub.system, far, "a"));
  CHECK(check_node_name(*hub.system, far, "a-17"));
  auto refused = check_node_name(*hub.system, far, "b");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::refused);
  CHECK(refused.error().what.find("its certificate is of \"a\"") != std::string::npos);
  process stranger;
  caf::scoped_actor unknown{*stranger.system};
  auto lost = check_node_name(*hub.system, caf::actor_cast<caf::strong_actor_ptr>(unknown), "a");
  REQUIRE_FALSE(lost);
  CHECK_MESSAGE(lost.error().code == errc::node_lost, "worth another try");
}

TEST_CASE("a certificate covers its name, and what follows it after a dash or a dot") {
  CHECK(certificate_covers("n1", "n1"));
  CHECK(certificate_covers("slurm", "slurm-17.3"));
  CHECK_FALSE(certificate_covers("n1", "n2"));
  CHECK_FALSE(certificate_covers("n1", "n10"));
  CHECK_FALSE(certificate_covers("n1", "n1-"));
  CHECK_FALSE(certificate_covers("n1", "n"));
}

TEST_CASE("times that cannot work are refused by their flag") {
  const cluster_address loopback{here, 0};
  const auto check = [&](std::chrono::nanoseconds heartbeat, std::chrono::nanoseconds timeout) {
    auto checked = check_transport({heartbeat, timeout, ""}, loopback, cluster_side::node);
    return checked ? std::string() : checked.error().what;
  };
  CHECK(check(1s, 15s).empty());
  CHECK(check(1s, 3s).empty());
  CHECK(check(1s, 2s).find("--node-timeout 2 s") == 0);
  CHECK(check(0s, 15s).find("--heartbeat 0 s") == 0);
  CHECK(check(-1s, 15s).find("--heartbeat") == 0);
  CHECK(check(1s, 7200s).find("--node-timeout") == 0);
  auto open = check_transport({}, {"0.0.0.0", 1}, cluster_side::coordinator);
  REQUIRE_FALSE(open);
  CHECK(open.error().code == errc::invalid_input);
  CHECK(open.error().what.find("gristmill cluster init") != std::string::npos);
  auto missing = check_transport({1s, 15s, "/no/such/folder"}, loopback, cluster_side::node);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().what.find("/no/such/folder/ca.pem") != std::string::npos);
}

TEST_CASE("another protocol or version is greeted with both") {
  CHECK(greet({cluster_protocol, cluster_version()}).taken);
  const auto refused = greet({cluster_protocol + 1, "0.0.9"});
  CHECK_FALSE(refused.taken);
  CHECK(refused.reason.find("0.0.9") != std::string::npos);
  CHECK(refused.reason.find(cluster_version()) != std::string::npos);
}
