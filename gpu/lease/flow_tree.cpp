#include "gpu/lease/flow_tree.hpp"

#include "gpu/lease/class_word.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// More idle flows than this are not remembered, whatever the rule would lose by it.
constexpr size_t flows_max = 65'536;

/// What a fifo policy saves: it has no state.
constexpr std::string_view fifo_state = "fifo 1\n";

uint64_t hash_of(std::string_view name) {
  return std::hash<std::string_view>{}(name);
}

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

std::string_view flow_tree::flow_of(const waiter& w) const {
  switch (by_) {
  case flow_part::klass:
    return class_word(w.what);
  case flow_part::problem:
    return w.flow.problem;
  case flow_part::agent:
    return w.flow.agent;
  }
  return {};
}

// --- slots -----------------------------------------------------------------------------------

uint32_t flow_tree::find_flow(std::string_view name) const {
  return by_name_.find(hash_of(name), [&](uint32_t flow) { return flows_[flow].name == name; });
}

uint32_t flow_tree::flow_named(std::string_view name) {
  auto flow = find_flow(name);
  if (flow != flat_index::none)
    return flow;
  flow = static_cast<uint32_t>(flows_.size());
  if (vacant_flows_.empty()) {
    flows_.emplace_back();
  } else {
    flow = vacant_flows_.back();
    vacant_flows_.pop_back();
  }
  flows_[flow].name = name;
  flows_[flow].used = true;
  if (make_child_)
    flows_[flow].child.policy = (*make_child_)();
  by_name_.insert(hash_of(name), flow);
  return flow;
}

void flow_tree::forget_flow(uint32_t flow) {
  by_name_.erase(hash_of(flows_[flow].name), flow);
  flows_[flow] = {};
  vacant_flows_.push_back(flow);
}

uint32_t flow_tree::busy_place(uint32_t flow) {
  auto& busy = flows_[flow].busy;
  if (busy != flat_index::none)
    return busy;
  if (vacant_busy_.empty()) {
    busy = static_cast<uint32_t>(busy_.size());
    busy_.emplace_back();
  } else {
    busy = vacant_busy_.back();
    vacant_busy_.pop_back();
  }
  busy_[busy].flow = flow;
  return busy;
}

void flow_tree::rest(uint32_t flow) {
  auto& busy = flows_[flow].busy;
  if (busy_[busy].waiting != 0 || busy_[busy].running != 0)
    return;
  vacant_busy_.push_back(busy);
  busy = flat_index::none;
}

void flow_tree::forget_ticket(uint64_t ticket, uint32_t slot) {
  by_ticket_.erase(mixed(ticket), slot);
  tickets_[slot].running = false;
  vacant_tickets_.push_back(slot);
}

std::vector<uint32_t> flow_tree::sorted_flows() const {
  std::vector<uint32_t> out;
  out.reserve(by_name_.size());
  for (uint32_t flow = 0; flow < flows_.size(); ++flow)
    if (flows_[flow].used)
      out.push_back(flow);
  std::sort(out.begin(), out.end(),
    [this](uint32_t a, uint32_t b) { return flows_[a].name < flows_[b].name; });
  return out;
}

// --- queues ----------------------------------------------------------------------------------

flow_tree::need_queue& flow_tree::queue_of(busy_flow& f, need_id need) {
  for (auto& queue : f.queues)
    if (queue.need == need)
      return queue;
  return f.queues.emplace_back(need_queue{need, {}});
}

indexed_heap<flow_key>& flow_tree::order_of(need_id need) {
  for (auto& order : ready_)
    if (order.need == need)
      return order.flows;
  return ready_.emplace_back(need_order{need, {}}).flows;
}

