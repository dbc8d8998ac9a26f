#include "planning/portfolio.hpp"

#include "planning/allocation/equal_share.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <tuple>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

// The seed of an attempt: the same for equal run seed and id, whatever ran before. Multiplying by
// the golden ratio and folding the high bits back lets every byte reach every bit.
uint64_t seed_of(uint64_t run_seed, const attempt_id& id) {
  constexpr uint64_t golden = 0x9e3779b97f4a7c15ull;
  uint64_t out = run_seed;
  auto stir = [&](uint64_t value) {
    out = (out ^ value) * golden;
    out ^= out >> 29;
  };
  for (char c : to_string(id))
    stir(static_cast<unsigned char>(c));
  for (int i = 0; i < 3; ++i)
    stir(golden);
  return out;
}

// What a candidate is known by; a file need not give its candidate a key.
const std::string& key_of(const candidate_ref& c) {
  return c.key.empty() ? c.hash : c.key;
}

/// One line of at most so many bytes, cut between characters.
std::string line_of(const std::string& text, size_t bytes_max) {
  auto out = text.substr(0, text.find_first_of("\r\n"));
  if (out.size() <= bytes_max)
    return out;
  auto end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xc0) == 0x80)
    --end;
  return out.substr(0, end);
}

/// ln(best before / best now). The first best of a problem without a baseline is held against T_b.
double gain_of(uint64_t before, uint64_t now, double speedup) {
  if (now == before || now == 0)
    return 0;
  if (before > 0)
    return std::log(static_cast<double>(before) / static_cast<double>(now));
  return speedup > 1 ? std::log(speedup) : 0;
}

double seconds(uint64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

} // namespace

std::string to_string(problem_state state) {
  switch (state) {
  case problem_state::preparing:
    return "preparing";
  case problem_state::baseline:
    return "baseline";
  case problem_state::open:
    return "open";
  case problem_state::finished:
    return "finished";
  }
  return "unknown";
}

result<portfolio> portfolio::make(
  portfolio_config config, std::vector<portfolio_problem> problems) {
  if (problems.empty())
    return fail(errc::invalid_input, "a run needs at least one problem");
  std::set<std::string> names;
  for (const auto& p : problems) {
    if (p.name.empty())
      return fail(errc::invalid_input, "a problem of the run has no name");
    if (!names.insert(p.name).second)
      return fail(errc::invalid_input, fmt::format("problem '{}' is named twice", p.name));
    std::set<std::string> keys;
    for (const auto& c : p.planted)
      if (key_of(c).empty() || !keys.insert(key_of(c)).second)
        return fail(errc::invalid_input,
          fmt::format("problem '{}': the given candidate '{}' has no key or is given twice", p.name,
            key_of(c)));
  }
  return portfolio{std::move(config), std::move(problems)};
}

portfolio::portfolio(portfolio_config config, std::vector<portfolio_problem> problems)
  : config_(std::move(config)),
    shares_(config_.each_problem, config_.each_worker, config_.attempt_gpu_time) {
  for (auto& given : problems) {
    auto& p = problems_[given.name];
    p.name = given.name;
    p.planted.assign(given.planted.begin(), given.planted.end());
  }
  const auto count = static_cast<uint32_t>(problems_.size());
  allocation_ = config_.allocation
    ? config_.allocation(count, config_.share_by_attempts)
    : std::make_unique<equal_share>(count, config_.share_by_attempts);
  for (auto& [name, p] : problems_) {
    p.index = static_cast<problem_index>(by_index_.size());
    by_index_.push_back(&p);
    refresh(p);
  }
}

bool portfolio::on_ready(const prepared_problem& prepared) {
  auto it = problems_.find(prepared.problem);
  if (it == problems_.end()
    || (it->second.state != problem_state::preparing && !it->second.waits_for_data))
    return false;
  auto& p = it->second;
  p.waits_for_data = false;
  if (prepared.status != verdict_status::passed) {
    finish(
      p, fmt::format("preparation failed: {}: {}", to_string(prepared.status), prepared.reason));
    return true;
  }
  p.graph = prepared.graph;
  if (p.state == problem_state::preparing)
    p.state = prepared.has_bounds ? problem_state::open : problem_state::baseline;
  check_finished(p);
  refresh(p);
  return true;
}

