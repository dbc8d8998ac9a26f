#include "actors/run_history.hpp"

#include "actors/run_events.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <set>

namespace gristmill {

using nlohmann::json;
using std::chrono::nanoseconds;

namespace {

constexpr const char* cut_off = "the process was ended while it was under way";

uint64_t count_of(nanoseconds t) {
  return static_cast<uint64_t>(std::max<int64_t>(t.count(), 0));
}

class replay {
public:
  replay(restored_run& out, bool takes_plants) : out_(out), takes_plants_(takes_plants) {}

  result<void> take(const event& e) {
    out_.used = std::max(out_.used, e.t);
    take_attempt_number(e);
    auto fine = take_fact(e);
    if (!fine)
      return fail(
        fine.error().code, fmt::format("event {} ({}): {}", e.seq, e.kind, fine.error().what));
    for (const auto& p : out_.mind.take_finished())
      ++finishes_[p.name];
    return {};
  }

  /// Writes and takes what the log lacks.
  result<void> close() {
    for (const auto& [key, lease] : leases_) {
      event e{.kind = "lease_revoke",
        .problem = lease.problem,
        .attempt = lease.attempt,
        .candidate = lease.candidate,
        .gpu = key.first,
        .token = key.second,
        .reason = cut_off};
      e.data = text_of({{"held_ns", count_of(out_.used - lease.t)}});
      closing_.push_back(std::move(e));
    }
    for (const auto& e : std::vector<event>(closing_))
      take_lease(e);
    if (auto fine = close_attempts(); !fine)
      return fine;
    for (const auto& p : out_.mind.problems())
      for (auto noted = noted_[p.name]; noted < finishes_[p.name]; ++noted)
        if (p.state == problem_state::finished)
          closing_.push_back(problem_finished_event(p));
    for (auto& e : closing_)
      e.t = out_.used;
    out_.closing = std::move(closing_);
    for (const auto& [problem, next] : next_ordinals_)
      out_.mind.reserve_ordinals(problem, next);
    return {};
  }

private:
  /// No number is used twice, also one that only the broker has told of.
  void take_attempt_number(const event& e) {
    if (auto id = attempt_id_from(e.attempt); id && id->language != "tool") // An agent's question.
      next_ordinals_[id->problem] = std::max(next_ordinals_[id->problem], id->ordinal + 1);
  }

  result<void> take_fact(const event& e) {
    auto& mind = out_.mind;
    const auto& kind = e.kind;
    if (kind == "run_resumed") {
      mind.on_resumed();
    } else if (kind == "problem_prepared") {
      auto prepared = prepared_from(e);
      if (!prepared)
        return pass(prepared);
      mind.on_ready(*prepared);
    } else if (kind == "problem_finished") {
      ++noted_[e.problem];
    } else if (kind == "assigned") {
      return take_assigned(e);
    } else if (kind == "claimed") {
      auto claim = claimed_from(e);
      if (!claim)
        return pass(claim);
      mind.claim(*claim);
    } else if (kind == "attempt_finished") {
      auto summary = finished_from(e);
      if (!summary)
        return pass(summary);
      if (!mind.on_finished(*summary, e.t).accepted)
        return fail(errc::invalid_input, e.attempt + " was not under way");
      verdicts_.erase(e.attempt);
      lease_ns_.erase(e.attempt);
    } else if (kind == "attempt_lost") {
      auto worker = lost_from(e);
      if (!worker)
        return pass(worker);
      mind.on_worker_lost(*worker, e.t);
      verdicts_.erase(e.attempt);
    } else if (kind == "attempt_interrupted") {
      auto id = attempt_id_from(e.attempt);
      if (!id)
        return pass(id);
      auto data = json::parse(e.data, nullptr, false);
      auto ns = data.is_object() ? data.value("gpu_ns", uint64_t{0}) : 0;
      if (!mind.on_interrupted(*id, ns, e.t))
        return fail(errc::invalid_input, e.attempt + " was not under way");
      verdicts_.erase(e.attempt);
      lease_ns_.erase(e.attempt);
    } else if (kind == "planted") {
      auto candidate = planted_from(e);
      if (!candidate)
        return pass(candidate);
      mind.plant_again(e.problem, *candidate);
    } else if (kind == "plant_withdrawn") {
      mind.withdraw(e.problem, e.candidate);
    } else if (kind == "planting_closed") {
      mind.close_planting();
      planting_closed_ = true;
    } else if (kind == "insight") {
      auto data = json::parse(e.data, nullptr, false);
      if (!data.is_object() || !data.contains("lines") || !data["lines"].is_array())
        return fail(errc::invalid_input, "data.lines: must be a list of texts");
      auto& lines = out_.insights[e.problem];
      lines.clear();
      for (const auto& line : data["lines"])
        if (line.is_string())
          lines.push_back(line.get<std::string>());
    } else if (kind == "rerun_planned") {
      mind.on_rerun({e.problem, e.attempt, e.candidate}, e.t);
    } else if (kind == "verdict" || kind == "probe_verdict") {
      return take_verdict(e);
    } else if (kind == "screened") {
      return take_screened(e);
    } else {
      take_lease(e);
    }
    return {};
  }