void flow_tree::reorder(uint32_t flow) {
  const auto& f = flows_[flow];
  if (busy_[f.busy].waiting == 0)
    return;
  for (auto& queue : busy_[f.busy].queues) {
    if (queue.tickets.empty())
      continue;
    const auto& [ticket, arrived] = queue.tickets.front().key;
    auto key = rule_->key(f.account, f.name, {ticket, arrived});
    auto& order = order_of(queue.need);
    if (auto before = order.key_of(f.busy); before == nullptr || *before != key)
      order.set(f.busy, key, goes_before());
  }
}

void flow_tree::on_request(const waiter& w) {
  if (find_ticket(w.ticket) != flat_index::none)
    return;
  auto flow = flow_named(flow_of(w));
  auto& f = flows_[flow];
  auto& busy = busy_[busy_place(flow)];
  auto slot = static_cast<uint32_t>(tickets_.size());
  if (vacant_tickets_.empty()) {
    tickets_.emplace_back();
  } else {
    slot = vacant_tickets_.back();
    vacant_tickets_.pop_back();
  }
  auto& ticket = tickets_[slot];
  ticket.flow = flow;
  ticket.need = w.need;
  ticket.lease = {w.est_hold, w.weight, {}, 0};
  by_ticket_.insert(mixed(w.ticket), slot);
  f.account.weight = std::max<uint32_t>(w.weight, 1);
  if (busy.waiting == 0)
    rule_->on_join(clock_, f.account);
  ++busy.waiting;
  queue_of(busy, w.need).tickets.push({{w.ticket, w.arrived}, slot, ticket.version});
  reorder(flow);
  if (f.child.policy)
    f.child.policy->on_request(w);
}

void flow_tree::leave_queue(ticket_entry& ticket) {
  auto place = flows_[ticket.flow].busy;
  ++ticket.version;
  --busy_[place].waiting;
  auto& queue = queue_of(busy_[place], ticket.need).tickets;
  queue.removed([&](const auto& e) { return tickets_[e.slot].version == e.version; });
  if (queue.empty())
    order_of(ticket.need).erase(place, goes_before());
}

void flow_tree::on_cancel(uint64_t ticket) {
  auto slot = find_ticket(ticket);
  if (slot == flat_index::none || tickets_[slot].running)
    return;
  auto flow = tickets_[slot].flow;
  leave_queue(tickets_[slot]);
  if (auto& child = flows_[flow].child.policy)
    child->on_cancel(ticket);
  reorder(flow);
  rest(flow);
  forget_ticket(ticket, slot);
  forget_idle_flows();
}

void flow_tree::on_grant(uint64_t ticket, uint32_t gpu, std::chrono::nanoseconds now) {
  auto slot = find_ticket(ticket);
  if (slot == flat_index::none || tickets_[slot].running)
    return;
  auto& entry = tickets_[slot];
  auto& f = flows_[entry.flow];
  auto key = *order_of(entry.need).key_of(f.busy);
  leave_queue(entry);
  entry.running = true;
  ++busy_[f.busy].running;
  entry.lease.granted_at = now;
  entry.lease.charged = rule_->on_grant(clock_, f.account, entry.lease, key);
  reorder(entry.flow);
  if (f.child.policy)
    f.child.policy->on_grant(ticket, gpu, now);
}

void flow_tree::on_release(
  const lease_usage& usage, std::string_view reason, std::chrono::nanoseconds now) {
  auto slot = find_ticket(usage.ticket);
  if (slot == flat_index::none || !tickets_[slot].running)
    return;
  auto flow = tickets_[slot].flow;
  auto& f = flows_[flow];
  --busy_[f.busy].running;
  rule_->on_release(clock_, f.account, tickets_[slot].lease, usage.held, now);
  reorder(flow);
  if (f.child.policy)
    f.child.policy->on_release(usage, reason, now);
  rest(flow);
  forget_ticket(usage.ticket, slot);
  forget_idle_flows();
}

