#include "actors/cluster_hub.hpp"

#include "messages/choices.hpp"
#include "protocol/nearest.hpp"

namespace gristmill {

cluster_snapshot cluster_hub::snapshot() {
  cluster_snapshot out;
  auto at = now();
  out.run = config_.run;
  out.incarnation = config_.incarnation;
  out.devices_here = config_.devices_here;
  out.compile_slots_here = config_.compile_slots_here;
  out.workers_here = static_cast<uint32_t>(workers_here_.size());
  out.up = at - started_;
  for (const auto& [name, node] : nodes_.all()) {
    node_snapshot one;
    one.node = name;
    one.boot = node.boot;
    one.state = to_string(node.state);
    one.reason = node.reason;
    for (size_t i = 0; i < node.devices.size(); ++i)
      if (!node.left_idle[i].empty())
        one.reason += (one.reason.empty() ? "" : "; ") + node.devices[i].name
          + " is left idle: " + node.left_idle[i];
    if (!node.no_compiles.empty())
      one.reason +=
        (one.reason.empty() ? "" : "; ") + std::string("compiles nothing: ") + node.no_compiles;
    one.devices = node.devices;
    one.compile_slots = node.compile_slots;
    one.compiles_running = node.compiles_running;
    one.workers = static_cast<uint32_t>(node.workers.size());
    one.workers_max = node.workers_max;
    one.tasks_open = node.is_here() ? tasks_.open_of(node.session) : 0;
    one.tasks_done = node.tasks_done;
    one.tasks_failed = node.tasks_failed;
    one.losses = node.losses;
    one.returns = node.returns;
    one.handed_in = node.handed_in;
    one.age = at - node.since;
    if (auto s = stays_.find(node.session); s != stays_.end() && config_.traffic) {
      auto [in, bytes_out] = config_.traffic(caf::actor_cast<caf::actor_addr>(s->second.keeper));
      one.blob_bytes_in = in;
      one.blob_bytes_out = bytes_out;
    }
    out.nodes.push_back(std::move(one));
  }
  return out;
}

cluster_ack cluster_hub::on_command(const cluster_command& what) {
  auto* node = nodes_.by_name(what.node);
  if (!node)
    return {
      false, "there is no node '" + shown(what.node) + "'" + suggestion(what.node, nodes_.names())};
  if (what.verb == cluster_verb::undrain) {
    auto applied = nodes_.undrain(what.node);
    return {
      applied, applied ? "it may offer itself again" : "node '" + what.node + "' is not drained"};
  }
  auto reason = what.reason.empty() ? std::string{"drained by a person"} : shown(what.reason);
  node->drained = true;
  if (!node->is_here())
    return {true, "it is not here; it is not let in before undrain"};
  drain(node->session, reason, true);
  return {true, "what runs there may end; then it is let go"};
}

} // namespace gristmill