  result<void> take_assigned(const event& e) {
    auto id = attempt_id_from(e.attempt);
    if (!id)
      return pass(id);
    auto given = assigned_from(e);
    if (!given)
      return pass(given);
    if (auto again = out_.mind.assign_again(*id, given->worker, given->kind, given->candidate);
        !again)
      return pass(again);
    return {};
  }

  result<void> take_verdict(const event& e) {
    auto summary = summary_of_verdict(e);
    if (!summary)
      return pass(summary);
    const auto data = json::parse(e.data, nullptr, false);
    if (e.kind == "verdict" && summary->kind == attempt_kind::baseline
      && summary->status == verdict_status::passed)
      take_baseline(e, data);
    if (e.kind == "verdict")
      take_best(*summary, data.value("promotion", false));
    // Its screening held a lease of its own.
    if (auto screened = screened_ns_.find(e.attempt); screened != screened_ns_.end())
      summary->gpu_ns += screened->second;
    verdicts_[e.attempt] = std::move(*summary);
    return {};
  }

  /// As the scorer does when it decides.
  void take_best(const attempt_summary& summary, bool promotion) {
    if (summary.status != verdict_status::passed || summary.objective_ns == 0)
      return;
    auto& best = out_.best.of(summary.id);
    best.tried += promotion ? 0 : 1;
    if (!summary.incumbent_stays)
      best.take(summary.candidate, summary.objective_ns, promotion);
  }

  /// No verdict yet. When the process ends before there is one, the attempt is cut off like others.
  result<void> take_screened(const event& e) {
    auto summary = summary_of_verdict(e);
    if (!summary)
      return pass(summary);
    screened_ns_[e.attempt] += summary->gpu_ns;
    if (!json::parse(e.data, nullptr, false).value("promotion", false))
      ++out_.best.of(summary->id).tried;
    return {};
  }

  void take_baseline(const event& e, const json& data) {
    auto& times = out_.baselines[e.problem];
    auto origin = time_origin::none;
    for (auto o : {time_origin::modelled, time_origin::measured, time_origin::not_a_measurement})
      if (data.value("origin", std::string{}) == to_string(o))
        origin = o;
    for (const auto& w : data.at("workloads")) {
      auto uuid = w.value("uuid", std::string{});
      times[uuid] = {
        uuid, w.value("time_ns", uint64_t{0}), origin, w.value("floor_ns", uint64_t{0})};
    }
  }

  void take_lease(const event& e) {
    if (e.kind == "token_block") {
      auto& floor = out_.token_floors[e.gpu];
      floor = std::max(floor, e.token);
    } else if (e.kind == "lease_grant") {
      leases_[{e.gpu, e.token}] = e;
    } else if (e.kind == "lease_release" || e.kind == "lease_withdraw"
      || e.kind == "lease_revoke") {
      auto lease = leases_.find({e.gpu, e.token});
      if (lease == leases_.end())
        return;
      auto end = e.t.count() == 0 ? out_.used : e.t;
      lease_ns_[lease->second.attempt] += count_of(end - lease->second.t);
      leases_.erase(lease);
    }
  }

  result<void> close_attempts() {
    auto& mind = out_.mind;
    auto in_flight = mind.in_flight();
    // A verdict is on the disk before the attempt's own beginning may be.
    for (const auto& [attempt, summary] : verdicts_) {
      if (std::find(in_flight.begin(), in_flight.end(), summary.id) != in_flight.end())
        continue;
      if (summary.id.ordinal < mind.next_ordinal(summary.id.problem))
        continue; // It is over: its worker died in the meantime.
      const std::string worker = "unknown";
      auto again = mind.assign_again(summary.id, worker, summary.kind, summary.candidate.hash);
      if (!again)
        return pass(again);
      closing_.push_back(assigned_event(*again, worker));
      in_flight.push_back(summary.id);
    }
    for (const auto& id : in_flight) {
      auto text = to_string(id);
      if (auto kept = verdicts_.find(text); kept != verdicts_.end()) {
        auto note = mind.on_finished(kept->second, out_.used);
        closing_.push_back(finished_event(kept->second, note));
      } else {
        auto ns = lease_ns_[text];
        mind.on_interrupted(id, ns, out_.used);
        closing_.push_back({.kind = "attempt_interrupted",
          .problem = id.problem,
          .attempt = text,
          .reason = cut_off,
          .data = text_of({{"gpu_ns", ns}})});
      }
    }
    // Whoever planted was a client of the process that is gone.
    if (takes_plants_ && !planting_closed_) {
      mind.close_planting();
      closing_.push_back({.kind = "planting_closed", .reason = cut_off});
    }
    for (const auto& p : mind.take_finished())
      ++finishes_[p.name];
    return {};
  }

