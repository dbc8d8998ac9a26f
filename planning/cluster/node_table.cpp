#include "planning/cluster/node_table.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

constexpr size_t name_max = 64;
constexpr size_t text_max = 256;

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= name_max
    && std::all_of(text.begin(), text.end(), [](char c) {
         return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
           || c == '_' || c == '.' || c == '-';
       });
}

/// Names of devices become parts of longer ones, and of lines of the log.
bool is_device(const std::string& text) {
  return !text.empty() && text.size() <= name_max
    && std::all_of(text.begin(), text.end(),
      [](char c) { return c > ' ' && c < 127 && c != '/' && c != '"' && c != '\\' && c != '\''; });
}

bool is_short(const std::string& text) {
  return text.size() <= text_max
    && std::none_of(text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; });
}

result<void> check(const node_offer& what, const node_table_limits& limits) {
  if (!is_name(what.node))
    return fail(
      errc::invalid_input, "node: a name has 1 to 64 of the characters A-Z a-z 0-9 _ . -");
  if (!is_name(what.boot))
    return fail(errc::invalid_input, "boot: 1 to 64 of the characters A-Z a-z 0-9 _ . -");
  if (!is_short(what.toolchain) || !is_short(what.run))
    return fail(errc::invalid_input, "toolchain, run: a text is too long or no text");
  if (what.devices.size() > limits.devices_max)
    return fail(errc::invalid_input,
      fmt::format(
        "devices: {}, and at most {} are taken", what.devices.size(), limits.devices_max));
  if (what.held.size() > limits.held_max)
    return fail(errc::invalid_input,
      fmt::format("held: {} results, and at most {} are taken", what.held.size(), limits.held_max));
  std::set<std::string> seen;
  for (const auto& device : what.devices) {
    if (!is_device(device.name))
      return fail(errc::invalid_input, "devices: a name is empty, too long or has odd characters");
    for (const auto* text : {&device.label, &device.model, &device.title, &device.arch})
      if (!is_short(*text))
        return fail(
          errc::invalid_input, "devices: " + device.name + ": a text is too long or no text");
    if (!seen.insert(device.name).second)
      return fail(errc::invalid_input, "devices: " + device.name + " is named twice");
  }
  return {};
}

} // namespace

std::string to_string(node_state state) {
  switch (state) {
  case node_state::joining:
    return "joining";
  case node_state::ready:
    return "ready";
  case node_state::draining:
    return "draining";
  case node_state::lost:
    return "lost";
  }
  return "unknown";
}

std::string device_name_of(const std::string& node, const std::string& device) {
  return node + "/" + device;
}

bool cluster_node::can_measure() const {
  return std::any_of(
    left_idle.begin(), left_idle.end(), [](const std::string& why) { return why.empty(); });
}

node_table::node_table(cluster_needs needs, node_table_limits limits)
  : needs_(std::move(needs)), limits_(limits) {}

std::string node_table::why_not_used(const node_device& device) const {
  if (device.label != needs_.label)
    return fmt::format("it is {}, and the run is about {}", device.label, needs_.label);
  if (!needs_.arch.empty() && device.arch != needs_.arch)
    return fmt::format("it is of {}, and the run is for {}", device.arch, needs_.arch);
  return {};
}

session_id node_table::stay_before(const node_offer& what) const {
  auto known = nodes_.find(what.node);
  bool same = known != nodes_.end() && known->second.is_here() && known->second.boot == what.boot;
  return same ? known->second.session : 0;
}

result<session_id> node_table::offer(const node_offer& what, nanoseconds now) {
  if (auto fine = check(what, limits_); !fine)
    return pass(fine);
  auto known = nodes_.find(what.node);
  if (known == nodes_.end() && nodes_.size() >= limits_.nodes_max && !forget_one())
    return fail(errc::queue_full, fmt::format("the cluster has {} nodes already", nodes_.size()));
  if (known != nodes_.end()) {
    const auto& is = known->second;
    if (is.drained)
      return fail(errc::refused, fmt::format("node '{}' is drained", what.node));
    if (is.is_here())
      return fail(errc::refused,
        fmt::format(
          "a node called '{}' is here already; every node needs a name of its own", what.node));
    if (now < is.kept_out_until)
      return fail(errc::refused,
        fmt::format("node '{}' has failed {} times in a row, the last time: {}; it may come back "
                    "in {:.1f} s",
          what.node, is.failures_in_row, is.reason,
          std::chrono::duration<double>(is.kept_out_until - now).count()));
  }
  auto session = ++last_session_;
  auto& node = nodes_[what.node];
  sessions_[session] = what.node;
  node.name = what.node;
  node.session = session;
  node.boot = what.boot;
  node.state = node_state::joining;
  node.reason.clear();
  node.devices = what.devices;
  node.left_idle.clear();
  for (const auto& device : what.devices)
    node.left_idle.push_back(why_not_used(device));
  node.compile_slots = what.compile_slots;
  node.no_compiles = what.compile_slots == 0 || what.toolchain == needs_.toolchain ? std::string{}
    : needs_.toolchain.empty()
    ? std::string{"the run compiles nothing"}
    : fmt::format("it has {}, and the run compiles with {}",
      what.toolchain.empty() ? "no compiler" : what.toolchain, needs_.toolchain);
  node.workers_max = needs_.workers_may_leave ? what.workers : 0;
  node.workers.clear();
  node.compiles_running = 0;
  node.since = now;
  return session;
}