// --- giving out ------------------------------------------------------------------------------

void portfolio::check_budgets(nanoseconds now) {
  if (!stop_reason_.empty())
    return;
  if (config_.wall_budget > nanoseconds{0} && now >= config_.wall_budget)
    stop_reason_ = fmt::format("the wall-clock budget of {} s is spent",
      std::chrono::duration<double>(config_.wall_budget).count());
  else if (config_.gpu_budget_ns > 0 && gpu_ns_ >= config_.gpu_budget_ns)
    stop_reason_ = fmt::format("the GPU budget of {} s is spent", seconds(config_.gpu_budget_ns));
  else if (config_.attempt_budget > 0 && counted_attempts_ >= config_.attempt_budget)
    stop_reason_ = fmt::format("the budget of {} attempts is spent", config_.attempt_budget);
}

bool portfolio::attempts_are_gone() const {
  // An attempt in flight may still count, so the last ones are not given out twice.
  return config_.attempt_budget > 0
    && counted_attempts_ + counted_in_flight_ >= config_.attempt_budget;
}

void portfolio::refresh(problem& p) {
  bool eligible = can_use_attempt(p)
    || (config_.wait_for_turn && (p.state == problem_state::preparing || p.waits_for_data));
  if (eligible != p.eligible)
    allocation_->on_eligible(p.index, eligible);
  p.eligible = eligible;
}

void portfolio::refresh_all() {
  attempts_gone_told_ = attempts_are_gone();
  for (auto* p : by_index_)
    refresh(*p);
}

void portfolio::changed(problem& p) {
  if (attempts_are_gone() != attempts_gone_told_)
    refresh_all();
  else
    refresh(p);
}

bool portfolio::can_use_attempt(const problem& p) const {
  if (p.waits_for_data)
    return false;
  if (p.state == problem_state::baseline)
    return p.in_flight.empty();
  if (p.state != problem_state::open)
    return false;
  if (attempts_are_gone() || !share_holds(p))
    return false;
  if (!p.retries.empty() || !p.reruns.empty())
    return true;
  if (p.only_reruns)
    return false;
  if (!p.planted.empty())
    return true;
  return config_.search && p.exhausted.empty() && !p.dry;
}

planner_decision portfolio::next(const std::string& worker, nanoseconds now) {
  check_budgets(now);
  if (!stop_reason_.empty())
    return {decision_kind::stop, {}, {}, stop_reason_};
  if (auto busy = attempt_of_worker_.find(worker); busy != attempt_of_worker_.end())
    return {decision_kind::idle, {}, {},
      fmt::format("worker {} still has attempt {}", worker, to_string(busy->second))};
  if (auto spent = worker_is_spent(worker); !spent.empty())
    return {decision_kind::stop, {}, {}, spent};
  auto picked = allocation_->pick(now);
  if (!picked)
    return {decision_kind::idle, {}, {},
      fmt::format("no problem can use another attempt now; {} in flight", flights_.size())};
  auto& best = *by_index_[picked->problem];
  if (best.state == problem_state::preparing || best.waits_for_data)
    return {decision_kind::idle, {}, {},
      fmt::format("it is the turn of '{}', which is being prepared", best.name)};
  auto out = assign(best, worker, next_flight(best));
  out.reason = fmt::format("{} attempt; {}", to_string(out.work.kind), to_string(picked->why));
  if (const auto& f = flights_.at(out.work.id); f.is_rerun())
    out.reason = fmt::format(
      "re-run: its GPU was quarantined (attempt {}); {}", to_string(f.rerun_of.id), out.reason);
  return out;
}

portfolio::flight portfolio::next_flight(problem& p) {
  flight f;
  if (p.state != problem_state::baseline && !p.retries.empty()) {
    std::tie(f.kind, f.given) = p.retries.front();
    p.retries.pop_front();
  } else if (!p.reruns.empty()) {
    f.rerun_of = p.reruns.front();
    f.kind = f.rerun_of.kind;
    f.given = f.rerun_of.candidate;
    p.reruns.pop_front();
  } else if (p.state == problem_state::baseline) {
    f.kind = attempt_kind::baseline;
  } else if (!p.planted.empty()) {
    f.kind = attempt_kind::planted;
    f.given = p.planted.front();
    p.planted.pop_front();
  }
  return f;
}