  restored_run& out_;
  bool takes_plants_;
  bool planting_closed_ = false;
  std::vector<event> closing_;
  std::map<std::string, uint32_t> next_ordinals_;
  /// By attempt: verdicts that the planner has not counted.
  std::map<std::string, attempt_summary> verdicts_;
  /// By attempt: how long the leases before its last one were held, as far as `screened` tells.
  std::map<std::string, uint64_t> screened_ns_;
  /// Open leases.
  std::map<std::pair<std::string, uint64_t>, event> leases_;
  /// By attempt that is under way: how long its closed leases were held.
  std::map<std::string, uint64_t> lease_ns_;
  std::map<std::string, uint32_t> finishes_;
  std::map<std::string, uint32_t> noted_;
};

/// Whether the run of this log took candidates from outside.
bool took_plants(std::span<const event> events) {
  if (events.empty())
    return false;
  auto data = json::parse(events.front().data, nullptr, false);
  return data.is_object() && data.value("takes_plants", json(false)) == json(true);
}

} // namespace

result<run_beginning> read_beginning(std::span<const event> events) {
  if (events.empty() || events.front().kind != "run_started")
    return fail(errc::invalid_input, "the log does not begin with a run_started event");
  run_beginning out;
  try {
    auto data = json::parse(events.front().data);
    if (data.value("history", uint32_t{0}) != run_history_version)
      return fail(errc::unsupported,
        "the run was written by a version of gristmill that did not keep what is needed to go on "
        "from; it can be reported, not resumed");
    out.seed = data.at("seed").get<uint64_t>();
    out.baseline_note = data.at("baseline_note").get<std::string>();
    out.time_note = data.at("time_note").get<std::string>();
    out.toolchain = data.at("toolchain").get<std::string>();
    out.program = data.value("program", std::string{});
    for (const auto& p : data.at("problem_hashes").items())
      out.problem_hashes[p.key()] = p.value().get<std::string>();
    for (const auto& name : data.at("problems"))
      out.problems.push_back({name.get<std::string>(), {}});
    for (const auto& c : data.at("candidates")) {
      auto name = c.at("problem").get<std::string>();
      auto problem = std::find_if(out.problems.begin(), out.problems.end(),
        [&](const portfolio_problem& p) { return p.name == name; });
      if (problem == out.problems.end())
        return fail(errc::invalid_input,
          "event 1 (run_started): a candidate is for the unknown problem '" + name + "'");
      problem->planted.push_back(candidate_from(c, c.at("hash").get<std::string>()));
    }
    for (const auto& e : events)
      if (e.kind == "run_started" || e.kind == "run_resumed")
        out.budget = json::parse(e.data).at("budget").get<std::vector<std::string>>();
    if (events.back().kind == "run_ended")
      out.ended_clean = json::parse(events.back().data).value("clean", false);
  } catch (const json::exception& error) {
    return fail(
      errc::invalid_input, fmt::format("the log's own beginning cannot be read: {}", error.what()));
  }
  return out;
}

result<restored_run> restore_run(const portfolio_config& config,
  const std::vector<portfolio_problem>& problems, std::span<const event> events) {
  auto unlimited = config;
  unlimited.wall_budget = nanoseconds{0};
  unlimited.attempt_budget = 0;
  unlimited.gpu_budget_ns = 0;
  unlimited.takes_plants = took_plants(events);
  auto mind = portfolio::make(unlimited, problems);
  if (!mind)
    return pass(mind);
  restored_run out{std::move(*mind), {}, {}, {}, nanoseconds{0}, {}, {}, {}};
  replay facts(out, unlimited.takes_plants);
  for (const auto& e : events)
    if (auto fine = facts.take(e); !fine)
      return pass(fine);
  if (auto fine = facts.close(); !fine)
    return pass(fine);
  auto models = restore_spending(events);
  if (!models)
    return pass(models);
  out.models = std::move(*models);
  for (auto& e : out.models.closing)
    out.closing.push_back(e);
  out.mind.on_resumed();
  out.mind.set_budgets(config.wall_budget, config.attempt_budget, config.gpu_budget_ns);
  return out;
}

} // namespace gristmill