bool node_table::forget_one() {
  auto oldest = nodes_.end();
  for (auto node = nodes_.begin(); node != nodes_.end(); ++node)
    if (!node->second.is_here() && !node->second.drained
      && (oldest == nodes_.end() || node->second.since < oldest->second.since))
      oldest = node;
  if (oldest == nodes_.end())
    return false;
  nodes_.erase(oldest);
  return true;
}

bool node_table::ready(session_id session, nanoseconds now) {
  auto* node = find(session);
  if (!node || node->state != node_state::joining)
    return false;
  node->state = node_state::ready;
  node->since = now;
  return true;
}

void node_table::lose(session_id session, const std::string& reason, bool failed, nanoseconds now) {
  auto* node = find(session);
  if (!node)
    return;
  node->workers.clear();
  node->compiles_running = 0;
  node->state = node_state::lost;
  node->reason = reason;
  node->since = now;
  ++node->losses;
  if (failed) {
    auto wait = limits_.keep_out;
    for (uint32_t i = 0; i < node->failures_in_row && wait < limits_.keep_out_max; ++i)
      wait *= 2;
    ++node->failures_in_row;
    node->kept_out_until = now + std::min(wait, limits_.keep_out_max);
  }
  sessions_.erase(session);
}

bool node_table::drain(
  session_id session, const std::string& reason, bool by_person, nanoseconds now) {
  auto* node = find(session);
  if (!node)
    return false;
  node->drained = node->drained || by_person;
  if (node->state != node_state::draining)
    node->since = now;
  node->state = node_state::draining;
  node->reason = reason;
  return true;
}

bool node_table::undrain(const std::string& name) {
  auto* node = by_name(name);
  if (!node || !node->drained)
    return false;
  node->drained = false;
  return true;
}

cluster_node* node_table::find(session_id session) {
  auto name = sessions_.find(session);
  return name == sessions_.end() ? nullptr : &nodes_.at(name->second);
}

const cluster_node* node_table::find(session_id session) const {
  auto name = sessions_.find(session);
  return name == sessions_.end() ? nullptr : &nodes_.at(name->second);
}

cluster_node* node_table::by_name(const std::string& name) {
  auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : &found->second;
}

std::vector<std::string> node_table::names() const {
  std::vector<std::string> out;
  for (const auto& [name, node] : nodes_)
    out.push_back(name);
  return out;
}

std::vector<session_id> node_table::with_devices() const {
  std::vector<session_id> out;
  for (const auto& [name, node] : nodes_)
    if (node.state == node_state::ready && node.can_measure())
      out.push_back(node.session);
  return out;
}

result<session_id> node_table::compile_place(
  uint32_t here_running, uint32_t here_slots, const std::set<session_id>& not_at) const {
  bool found = false;
  session_id best = 0;
  uint64_t best_running = 0;
  uint64_t best_slots = 1;
  auto look = [&](session_id place, uint64_t running, uint64_t slots) {
    if (running >= slots || not_at.contains(place))
      return;
    // Load after taking it; compared as fractions, so that no rounding decides.
    if (found && (running + 1) * best_slots >= (best_running + 1) * slots)
      return;
    found = true;
    best = place;
    best_running = running;
    best_slots = slots;
  };
  look(0, here_running, here_slots);
  for (const auto& [name, node] : nodes_)
    if (node.state == node_state::ready && node.no_compiles.empty())
      look(node.session, node.compiles_running, node.compile_slots);
  if (!found)
    return fail(errc::queue_full, "every compiler is busy");
  return best;
}

bool node_table::has_compile_place(bool here, const std::set<session_id>& not_at) const {
  if (here && !not_at.contains(0))
    return true;
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    const auto& node = entry.second;
    return node.state == node_state::ready && node.no_compiles.empty() && node.compile_slots != 0
      && !not_at.contains(node.session);
  });
}

uint32_t node_table::free_worker_places() const {
  size_t free = 0;
  for (const auto& [name, node] : nodes_)
    if (node.state == node_state::ready && node.workers.size() < node.workers_max)
      free += node.workers_max - node.workers.size();
  return static_cast<uint32_t>(std::min<size_t>(free, UINT32_MAX));
}

session_id node_table::worker_place() const {
  const cluster_node* best = nullptr;
  for (const auto& [name, node] : nodes_) {
    if (node.state != node_state::ready || node.workers.size() >= node.workers_max)
      continue;
    if (!best
      || uint64_t{node.workers.size()} * best->workers_max
        < uint64_t{best->workers.size()} * node.workers_max)
      best = &node;
  }
  return best ? best->session : 0;
}

} // namespace gristmill