planner_decision portfolio::assign(problem& p, const std::string& worker, flight f) {
  f.worker = worker;
  f.changes_known = p.changes;
  planner_decision out;
  out.kind = decision_kind::assigned;
  auto& work = out.work;
  work.id = {p.name, config_.language, p.next_ordinal++};
  work.in_flight = keys_in_flight(p, nullptr);
  if (!f.given.hash.empty()) {
    work.given = f.given;
    f.key = f.is_rerun() ? f.rerun_of.key : key_of(f.given);
  }
  work.kind = f.kind;
  work.device_model = config_.device_model;
  work.seed = seed_of(config_.seed, work.id);
  work.history = p.history;
  work.graph = p.graph;
  p.in_flight.insert(work.id.ordinal);
  p.in_flight_max = std::max(p.in_flight_max, static_cast<uint32_t>(p.in_flight.size()));
  ++p.given;
  counted_in_flight_ += f.kind == attempt_kind::baseline ? 0 : 1;
  flights_[work.id] = std::move(f);
  attempt_of_worker_[worker] = work.id;
  shares_.begin_again(to_string(work.id), p.name, worker);
  move_worker(p, worker, out);
  work.notes.assign(p.notes.begin(), p.notes.end());
  allocation_->on_given(p.index);
  if (attempts_are_gone() != attempts_gone_told_)
    refresh_all();
  refresh(p);
  return out;
}

void portfolio::move_worker(problem& to, const std::string& worker, planner_decision& out) {
  auto& memory = workers_[worker];
  if (memory.problem == to.name)
    return;
  if (!memory.problem.empty()) {
    out.work.moved_from = memory.problem;
    out.note_left = memory.note;
    auto& notes = problems_.at(memory.problem).notes;
    if (!memory.note.empty() && std::find(notes.begin(), notes.end(), memory.note) == notes.end())
      notes.push_back(memory.note);
    while (notes.size() > config_.notes_max)
      notes.pop_front();
  }
  memory = {to.name, {}};
}

template <class Holds>
bool portfolio::any_in_flight(const problem& p, const attempt_id* except, Holds holds) const {
  // Flights of a problem stand together.
  for (auto it = flights_.lower_bound({p.name, config_.language, 0});
       it != flights_.end() && it->first.problem == p.name; ++it)
    if (!it->second.key.empty() && (except == nullptr || it->first != *except)
      && holds(it->second.key))
      return true;
  // A candidate that waits for its second try belongs to nobody else.
  for (const auto& [kind, candidate] : p.retries)
    if (holds(key_of(candidate)))
      return true;
  return std::any_of(p.planted.begin(), p.planted.end(),
    [&](const auto& candidate) { return holds(key_of(candidate)); });
}

std::vector<std::string> portfolio::keys_in_flight(
  const problem& p, const attempt_id* except) const {
  std::set<std::string> keys;
  any_in_flight(p, except, [&](const std::string& key) {
    keys.insert(key);
    return false;
  });
  return {keys.begin(), keys.end()};
}

claim_reply portfolio::claim(const claim_request& request) {
  claim_reply out;
  auto it = flights_.find(request.attempt);
  if (it == flights_.end())
    return out;
  const auto& p = problems_.at(request.attempt.problem);
  // Of thousands in flight nothing is copied as long as the key is free.
  const bool taken = p.known.contains(request.key)
    || any_in_flight(
      p, &request.attempt, [&](const std::string& key) { return key == request.key; });
  if (!request.key.empty() && !taken) {
    it->second.key = request.key;
    out.granted = true;
    return out;
  }
  const auto others = keys_in_flight(p, &request.attempt);
  std::set<std::string> all(others.begin(), others.end());
  all.insert(p.known.begin(), p.known.end());
  out.taken.assign(all.begin(), all.end());
  return out;
}

