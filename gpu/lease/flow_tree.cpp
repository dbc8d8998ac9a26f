#include "gpu/lease/flow_tree.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// More idle flows than this are not remembered, whatever the rule would lose by it.
constexpr size_t flows_max = 65'536;

} // namespace

std::string to_string(flow_part part) {
  switch (part) {
  case flow_part::klass:
    return "class";
  case flow_part::problem:
    return "problem";
  case flow_part::agent:
    return "agent";
  }
  return "?";
}

flow_tree::flow_tree(std::string label, flow_part by, std::shared_ptr<const flow_rule> rule,
  std::shared_ptr<const child_factory> make_child)
  : label_(std::move(label)), by_(by), rule_(std::move(rule)), make_child_(std::move(make_child)) {}

std::string flow_tree::flow_of(const waiter& w) const {
  switch (by_) {
  case flow_part::klass:
    return to_string(w.what);
  case flow_part::problem:
    return w.flow.problem;
  case flow_part::agent:
    return w.flow.agent;
  }
  return {};
}

flow_tree::flow_map::iterator flow_tree::flow_named(const std::string& name) {
  auto [it, is_new] = flows_.try_emplace(name);
  if (is_new)
    it->second.child.policy = (*make_child_)();
  return it;
}

void flow_tree::reorder(flow_map::iterator flow) {
  auto& [name, f] = *flow;
  for (auto& [need, queue] : f.waiting) {
    const auto& [ticket, arrived] = *queue.tickets.begin();
    auto key = rule_->key(f.account, name, {ticket, arrived});
    if (key == queue.key)
      continue;
    auto& order = ready_[need];
    auto node = order.extract({queue.key, name});
    queue.key = key;
    if (node.empty()) {
      order.emplace(key, name);
    } else {
      node.value().first = key;
      order.insert(std::move(node));
    }
  }
}

void flow_tree::on_request(const waiter& w) {
  auto [ticket, is_new] = tickets_.try_emplace(w.ticket);
  if (!is_new)
    return;
  auto flow = flow_named(flow_of(w));
  auto& [name, f] = *flow;
  ticket->second = {name, w.need, {w.est_hold, w.weight, {}, 0}, false};
  f.account.weight = std::max<uint32_t>(w.weight, 1);
  if (f.waiting.empty())
    rule_->on_join(clock_, f.account);
  auto [queue, first] = f.waiting.try_emplace(w.need);
  queue->second.tickets.emplace(w.ticket, w.arrived);
  if (first) {
    const auto& [oldest, arrived] = *queue->second.tickets.begin();
    queue->second.key = rule_->key(f.account, name, {oldest, arrived});
    ready_[w.need].emplace(queue->second.key, name);
  }
  reorder(flow);
  f.child.policy->on_request(w);
}

void flow_tree::leave_queue(flow_map::iterator flow, uint64_t ticket, need_id need) {
  auto& [name, f] = *flow;
  auto queue = f.waiting.find(need);
  queue->second.tickets.erase(ticket);
  if (!queue->second.tickets.empty())
    return;
  auto order = ready_.find(need);
  order->second.erase({queue->second.key, name});
  if (order->second.empty())
    ready_.erase(order);
  f.waiting.erase(queue);
}

void flow_tree::on_cancel(uint64_t ticket) {
  auto it = tickets_.find(ticket);
  if (it == tickets_.end() || it->second.running)
    return;
  auto flow = flow_named(it->second.flow);
  leave_queue(flow, ticket, it->second.need);
  flow->second.child.policy->on_cancel(ticket);
  reorder(flow);
  tickets_.erase(it);
  forget_idle_flows();
}

void flow_tree::on_grant(uint64_t ticket, uint32_t gpu, std::chrono::nanoseconds now) {
  auto it = tickets_.find(ticket);
  if (it == tickets_.end() || it->second.running)
    return;
  auto& entry = it->second;
  auto flow = flow_named(entry.flow);
  auto& f = flow->second;
  auto key = f.waiting.at(entry.need).key;
  leave_queue(flow, ticket, entry.need);
  entry.running = true;
  ++f.running;
  entry.lease.granted_at = now;
  entry.lease.charged = rule_->on_grant(clock_, f.account, entry.lease, key);
  reorder(flow);
  f.child.policy->on_grant(ticket, gpu, now);
}

