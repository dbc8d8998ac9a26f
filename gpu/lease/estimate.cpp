#include "gpu/lease/estimate.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

// A new value counts a quarter; 0 stands for "none yet".
void learn(nanoseconds& average, nanoseconds value) {
  value = std::max(value, nanoseconds{1});
  average = average == nanoseconds{0} ? value : average + (value - average) / 4;
}

uint64_t hash_of(const lease_flow& flow) {
  std::hash<std::string_view> hash;
  return mixed(hash(flow.problem)) + hash(flow.agent);
}

} // namespace

uint32_t flow_ledger::find(const lease_flow& flow) const {
  return by_flow_.find(
    hash_of(flow), [&](uint32_t slot) { return records_[slot].usage.flow == flow; });
}

void flow_ledger::leave_row(uint32_t slot) {
  const auto& r = records_[slot];
  (r.older == flat_index::none ? oldest_ : records_[r.older].newer) = r.newer;
  (r.newer == flat_index::none ? newest_ : records_[r.newer].older) = r.older;
}

uint32_t flow_ledger::touch(const lease_flow& flow, uint32_t hint) {
  auto slot = hint < records_.size() && records_[hint].usage.flow == flow ? hint : find(flow);
  if (slot != flat_index::none) {
    if (slot == newest_)
      return slot;
    leave_row(slot);
  } else {
    slot = static_cast<uint32_t>(records_.size());
    if (records_.empty() || records_.size() < flows_max_) {
      records_.emplace_back();
    } else {
      slot = oldest_;
      by_flow_.erase(hash_of(records_[slot].usage.flow), slot);
      leave_row(slot);
      records_[slot] = {};
    }
    records_[slot].usage.flow = flow;
    by_flow_.insert(hash_of(flow), slot);
  }
  records_[slot].older = newest_;
  records_[slot].newer = flat_index::none;
  (newest_ == flat_index::none ? oldest_ : records_[newest_].newer) = slot;
  newest_ = slot;
  return slot;
}

uint32_t flow_ledger::on_grant(const lease_flow& flow, uint32_t weight, nanoseconds now) {
  auto slot = touch(flow, flat_index::none);
  auto& r = records_[slot];
  r.usage.weight = weight;
  ++r.usage.leases;
  r.last_grant = now;
  return slot;
}

void flow_ledger::on_held(
  const lease_flow& flow, lease_class what, nanoseconds held, uint32_t hint) {
  learn(records_[touch(flow, hint)].hold[static_cast<size_t>(what)], held);
  learn(everybody_[static_cast<size_t>(what)], held);
}

void flow_ledger::on_charge(const lease_flow& flow, nanoseconds held, uint32_t hint) {
  records_[touch(flow, hint)].usage.held_ns +=
    static_cast<uint64_t>(std::max<int64_t>(held.count(), 0));
}

nanoseconds flow_ledger::expected_hold(
  const lease_flow& flow, lease_class what, nanoseconds claimed) const {
  auto index = static_cast<size_t>(what);
  if (auto slot = find(flow);
      slot != flat_index::none && records_[slot].hold[index] != nanoseconds{0})
    return records_[slot].hold[index];
  return everybody_[index] != nanoseconds{0} ? everybody_[index] : claimed;
}

nanoseconds flow_ledger::last_grant(const lease_flow& flow) const {
  auto slot = find(flow);
  return slot == flat_index::none ? nanoseconds::min() : records_[slot].last_grant;
}

std::vector<flow_usage> flow_ledger::usage() const {
  std::vector<flow_usage> out;
  out.reserve(records_.size());
  for (const auto& r : records_)
    out.push_back(r.usage);
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.flow < b.flow; });
  return out;
}

std::vector<forecast_place> look_ahead(const lease_policy& policy, std::vector<forecast_gpu> gpus,
  const std::vector<forecast_waiter>& waiters, nanoseconds now, uint32_t grants_max,
  uint32_t waiters_max) {
  std::vector<forecast_place> out;
  out.reserve(waiters.size());
  need_set served = 0;
  for (const auto& g : gpus)
    served |= g.fits;
  std::vector<bool> placed(waiters.size(), false);
  auto index_of = [&](uint64_t ticket) -> std::optional<size_t> {
    auto it = std::lower_bound(waiters.begin(), waiters.end(), ticket,
      [](const forecast_waiter& w, uint64_t t) { return w.ticket < t; });
    if (it == waiters.end() || it->ticket != ticket)
      return std::nullopt;
    return static_cast<size_t>(it - waiters.begin());
  };

  auto copy = waiters.size() <= waiters_max && !gpus.empty() ? policy.clone() : nullptr;
  // The next GPU to be free first; the smaller index wins a tie.
  auto later = [](const forecast_gpu& a, const forecast_gpu& b) {
    return std::pair{a.free_at, a.gpu} > std::pair{b.free_at, b.gpu};
  };
  std::make_heap(gpus.begin(), gpus.end(), later);
  while (
    copy != nullptr && !gpus.empty() && out.size() < grants_max && out.size() < waiters.size()) {
    std::pop_heap(gpus.begin(), gpus.end(), later);
    auto g = gpus.back();
    auto at = std::max(g.free_at, now);
    if (g.ticket != 0)
      copy->on_release({g.ticket, g.gpu, at - g.granted_at}, "done", at);
    g.ticket = 0;
    auto ticket = copy->pick({g.gpu, g.fits}, at);
    auto index = ticket ? index_of(*ticket) : std::nullopt;
    if (!index) {
      gpus.pop_back(); // Nobody is left for it.
      continue;
    }
    copy->on_grant(*ticket, g.gpu, at);
    placed[*index] = true;
    out.push_back({*ticket, static_cast<uint32_t>(out.size()), at - now});
    g.ticket = *ticket;
    g.granted_at = at;
    g.free_at = at + waiters[*index].hold;
    gpus.back() = g;
    std::push_heap(gpus.begin(), gpus.end(), later);
  }

  // The others by rate: what is in front of them, shared by the GPUs there are.
  nanoseconds from{0};
  if (!gpus.empty()) {
    from = std::max(gpus.front().free_at - now, nanoseconds{0});
    for (const auto& g : gpus)
      from = std::min(from, std::max(g.free_at - now, nanoseconds{0}));
  }
  auto count = static_cast<int64_t>(std::max<size_t>(gpus.size(), 1));
  for (size_t i = 0; i < waiters.size(); ++i) {
    if (placed[i])
      continue;
    const auto& w = waiters[i];
    bool hopeless = (served >> w.need & 1) == 0;
    out.push_back({w.ticket, static_cast<uint32_t>(out.size()),
      hopeless ? w.patience_left : std::min(from, std::max(w.patience_left, nanoseconds{0}))});
    if (!hopeless)
      from += w.hold / count;
  }
  return out;
}

} // namespace gristmill