// --- taking back -----------------------------------------------------------------------------

portfolio::flight portfolio::take_flight(problem& p, const attempt_id& id) {
  auto f = std::move(flights_.extract(id).mapped());
  p.in_flight.erase(id.ordinal);
  if (auto busy = attempt_of_worker_.find(f.worker);
      busy != attempt_of_worker_.end() && busy->second == id)
    attempt_of_worker_.erase(busy);
  // Whatever became of it, the proposer is told something new.
  p.dry = false;
  ++finished_attempts_;
  counted_in_flight_ -= f.kind == attempt_kind::baseline ? 0 : 1;
  return f;
}

planner_note portfolio::on_finished(const attempt_summary& summary, nanoseconds now) {
  planner_note note;
  if (!flights_.contains(summary.id)) {
    note.reason =
      fmt::format("{} is not in flight; its summary is not counted", to_string(summary.id));
    return note;
  }
  auto& p = problems_.at(summary.id.problem);
  auto f = take_flight(p, summary.id);
  bool was_finished = p.state == problem_state::finished;
  note.accepted = true;
  if (f.is_rerun())
    note.rerun_of = to_string(f.rerun_of.id);
  p.gpu_ns += summary.gpu_ns;
  gpu_ns_ += summary.gpu_ns;
  if (auto memory = workers_.find(f.worker);
      memory != workers_.end() && memory->second.problem == p.name && !summary.note.empty())
    memory->second.note = line_of(summary.note, config_.note_bytes_max);
  auto before = p.best_ns;
  const auto counted_before = counted_attempts_;
  switch (summary.outcome) {
  case attempt_outcome::judged:
    // A summary that calls the house's failure a verdict is put right here, once for all.
    if (summary.status == verdict_status::infrastructure)
      on_infrastructure(p, f, summary.candidate, summary.reason);
    else
      on_judged(p, f, summary, note);
    break;
  case attempt_outcome::exhausted:
  case attempt_outcome::no_candidate:
    on_nothing_proposed(p, f, summary);
    break;
  case attempt_outcome::infrastructure:
    on_infrastructure(p, f, summary.candidate, summary.reason);
    break;
  case attempt_outcome::unproposed:
    on_unproposed(p, f, summary.reason);
    break;
  case attempt_outcome::abandoned:
    ++p.changes;
    if (f.is_rerun() && p.state != problem_state::finished)
      p.reruns.push_front(f.rerun_of);
    else if (f.kind == attempt_kind::planted && p.state == problem_state::open)
      p.planted.push_front(f.given);
    break;
  }
  shares_.end(to_string(summary.id), summary.gpu_ns, counted_attempts_ > counted_before);
  allocation_->on_finished(p.index, {summary.gpu_ns, gain_of(before, p.best_ns, p.best_speedup)});
  check_finished(p);
  check_budgets(now);
  changed(p);
  note.problem_finished = !was_finished && p.state == problem_state::finished;
  note.reason = note.problem_finished
    ? p.reason
    : fmt::format("{}: {}", to_string(summary.outcome), summary.reason);
  return note;
}

void portfolio::on_judged(
  problem& p, const flight& f, const attempt_summary& summary, planner_note& note) {
  bool passed = summary.status == verdict_status::passed;
  const auto& key = f.key.empty() ? key_of(summary.candidate) : f.key;
  p.failures_in_row = 0;
  p.unproposed_in_row = 0;
  ++p.changes;
  p.known.insert(key);
  put_verdict(p, f,
    {key, summary.status, passed ? summary.objective_ns : 0, passed ? summary.floor_share : f64{},
      summary.effort, passed ? summary.times : std::vector<workload_time>{}, summary.candidate,
      summary.feedback});
  if (!passed && !summary.candidate.hash.empty()) {
    failed_trial failed{summary.id, f.kind, summary.candidate, key};
    if (f.victim == summary.candidate.hash && stop_reason_.empty())
      plan_rerun(p, failed);
    else
      remember_failure(std::move(failed));
  }
  counted_attempts_ += f.kind == attempt_kind::baseline ? 0 : 1;
  // A passed candidate without an objective waits for an audit; it leads nowhere until then. A
  // probe has seen some workloads only. What failed its promotion may have the smaller time by
  // luck.
  if (passed && summary.effort == attempt_effort::full && summary.objective_ns > 0
    && !summary.incumbent_stays && (p.best_ns == 0 || summary.objective_ns < p.best_ns)) {
    p.best = summary.candidate;
    p.best_ns = summary.objective_ns;
    p.best_speedup = summary.speedup;
    if (summary.floor_share > 0)
      allocation_->on_headroom(p.index, -std::log(static_cast<double>(summary.floor_share)));
    note.improved = true;
  }
  if (f.kind != attempt_kind::baseline || p.state != problem_state::baseline)
    return;
  if (passed)
    p.state = problem_state::open;
  else if (p.reruns.empty())
    finish(p, fmt::format("baseline failed: {}: {}", to_string(summary.status), summary.reason));
}

