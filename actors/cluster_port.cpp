#include "actors/cluster_port.hpp"

#include "actors/cluster_middleman.hpp"
#include "actors/transport/dial.hpp"
#include "actors/transport/tls_folder.hpp"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>

namespace gristmill {

namespace {

join_identity identity_of(const caf::actor_system& system) {
  return {cluster_protocol, cluster_version(), to_string(system.node())};
}

std::string seconds_text(std::chrono::nanoseconds time) {
  return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
}

} // namespace

result<void> check_transport(
  const cluster_transport& transport, const cluster_address& address, cluster_side side) {
  using namespace std::chrono_literals;
  if (transport.heartbeat < 10ms || transport.heartbeat > 60s)
    return fail(errc::invalid_input,
      "--heartbeat " + seconds_text(transport.heartbeat) + ": from 0.01 s to 60 s, such as 1s");
  if (transport.node_timeout < 3 * transport.heartbeat || transport.node_timeout > 3600s)
    return fail(errc::invalid_input,
      "--node-timeout " + seconds_text(transport.node_timeout) + ": at least three heartbeats ("
        + seconds_text(3 * transport.heartbeat) + ") and at most an hour, such as 15s");
  if (transport.tls.empty()) {
    if (!is_loopback(address))
      return fail(errc::invalid_input,
        to_string(address)
          + ": other machines can reach that address, so it needs --tls FOLDER (`gristmill cluster "
            "init` makes one); without TLS only loopback is allowed, such as 127.0.0.1");
    return {};
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  auto loaded = load_tls_folder(transport.tls,
    side == cluster_side::coordinator ? tls_role::coordinator : tls_role::node,
    std::chrono::duration_cast<std::chrono::seconds>(now).count());
  if (!loaded)
    return pass(loaded);
  return {};
}

void configure_cluster(caf::actor_system_config& config, const cluster_transport& transport) {
  load_middleman(config, transport.heartbeat, transport.node_timeout, transport.tls);
}

result<uint16_t> cluster_listen(caf::actor_system& system, const cluster_door_actor& door,
  const cluster_address& address, std::optional<listening_socket> taken) {
  auto* middleman = cluster_middleman::of(system);
  assert(middleman);
  gate_settings settings;
  settings.address = address;
  settings.tls = middleman->tls();
  settings.ours = identity_of(system);
  auto gate = cluster_gate::open(std::move(settings), std::move(taken));
  if (!gate)
    return pass(gate);
  const auto port = (*gate)->port();
  auto published = middleman->publish(
    caf::actor_cast<caf::strong_actor_ptr>(door), system.message_types(door), std::move(*gate));
  if (!published)
    return pass(published);
  return port;
}

void cluster_stop_listening(caf::actor_system& system) {
  if (auto* middleman = cluster_middleman::of(system); middleman && middleman->gate())
    (void)middleman->publish(nullptr, {}, nullptr);
}

namespace {

result<cluster_door_actor> connect_once(caf::actor_system& system, cluster_middleman& middleman,
  const cluster_address& address, std::chrono::nanoseconds left, bool& premature) {
  const auto name = to_string(address);
  const auto begun = std::chrono::steady_clock::now();
  const auto rest = [&] {
    const auto used = std::chrono::steady_clock::now() - begun;
    return std::max<std::chrono::nanoseconds>(std::chrono::milliseconds{1}, left - used);
  };
  // The older connection first: while it is there, the new one counts as a second way to the same
  // process and is given up.
  middleman.detach(name);
  auto line = dial({address, middleman.tls(), identity_of(system)}, left);
  if (!line)
    return pass(line);
  using door_handle = caf::detail::type_list<cluster_door_actor>;
  auto found =
    middleman.attach(*line, name, system.message_types(door_handle{}), rest(), premature);
  if (!found)
    return pass(found);
  auto door = caf::actor_cast<cluster_door_actor>(*found);
  caf::scoped_actor self{system};
  result<cluster_door_actor> out = door;
  self->request(door, caf::timespan{rest()}, cluster_hello{cluster_protocol, cluster_version()})
    .receive(
      [&](const cluster_greeting& answer) {
        if (!answer.taken)
          out = fail(errc::refused, name + ": " + answer.reason);
      },
      [&](const caf::error& error) {
        out = fail(error == caf::sec::request_timeout ? errc::timed_out : errc::node_lost,
          name + ": no answer to our hello: " + seam::show(system, error));
      });
  if (!out)
    middleman.detach(name);
  return out;
}

} // namespace

result<cluster_door_actor> cluster_connect(
  caf::actor_system& system, const cluster_address& address, std::chrono::nanoseconds deadline) {
  auto* middleman = cluster_middleman::of(system);
  assert(middleman);
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (true) {
    bool premature = false;
    auto out =
      connect_once(system, *middleman, address, end - std::chrono::steady_clock::now(), premature);
    if (out || !premature || std::chrono::steady_clock::now() >= end)
      return out;
  }
}

result<void> check_node_name(
  caf::actor_system& system, const caf::strong_actor_ptr& peer, std::string_view node) {
  auto* middleman = cluster_middleman::of(system);
  if (!middleman || middleman->tls().empty() || !peer || peer->node() == system.node())
    return {};
  auto gate = middleman->gate();
  const auto names = gate ? gate->names_of(to_string(peer->node())) : std::vector<std::string>{};
  if (names.empty())
    return fail(errc::node_lost,
      "node \"" + std::string(node) + "\": its process is not the one that its connection named");
  for (const auto& certified : names)
    if (!certificate_covers(certified, node))
      return fail(errc::refused,
        "node \"" + std::string(node) + "\": its certificate is of \"" + certified
          + "\"; a node is called as its certificate says, or that and something after '-' or '.' "
            "(--name)");
  return {};
}

bool certificate_covers(std::string_view certified, std::string_view node) {
  if (certified == node)
    return true;
  return node.size() > certified.size() + 1 && node.starts_with(certified)
    && (node[certified.size()] == '-' || node[certified.size()] == '.');
}

std::string cluster_version() {
  // Read when it is asked for, so that it is a text in the program and no part of an instruction:
  // bench/cluster makes a program of another version by changing it.
  static const char* const volatile text = GRISTMILL_VERSION;
  return text;
}

cluster_greeting greet(const cluster_hello& hello) {
  cluster_greeting out;
  out.protocol = cluster_protocol;
  out.version = cluster_version();
  out.taken = hello.protocol == cluster_protocol && hello.version == out.version;
  if (!out.taken)
    out.reason =
      version_mismatch({out.protocol, out.version, {}}, {hello.protocol, hello.version, {}});
  return out;
}

} // namespace gristmill
