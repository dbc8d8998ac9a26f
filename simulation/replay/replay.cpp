#include "simulation/replay/replay.hpp"

#include "gpu/lease/policy.hpp"
#include "simulation/core/engine.hpp"
#include "simulation/model/counter_stream.hpp"
#include "simulation/replay/replay_plan.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

/// The nearest rank: a value that was seen.
double rank_s(const std::vector<nanoseconds>& sorted, size_t percent) {
  return sorted.empty() ? 0 : seconds_of(sorted[(sorted.size() * percent + 99) / 100 - 1]);
}

const char* const assumptions_closed[] = {"Holds and clean-ups last as long as they did, whichever "
                                          "GPU they are on: GPUs are alike in speed.",
  "An agent asks again as long after the end of its lease as it did then (closed loop): it does "
  "not think faster or slower for having waited.",
  "Agents do the same work in the same order: outcomes, problems and estimates stay, and nobody "
  "gives up earlier or later than he did.",
  "The lease policy begins without knowledge of earlier use, and a start of the broker within the "
  "recording does not make it forget.",
  "The broker itself takes no time, and no candidate is kept from a GPU on which it failed."};

const char* const assumptions_open[] = {
  "Requests come when the file says, whatever became of earlier ones (open arrivals).",
  "Holds last as long as the file says, on any GPU.", "The broker itself takes no time."};

/// Request of the trace that a replayed lease plays.
std::optional<uint32_t> number_of(const std::string& attempt, size_t count) {
  uint32_t out = 0;
  auto [end, error] = std::from_chars(attempt.data(), attempt.data() + attempt.size(), out);
  if (error != std::errc{} || end != attempt.data() + attempt.size() || out >= count)
    return std::nullopt;
  return out;
}

replay_grant describe(
  const lease_trace& told, const lease_trace& of, uint32_t index, const std::string& gpu) {
  const auto& r = of.requests[index];
  const auto* original = &r;
  if (&told != &of)
    if (auto number = number_of(r.attempt, told.requests.size()))
      original = &told.requests[*number];
  auto agent = told.agents[original->agent];
  if (!told.agents_by_name)
    agent = told.problems[original->problem] + "/" + agent;
  return {&told == &of ? r.granted_line : 0, r.granted, r.asked, agent,
    told.problems[original->problem], original->attempt, gpu};
}

void compare(const lease_trace& recorded, const lease_trace& replayed, policy_replay& out) {
  auto total = std::max(recorded.grants.size(), replayed.grants.size());
  for (size_t i = 0; i < total; ++i) {
    bool both = i < recorded.grants.size() && i < replayed.grants.size();
    if (both) {
      const auto& was = recorded.requests[recorded.grants[i]];
      const auto& is = replayed.requests[replayed.grants[i]];
      // GPUs of the replay are named anew, in the same order.
      if (number_of(is.attempt, recorded.requests.size()) == recorded.grants[i]
        && was.gpu == is.gpu) {
        ++out.agreed;
        auto shift = is.granted - was.granted;
        out.shift_max = std::max(out.shift_max, shift < nanoseconds{0} ? -shift : shift);
        continue;
      }
    }
    replay_divergence d;
    d.position = i + 1;
    if (i < recorded.grants.size()) {
      auto index = recorded.grants[i];
      d.recorded =
        describe(recorded, recorded, index, recorded.gpus[recorded.requests[index].gpu].name);
    }
    if (i < replayed.grants.size()) {
      auto index = replayed.grants[i];
      auto gpu = replayed.requests[index].gpu;
      d.replayed = describe(
        recorded, replayed, index, gpu < recorded.gpus.size() ? recorded.gpus[gpu].name : "?");
    }
    out.divergence = std::move(d);
    return;
  }
}

result<policy_replay> replay_under(const lease_trace& trace, const replay_plan& plan,
  const std::string& policy, const std::function<void(event&&)>& journal) {
  auto what = plan.what;
  what.lease_policy = policy;
  lab_options lab;
  lab.world.recorded = plan.agents;
  lease_trace_limits limits;
  limits.requests = static_cast<uint32_t>(trace.requests.size()) + 1;
  lease_trace_reader reader(limits);
  std::optional<failure> wrong;
  uint64_t seq = 0;
  lab.journal = [&](event&& e) {
    e.seq = ++seq;
    e.incarnation = 1;
    if (auto taken = reader.take(e, seq); !taken && !wrong)
      wrong = taken.error();
    if (!journal)
      return;
    if (auto number = number_of(e.attempt, trace.requests.size()))
      e.attempt = trace.requests[*number].attempt;
    journal(std::move(e));
  };
  auto ran = run_core(what, std::move(lab));
  if (!ran)
    return fail(ran.error().code, "replay under " + policy + ": " + ran.error().what);
  auto replayed = reader.finish();
  if (wrong || !replayed)
    return fail(errc::invalid_input,
      fmt::format("replay under {}: its own journal is not sound: {}", policy,
        wrong ? wrong->what : replayed.error().what));
  replayed->agents_by_name = trace.agents_by_name;
  policy_replay out;
  out.policy = policy;
  out.metrics = metrics_of(*replayed);
  out.digest = ran->digest;
  if (!trace.intended)
    compare(trace, *replayed, out);
  return out;
}

} // namespace