void portfolio::put_verdict(problem& p, const flight& f, trial seen) {
  auto old = f.is_rerun() ? std::find_if(p.history.begin(), p.history.end(),
               [&](const trial& t) { return t.key == seen.key; })
                          : p.history.end();
  if (old != p.history.end())
    p.history.replace(static_cast<size_t>(old - p.history.begin()), std::move(seen));
  else
    p.history.push_back(std::move(seen));
}

void portfolio::on_nothing_proposed(problem& p, const flight& f, const attempt_summary& summary) {
  bool never = summary.outcome == attempt_outcome::no_candidate;
  auto reason = fmt::format("{}: {}", to_string(summary.outcome), summary.reason);
  if (f.kind == attempt_kind::baseline) {
    if (never && !p.planted.empty()) {
      // No plain kernel of ours fits; what was given is judged all the same, without a T_b.
      p.state = problem_state::open;
      p.exhausted = reason;
    } else {
      finish(p, never ? reason : "baseline failed: " + reason);
    }
    return;
  }
  if (never || (p.in_flight.empty() && p.changes == f.changes_known))
    p.exhausted = reason;
  else if (p.changes == f.changes_known)
    // The others may open something: it is asked again after the next of them.
    p.dry = true;
}

void portfolio::on_unproposed(problem& p, const flight& f, const std::string& reason) {
  ++p.changes;
  if (f.kind == attempt_kind::baseline) {
    if (p.state == problem_state::baseline && ++p.baseline_failures > config_.baseline_retries)
      finish(p, "baseline failed: none was proposed: " + reason);
    return;
  }
  // The attempt is used up: whoever asks a model has paid for the answer.
  ++counted_attempts_;
  // Each of the workers may have had a bad answer at the same time.
  if (p.state == problem_state::open
    && ++p.unproposed_in_row >= config_.unproposed_in_row_max * p.in_flight_max)
    finish(p,
      fmt::format(
        "{} attempts in a row brought no candidate, the last: {}", p.unproposed_in_row, reason));
}

void portfolio::on_infrastructure(
  problem& p, const flight& f, const candidate_ref& candidate, const std::string& reason) {
  ++p.changes;
  if (f.kind == attempt_kind::baseline) {
    if (p.state != problem_state::baseline)
      return;
    if (++p.baseline_failures > config_.baseline_retries)
      finish(p, "baseline failed: infrastructure: " + reason);
    else if (f.is_rerun())
      p.reruns.push_front(f.rerun_of);
    return;
  }
  if (p.state != problem_state::open)
    return;
  const auto& what = candidate.hash.empty() ? f.given : candidate;
  const auto& key = f.key.empty() ? key_of(what) : f.key;
  if (f.is_rerun()) {
    // Given up, its old verdict stands.
    if (++p.broken[key] <= config_.infrastructure_retries)
      p.reruns.push_front(f.rerun_of);
  } else if (!key.empty()) {
    bool again = ++p.broken[key] <= config_.infrastructure_retries;
    if (again && !what.hash.empty()) {
      p.retries.push_back({f.kind, what});
    } else if (!again) {
      // Known from now on, so that nobody proposes it again; it is no verdict about the candidate.
      p.known.insert(key);
      p.history.push_back({key, verdict_status::infrastructure, 0, {}, {}, {}, {}, {}});
    }
  }
  // One broken part fails everybody at once, so the limit grows with how many there are.
  if (++p.failures_in_row >= config_.infrastructure_in_row_max * p.in_flight_max)
    finish(p,
      fmt::format(
        "{} failures of infrastructure in a row, the last: {}", p.failures_in_row, reason));
}

