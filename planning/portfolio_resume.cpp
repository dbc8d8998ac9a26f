// Going on from a log: facts told again.

#include "planning/portfolio.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

namespace gristmill {

using std::chrono::nanoseconds;

portfolio::flight portfolio::flight_of(
  problem& p, attempt_kind kind, const std::string& candidate) {
  flight f;
  f.kind = kind;
  if (candidate.empty())
    return f;
  auto retry = std::find_if(
    p.retries.begin(), p.retries.end(), [&](const auto& r) { return r.second.hash == candidate; });
  auto rerun = std::find_if(p.reruns.begin(), p.reruns.end(),
    [&](const failed_trial& r) { return r.candidate.hash == candidate; });
  auto planted = std::find_if(p.planted.begin(), p.planted.end(),
    [&](const candidate_ref& c) { return c.hash == candidate; });
  if (retry != p.retries.end()) {
    std::tie(f.kind, f.given) = *retry;
    p.retries.erase(retry);
  } else if (rerun != p.reruns.end()) {
    f.rerun_of = *rerun;
    f.kind = rerun->kind;
    f.given = rerun->candidate;
    p.reruns.erase(rerun);
  } else if (planted != p.planted.end()) {
    f.kind = attempt_kind::planted;
    f.given = *planted;
    p.planted.erase(planted);
  }
  return f;
}

result<planner_decision> portfolio::assign_again(const attempt_id& id, const std::string& worker,
  attempt_kind kind, const std::string& candidate) {
  auto found = problems_.find(id.problem);
  if (found == problems_.end())
    return fail(errc::invalid_input, fmt::format("the run has no problem '{}'", id.problem));
  auto& p = found->second;
  bool can =
    p.state == problem_state::open || (p.state == problem_state::baseline && p.in_flight.empty());
  if (id.language != config_.language || !can || id.ordinal < p.next_ordinal)
    return fail(errc::invalid_input,
      fmt::format(
        "attempt {} cannot have been given out: the problem is {} and its next attempt is "
        "{}/{}/{}",
        to_string(id), to_string(p.state), p.name, config_.language, p.next_ordinal));
  // Numbers may be left out: an attempt that was given out just before a process was killed.
  p.next_ordinal = id.ordinal;
  return assign(p, worker, flight_of(p, kind, candidate));
}

const std::string& portfolio::stop_reason_at(nanoseconds now) {
  check_budgets(now);
  return stop_reason_;
}

uint32_t portfolio::next_ordinal(const std::string& name) const {
  auto found = problems_.find(name);
  return found == problems_.end() ? 0 : found->second.next_ordinal;
}

void portfolio::reserve_ordinals(const std::string& name, uint32_t next) {
  if (auto found = problems_.find(name); found != problems_.end())
    found->second.next_ordinal = std::max(found->second.next_ordinal, next);
}

bool portfolio::on_interrupted(const attempt_id& id, uint64_t gpu_ns, nanoseconds now) {
  if (!flights_.contains(id))
    return false;
  auto& p = problems_.at(id.problem);
  auto f = take_flight(p, id);
  --finished_attempts_;
  shares_.end(to_string(id), gpu_ns, false);
  p.gpu_ns += gpu_ns;
  gpu_ns_ += gpu_ns;
  ++p.changes;
  if (p.state != problem_state::finished) {
    if (f.is_rerun())
      p.reruns.push_front(f.rerun_of);
    else if (f.kind == attempt_kind::planted && p.broken.contains(f.key))
      p.retries.push_front({f.kind, f.given});
    else if (f.kind == attempt_kind::planted)
      p.planted.push_front(f.given);
    else if (f.kind == attempt_kind::search && !f.given.hash.empty())
      p.retries.push_front({f.kind, f.given});
  }
  allocation_->on_finished(p.index, {gpu_ns, 0});
  check_finished(p);
  check_budgets(now);
  changed(p);
  return true;
}

void portfolio::on_resumed() {
  for (auto& [name, p] : problems_)
    p.waits_for_data = p.state == problem_state::baseline || p.state == problem_state::open;
  // Names of workers begin anew; what they did last stays good.
  attempt_of_worker_.clear();
  refresh_all();
}

void portfolio::set_budgets(nanoseconds wall, uint64_t attempts, uint64_t gpu_ns) {
  config_.wall_budget = wall;
  config_.attempt_budget = attempts;
  config_.gpu_budget_ns = gpu_ns;
  refresh_all();
}

std::vector<attempt_id> portfolio::in_flight() const {
  std::vector<attempt_id> out;
  for (const auto& [id, f] : flights_)
    out.push_back(id);
  return out;
}

std::vector<attempt_id> portfolio::in_flight_of(const std::string& worker) const {
  std::vector<attempt_id> out;
  for (const auto& [id, f] : flights_)
    if (f.worker == worker)
      out.push_back(id);
  return out;
}

std::string portfolio::durable_text() const {
  auto out = fmt::format(
    "{} attempts counted, {} finished, {} ns\n", counted_attempts_, finished_attempts_, gpu_ns_);
  for (const auto& [name, p] : problems_) {
    out += fmt::format("{}: {} '{}', next {}, given {}, {} ns, best {} {} {}, exhausted '{}'\n",
      name, to_string(p.state), p.reason, p.next_ordinal, p.given, p.gpu_ns, p.best.hash, p.best_ns,
      static_cast<double>(p.best_speedup), p.exhausted);
    out += fmt::format("  failures {} {} {} {}, graph {}\n", p.baseline_failures, p.failures_in_row,
      p.unproposed_in_row, p.in_flight_max, p.graph.sha256);
    for (const auto& t : p.history) {
      out += fmt::format("  {} {} {} {} {}", t.key, to_string(t.status), t.objective_ns,
        static_cast<double>(t.floor_share), to_string(t.effort));
      for (const auto& w : t.times)
        out += fmt::format(" {}={}", w.uuid, w.ns);
      out += '\n';
    }
    for (const auto& key : p.known)
      out += "  known " + key + '\n';
    for (const auto& c : p.planted)
      out += "  planted " + c.hash + '\n';
    for (const auto& [kind, c] : p.retries)
      out += "  again " + to_string(kind) + ' ' + c.hash + '\n';
    for (const auto& r : p.reruns)
      out += "  rerun " + to_string(r.id) + ' ' + r.candidate.hash + '\n';
    for (const auto& [key, n] : p.broken)
      out += fmt::format("  broken {} {}\n", key, n);
    for (const auto& note : p.notes)
      out += "  note " + note + '\n';
  }
  return out;
}

} // namespace gristmill