replay_metrics metrics_of(const lease_trace& trace) {
  replay_metrics out;
  out.requests = trace.requests.size();
  out.grants = trace.grants.size();
  std::vector<nanoseconds> waits;
  waits.reserve(trace.grants.size());
  std::map<std::pair<uint32_t, uint32_t>, nanoseconds> by_agent;
  nanoseconds held{0};
  nanoseconds waited{0};
  nanoseconds end{0};
  for (const auto& r : trace.requests) {
    auto& share = by_agent[{trace.agents_by_name ? 0 : r.problem, r.agent}];
    out.lost += r.lost ? 1 : 0;
    if (!r.was_granted()) {
      out.given_up += r.gave_up != traced_request::never ? 1 : 0;
      continue;
    }
    waits.push_back(r.granted - r.asked);
    waited += waits.back();
    share += r.freed - r.granted;
    held += r.freed - r.granted;
    end = std::max(end, r.freed);
  }
  std::sort(waits.begin(), waits.end());
  out.wait_mean_s = waits.empty() ? 0 : seconds_of(waited) / static_cast<double>(waits.size());
  out.wait_p50_s = rank_s(waits, 50);
  out.wait_p90_s = rank_s(waits, 90);
  out.wait_p99_s = rank_s(waits, 99);
  out.wait_max_s = rank_s(waits, 100);
  out.makespan_s = seconds_of(end);
  if (end > nanoseconds{0} && !trace.gpus.empty())
    out.utilisation = seconds_of(held) / (seconds_of(end) * static_cast<double>(trace.gpus.size()));
  std::vector<double> shares;
  for (const auto& [agent, share] : by_agent)
    shares.push_back(seconds_of(share));
  out.jain = jain_index(shares);
  return out;
}

result<replay_report> replay_trace(const lease_trace& trace, const replay_options& options) {
  replay_report out;
  out.source = trace.source.empty() ? "broker" : trace.source;
  out.policy = trace.policy;
  out.lines = trace.lines;
  std::set<std::pair<uint32_t, uint32_t>> agents;
  for (const auto& r : trace.requests)
    agents.insert({trace.agents_by_name ? 0 : r.problem, r.agent});
  out.agents = agents.size();
  out.gpus = trace.gpus.size();
  out.span = trace.span;
  out.intended = trace.intended;
  out.notes = trace.notes;
  out.recorded = metrics_of(trace);
  if (trace.intended)
    out.assumptions.assign(std::begin(assumptions_open), std::end(assumptions_open));
  else
    out.assumptions.assign(std::begin(assumptions_closed), std::end(assumptions_closed));

  std::vector<std::string> policies;
  for (const auto& text : options.policies) {
    if (auto good = policy_from_text(text); !good)
      return fail(good.error().code, "--policy " + text + ": " + good.error().what);
    if (std::find(policies.begin(), policies.end(), text) == policies.end())
      policies.push_back(text);
  }
  if (trace.policy.empty()) {
    if (!trace.intended)
      out.notes.emplace_back("The file does not say under which lease policy it was recorded.");
  } else if (auto good = policy_from_text(trace.policy); !good) {
    out.notes.push_back("The file was recorded under '" + trace.policy
      + "', which is not known here: " + good.error().what);
  } else {
    std::erase(policies, trace.policy);
    policies.insert(policies.begin(), trace.policy);
  }
  if (policies.empty())
    return fail(errc::invalid_input,
      "no lease policy to replay under: the file names none that is known here, so give --policy");

  auto plan = plan_replay(trace);
  if (!plan)
    return pass(plan);
  out.notes.insert(out.notes.end(), plan->notes.begin(), plan->notes.end());
  for (size_t i = 0; i < policies.size(); ++i) {
    auto one = replay_under(trace, *plan, policies[i], i == 0 ? options.journal : nullptr);
    if (!one)
      return pass(one);
    one->own = policies[i] == trace.policy;
    out.policies.push_back(std::move(*one));
  }
  return out;
}

} // namespace gristmill