std::vector<attempt_id> portfolio::on_worker_lost(const std::string& worker, nanoseconds now) {
  std::vector<attempt_id> lost;
  for (const auto& [id, f] : flights_)
    if (f.worker == worker)
      lost.push_back(id);
  for (const auto& id : lost) {
    auto& p = problems_.at(id.problem);
    auto f = take_flight(p, id);
    shares_.end(to_string(id), 0, false);
    on_infrastructure(p, f, {}, fmt::format("worker {} was lost", worker));
    allocation_->on_finished(p.index, {});
    check_finished(p);
    changed(p);
  }
  check_budgets(now);
  return lost;
}

void portfolio::check_finished(problem& p) {
  if (finish_spent(p))
    return;
  if (p.state != problem_state::open || !p.in_flight.empty() || !p.retries.empty()
    || !p.reruns.empty())
    return;
  if (p.only_reruns)
    finish(p, p.reason);
  else if (!p.planted.empty() || config_.takes_plants)
    return;
  else if (!config_.search)
    finish(p, "the search is off and every given candidate has been tried");
  else if (!p.exhausted.empty())
    finish(p, p.exhausted);
}

void portfolio::finish(problem& p, std::string reason) {
  p.state = problem_state::finished;
  p.reason = std::move(reason);
  p.only_reruns = false;
  p.waits_for_data = false;
  p.retries.clear();
  p.reruns.clear();
  newly_finished_.push_back(p.name);
  refresh(p);
  bool all = std::all_of(problems_.begin(), problems_.end(),
    [](const auto& entry) { return entry.second.state == problem_state::finished; });
  if (all && stop_reason_.empty())
    stop_reason_ = "all problems are finished";
}

void portfolio::drain(const std::string& reason) {
  if (stop_reason_.empty())
    stop_reason_ = reason.empty() ? "drained" : reason;
}

bool portfolio::done() const {
  return flights_.empty() && !stop_reason_.empty();
}

// --- looking ---------------------------------------------------------------------------------

planner_snapshot portfolio::snapshot() const {
  planner_snapshot out;
  out.problems_total = static_cast<uint32_t>(problems_.size());
  double log_sum = 0;
  uint32_t with_speedup = 0;
  for (const auto& [name, p] : problems_) {
    out.problems_finished += p.state == problem_state::finished ? 1 : 0;
    out.problems_passed += p.best_ns > 0 ? 1 : 0;
    if (p.best_ns > 0 && p.best_speedup > 0) {
      log_sum += std::log(static_cast<double>(p.best_speedup));
      ++with_speedup;
    }
  }
  out.attempts_finished = finished_attempts_;
  out.attempts_in_flight = static_cast<uint32_t>(flights_.size());
  out.gpu_ns = gpu_ns_;
  if (with_speedup > 0)
    out.geomean = std::exp(log_sum / with_speedup);
  out.finished = done();
  out.stop_reason = stop_reason_;
  return out;
}

std::vector<problem_view> portfolio::problems() const {
  std::vector<problem_view> out;
  for (const auto& [name, p] : problems_)
    out.push_back(view_of(p));
  return out;
}

problem_view portfolio::view_of(const problem& p) const {
  return {p.name, p.state, p.reason, p.given, static_cast<uint32_t>(p.in_flight.size()), p.gpu_ns,
    p.best, p.best_ns, p.best_speedup};
}

std::vector<problem_view> portfolio::take_finished() {
  std::vector<problem_view> out;
  for (const auto& name : std::exchange(newly_finished_, {}))
    if (const auto& p = problems_.at(name); p.state == problem_state::finished)
      out.push_back(view_of(p));
  return out;
}

} // namespace gristmill