std::optional<uint64_t> flow_tree::pick(const gpu_offer& offer, std::chrono::nanoseconds now) {
  const indexed_heap<flow_key>::item* best = nullptr;
  auto before = goes_before();
  for (const auto& [need, order] : ready_) {
    if ((offer.fits >> need & 1) == 0 || order.empty())
      continue;
    const auto& first = order.top();
    if (best == nullptr || before(first.key, first.id, best->key, best->id))
      best = &first;
  }
  if (best == nullptr)
    return std::nullopt;
  // Something of this flow fits, so its policy names somebody.
  const auto& busy = busy_[best->id];
  if (const auto& child = flows_[busy.flow].child.policy)
    return child->pick(offer, now);
  std::optional<uint64_t> oldest;
  for (const auto& queue : busy.queues)
    if ((offer.fits >> queue.need & 1) != 0 && !queue.tickets.empty())
      oldest = std::min(oldest.value_or(UINT64_MAX), queue.tickets.front().key.first);
  return oldest;
}

void flow_tree::forget_idle_flows() {
  if (by_name_.size() < sweep_at_)
    return;
  for (auto flow : sorted_flows())
    if (idle(flows_[flow]) && rule_->forgettable(clock_, flows_[flow].account))
      forget_flow(flow);
  if (by_name_.size() >= flows_max) {
    // The smaller the account, the less it differs from a newcomer's.
    std::vector<uint32_t> left;
    for (auto flow : sorted_flows())
      if (idle(flows_[flow]))
        left.push_back(flow);
    std::stable_sort(left.begin(), left.end(),
      [this](uint32_t a, uint32_t b) { return flows_[a].account.value < flows_[b].account.value; });
    left.resize(std::min(left.size(), by_name_.size() - flows_max / 2));
    for (auto flow : left)
      forget_flow(flow);
  }
  sweep_at_ =
    std::clamp<size_t>(2 * by_name_.size(), 4096, std::max(flows_max, by_name_.size() + 4096));
}

// --- copies and the saved state ---------------------------------------------------------------

std::unique_ptr<lease_policy> flow_tree::clone() const {
  // The children are all of one kind.
  auto any = std::find_if(
    flows_.begin(), flows_.end(), [](const flow_entry& f) { return f.child.policy != nullptr; });
  if (any != flows_.end() && any->child.policy->clone() == nullptr)
    return nullptr;
  return std::make_unique<flow_tree>(*this);
}

std::string flow_tree::header() const {
  return state_hex(fmt::format("by={} {}", to_string(by_), rule_->text()));
}

std::string flow_tree::save() const {
  std::string out = fmt::format(
    "level 1 {} {} {} {}\n", header(), state_number(clock_.value), clock_.count, by_name_.size());
  for (auto flow : sorted_flows()) {
    const auto& f = flows_[flow];
    auto child = f.child.policy ? f.child.policy->save() : std::string{fifo_state};
    out += fmt::format("flow {} {} {} {} {}\n", state_hex(f.name), state_number(f.account.value),
      f.account.turn, f.account.weight, child.size());
    out += child;
    out += '\n';
  }
  return out;
}

result<void> flow_tree::load(std::string_view text) {
  if (by_ticket_.size() != 0)
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
  // Into a level of its own: this one stays as it was when the text turns out to be damaged.
  flow_tree loaded(label_, by_, rule_, make_child_);
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
    if (!child || loaded.find_flow(*name) != flat_index::none)
      return bad();
    auto& flow = loaded.flows_[loaded.flow_named(*name)];
    flow.account = {*charged, *turn, static_cast<uint32_t>(*weight)};
    if (flow.child.policy) {
      if (auto good = flow.child.policy->load(*child); !good)
        return good;
    } else if (*child != fifo_state) {
      return bad();
    }
  }
  if (!in.at_end())
    return bad();
  clock_ = {*value, *count};
  flows_ = std::move(loaded.flows_);
  vacant_flows_.clear();
  by_name_ = std::move(loaded.by_name_);
  return {};
}

} // namespace gristmill