void flow_tree::on_release(
  const lease_usage& usage, std::string_view reason, std::chrono::nanoseconds now) {
  auto it = tickets_.find(usage.ticket);
  if (it == tickets_.end() || !it->second.running)
    return;
  auto flow = flow_named(it->second.flow);
  auto& f = flow->second;
  --f.running;
  rule_->on_release(clock_, f.account, it->second.lease, usage.held, now);
  reorder(flow);
  f.child.policy->on_release(usage, reason, now);
  tickets_.erase(it);
  forget_idle_flows();
}

std::optional<uint64_t> flow_tree::pick(const gpu_offer& offer, std::chrono::nanoseconds now) {
  const std::pair<flow_key, std::string>* best = nullptr;
  for (const auto& [need, order] : ready_)
    if ((offer.fits >> need & 1) != 0 && (best == nullptr || *order.begin() < *best))
      best = &*order.begin();
  if (best == nullptr)
    return std::nullopt;
  // Something of this flow fits, so its policy names somebody.
  return flows_.find(best->second)->second.child.policy->pick(offer, now);
}

void flow_tree::forget_idle_flows() {
  if (flows_.size() < sweep_at_)
    return;
  auto idle = [](const flow_entry& f) { return f.waiting.empty() && f.running == 0; };
  std::erase_if(flows_, [&](const auto& item) {
    return idle(item.second) && rule_->forgettable(clock_, item.second.account);
  });
  if (flows_.size() >= flows_max) {
    // The smaller the account, the less it differs from a newcomer's.
    std::vector<std::pair<wide, std::string>> left;
    for (const auto& [name, f] : flows_)
      if (idle(f))
        left.emplace_back(f.account.value, name);
    std::sort(left.begin(), left.end());
    left.resize(std::min(left.size(), flows_.size() - flows_max / 2));
    for (const auto& [value, name] : left)
      flows_.erase(name);
  }
  sweep_at_ =
    std::clamp<size_t>(2 * flows_.size(), 4096, std::max(flows_max, flows_.size() + 4096));
}

std::unique_ptr<lease_policy> flow_tree::clone() const {
  // The children are all of one kind.
  if (!flows_.empty() && flows_.begin()->second.child.policy->clone() == nullptr)
    return nullptr;
  return std::make_unique<flow_tree>(*this);
}

std::string flow_tree::header() const {
  return state_hex(fmt::format("by={} {}", to_string(by_), rule_->text()));
}

std::string flow_tree::save() const {
  std::string out = fmt::format(
    "level 1 {} {} {} {}\n", header(), state_number(clock_.value), clock_.count, flows_.size());
  for (const auto& [name, f] : flows_) {
    auto child = f.child.policy->save();
    out += fmt::format("flow {} {} {} {} {}\n", state_hex(name), state_number(f.account.value),
      f.account.turn, f.account.weight, child.size());
    out += child;
    out += '\n';
  }
  return out;
}

result<void> flow_tree::load(std::string_view text) {
  if (!tickets_.empty())
    return fail(errc::refused,
      fmt::format(
        "the state of lease policy '{}' is loaded before any request", label_.substr(0, 80)));
  state_reader in(text, label_);
  auto bad = [&]() -> result<void> { return tl::unexpected<failure>(in.damaged()); };
  if (!in.next_line() || !in.word("level") || !in.word("1") || !in.word(header()))
    return bad();
  auto value = in.number();
  auto count = in.natural();
  auto flow_count = in.natural(uint64_t{1} << 24);
  if (!value || !count || !flow_count || !in.line_done())
    return bad();
  flow_map flows;
  for (uint64_t i = 0; i < *flow_count; ++i) {
    if (!in.next_line() || !in.word("flow"))
      return bad();
    auto name = in.hex();
    auto charged = in.number();
    auto turn = in.natural();
    auto weight = in.natural(UINT32_MAX);
    auto bytes = in.natural(text.size());
    if (!name || !charged || !turn || !weight || *weight == 0 || !bytes || !in.line_done())
      return bad();
    auto child = in.block(*bytes);
    auto [flow, is_new] = flows.try_emplace(*name);
    if (!child || !is_new)
      return bad();
    flow->second.account = {*charged, *turn, static_cast<uint32_t>(*weight)};
    flow->second.child.policy = (*make_child_)();
    if (auto loaded = flow->second.child.policy->load(*child); !loaded)
      return loaded;
  }
  if (!in.at_end())
    return bad();
  clock_ = {*value, *count};
  flows_ = std::move(flows);
  return {};
}

} // namespace gristmill
