#include "cli/lease_log.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

namespace gristmill {

using nlohmann::json;
using std::chrono::nanoseconds;

namespace {

const char* const count_names[] = {"adoptions", "alarms", "candidates_failed", "candidates_refused",
  "expiries", "gpus_lost", "grants", "policy_failures", "probes_failed", "probes_passed",
  "probes_without_answer", "quarantines", "releases", "reruns", "revocations", "tainted",
  "waits_in_vain", "withdrawals"};

time_spread spread_of(std::vector<nanoseconds> times) {
  time_spread out;
  out.count = times.size();
  if (times.empty())
    return out;
  std::sort(times.begin(), times.end());
  // The nearest rank: a value that was seen.
  auto rank = [&](size_t percent) { return times[(times.size() * percent + 99) / 100 - 1]; };
  out.p50 = rank(50);
  out.p95 = rank(95);
  out.max = times.back();
  return out;
}

/// What the broker writes when an executor has gone by itself or was sent home.
constexpr const char* executor_ended = "its executor has ended";

lease_class class_of(const std::string& text) {
  for (auto what : {lease_class::correctness, lease_class::timing, lease_class::profile,
         lease_class::reference, lease_class::official})
    if (to_string(what) == text)
      return what;
  return lease_class::timing;
}

class reader {
public:
  void take(const event& e) {
    data_ = json::parse(e.data);
    // Whatever is told of an attempt says that the run still went on.
    work_seen_ += e.attempt.empty() && e.kind != "gpu_up" ? 0 : 1;
    out.as_of = std::max(out.as_of, e.t);
    out.epoch = std::max<uint64_t>(out.epoch, e.incarnation);
    if (e.kind == "run_started")
      out.policy = text("lease_policy");
    else if (e.kind == "run_ended")
      end_run(e);
    else if (e.kind == "run_resumed")
      out.ended = false;
    else if (e.kind == "alarm" || e.kind == "alarm_over")
      take_alarm(e);
    else if (e.kind == "policy_failed")
      count("policy_failures");
    else if (e.kind == "lease_request")
      take_request(e);
    else if (e.kind == "lease_wait_end") {
      queue_.erase(number("ticket"));
      count("waits_in_vain");
    } else if (!e.gpu.empty())
      take_gpu(e);
  }

  lease_log finish(nanoseconds now) {
    if (!out.ended)
      out.as_of = std::max(out.as_of, now);
    for (const auto& name : order_) {
      auto& g = gpus_.at(name);
      g.shown.age = out.as_of - g.since;
      if (g.leased)
        g.shown.held = out.as_of - g.granted;
      out.gpus.push_back(g.shown);
    }
    out.wait = spread_of(std::move(waits_));
    out.hold = spread_of(std::move(holds_));
    int64_t in_service = 0;
    for (const auto& g : out.gpus)
      in_service += g.phase == gpu_phase::free || g.phase == gpu_phase::granted
          || g.phase == gpu_phase::active || g.phase == gpu_phase::releasing
          || g.phase == gpu_phase::verifying
        ? 1
        : 0;
    for (auto& [ticket, w] : queue_) {
      w.waited = out.as_of - w.since;
      w.ahead = static_cast<uint32_t>(out.queue.size());
      if (in_service != 0)
        w.estimated_wait = out.hold.p50 * (static_cast<int64_t>(w.ahead) + 1) / in_service;
      out.queue.push_back(w);
    }
    for (const auto& [flow, usage] : usage_)
      out.usage.push_back(usage);
    for (const auto& [key, alarm] : alarms_)
      out.alarms.push_back(alarm);
    return std::move(out);
  }

  lease_log out;

private:
  struct gpu {
    lease_log::gpu_row shown;
    nanoseconds since{0};
    nanoseconds granted{0};
    bool leased = false;
    /// What `work_seen_` was when it went down.
    uint64_t down_after = 0;
  };

  std::string text(const char* key) const {
    auto found = data_.find(key);
    return found != data_.end() && found->is_string() ? found->get<std::string>() : std::string{};
  }
  uint64_t number(const char* key) const {
    auto found = data_.find(key);
    return found != data_.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
  }
  nanoseconds time(const char* key) const {
    return nanoseconds{static_cast<int64_t>(std::min<uint64_t>(number(key), INT64_MAX))};
  }
  void count(const char* name) { ++out.counts[name]; }

  void take_alarm(const event& e) {
    auto key = std::make_tuple(e.reason, e.gpu, number("ticket"));
    if (e.kind == "alarm_over") {
      alarms_.erase(key);
      return;
    }
    count("alarms");
    alarms_[key] = {e.reason, e.gpu, number("ticket"), text("detail")};
  }

  void take_request(const event& e) {
    lease_log::waiting w;
    w.ticket = number("ticket");
    w.what = class_of(text("class"));
    w.flow = {e.problem, text("agent")};
    w.need = text("need");
    w.attempt = e.attempt;
    w.since = e.t;
    queue_[w.ticket] = std::move(w);
  }

  void enter(gpu& g, gpu_phase phase, const event& e, std::string reason = {}) {
    if (g.shown.phase != phase)
      g.since = e.t;
    g.shown.phase = phase;
    g.shown.reason = std::move(reason);
  }

  void grant(gpu& g, const event& e) {
    count("grants");
    queue_.erase(number("ticket"));
    waits_.push_back(time("queue_ns"));
    begin(g, e, e.t);
    enter(g, gpu_phase::granted, e);
  }

  void begin(gpu& g, const event& e, nanoseconds granted) {
    g.leased = true;
    g.granted = granted;
    g.shown.token = e.token;
    g.shown.what = class_of(text("class"));
    g.shown.flow = {e.problem, text("agent")};
    g.shown.attempt = e.attempt;
    g.shown.term = time("term_ns");
  }

  /// A run sends its executors home when all work is done, and the broker has to call each of them
  /// gone. That is an end and no loss. A GPU that went earlier, or for another reason, stays lost.
  void end_run(const event& e) {
    out.ended = true;
    for (auto& [name, g] : gpus_)
      if (g.shown.phase == gpu_phase::lost && g.down_after == work_seen_
        && g.shown.reason == executor_ended) {
        --out.counts["gpus_lost"];
        g.shown.phase = gpu_phase::absent;
        g.shown.ended = true;
        g.shown.reason = "the run is over";
        g.since = e.t;
      }
  }

  /// Nothing of its lease is left, or nobody can tell any more.
  void close(gpu& g, const event& e) {
    if (!g.leased)
      return;
    g.leased = false;
    auto held = e.t - g.granted;
    holds_.push_back(held);
    auto& used = usage_[g.shown.flow];
    used.flow = g.shown.flow;
    used.held_ns += static_cast<uint64_t>(std::max(held, nanoseconds{0}).count());
    ++used.leases;
    g.shown.flow = {};
    g.shown.attempt.clear();
    g.shown.term = nanoseconds{0};
    g.shown.held = nanoseconds{0};
  }

  void take_gpu(const event& e) {
    auto [found, fresh] = gpus_.try_emplace(e.gpu);
    auto& g = found->second;
    if (fresh) {
      g.shown.gpu = static_cast<uint32_t>(order_.size());
      g.shown.name = e.gpu;
      order_.push_back(e.gpu);
    }
    const auto& kind = e.kind;
    if (kind == "lease_grant") {
      grant(g, e);
    } else if (kind == "lease_adopt") {
      count("adoptions");
      begin(g, e, e.t - time("held_ns"));
      enter(g, gpu_phase::active, e);
    } else if (kind == "lease_active") {
      enter(g, gpu_phase::active, e);
    } else if (kind == "lease_release" || kind == "lease_withdraw" || kind == "lease_revoke") {
      count(kind == "lease_release" ? "releases"
                                    : (kind == "lease_withdraw" ? "withdrawals" : "revocations"));
      if (kind == "lease_revoke" && e.reason == "expired")
        count("expiries");
      enter(g, gpu_phase::releasing, e, e.reason);
    } else if (kind == "lease_tainted") {
      count("tainted");
    } else if (kind == "gpu_verifying") {
      enter(g, gpu_phase::verifying, e, e.reason);
    } else if (kind == "gpu_free" || kind == "gpu_up") {
      close(g, e);
      enter(g, gpu_phase::free, e);
    } else if (kind == "gpu_draining") {
      close(g, e);
      enter(g, gpu_phase::draining, e, e.reason);
    } else if (kind == "gpu_suspect") {
      close(g, e);
      enter(g, gpu_phase::suspect, e, e.reason);
    } else if (kind == "gpu_quarantined") {
      count("quarantines");
      close(g, e);
      enter(g, gpu_phase::quarantined, e, e.reason);
    } else if (kind == "gpu_down") {
      count("gpus_lost");
      close(g, e);
      enter(g, gpu_phase::lost, e, e.reason);
      g.down_after = work_seen_;
    } else if (kind == "gpu_probe") {
      count(e.reason == "passed"
          ? "probes_passed"
          : (e.reason == "failed" ? "probes_failed" : "probes_without_answer"));
    } else if (kind == "candidate_failed") {
      count("candidates_failed");
    } else if (kind == "candidate_poison") {
      count("candidates_refused");
    } else if (kind == "rerun") {
      count("reruns");
    }
  }

  json data_;
  uint64_t work_seen_ = 0;
  std::map<std::string, gpu> gpus_;
  std::vector<std::string> order_;
  std::map<uint64_t, lease_log::waiting> queue_;
  std::map<lease_flow, flow_usage> usage_;
  std::map<std::tuple<std::string, std::string, uint64_t>, broker_alarm> alarms_;
  std::vector<nanoseconds> waits_;
  std::vector<nanoseconds> holds_;
};

double seconds(nanoseconds t) {
  return std::chrono::duration<double>(t).count();
}

std::string line_of(const time_spread& s) {
  if (s.count == 0)
    return "none";
  return fmt::format("p50 {:.3f} s, p95 {:.3f} s, max {:.3f} s of {}", seconds(s.p50),
    seconds(s.p95), seconds(s.max), s.count);
}

std::string phase_text(const lease_log::gpu_row& g) {
  return g.ended ? "ended" : to_string(g.phase);
}

json json_of(const time_spread& s) {
  return {{"count", s.count}, {"p50_ns", s.p50.count()}, {"p95_ns", s.p95.count()},
    {"max_ns", s.max.count()}};
}

} // namespace

result<lease_log> read_lease_log(std::span<const event> events, nanoseconds now) {
  reader r;
  for (const auto* name : count_names)
    r.out.counts[name] = 0;
  for (const auto& e : events) {
    try {
      r.take(e);
    } catch (const json::exception& error) {
      return fail(errc::invalid_input,
        fmt::format("event {} ({}): its data cannot be read: {}", e.seq, e.kind, error.what()));
    }
  }
  return r.finish(now);
}

std::string to_text(const lease_log& log) {
  auto out = fmt::format("leases {} {:.3f} s after the start; policy {}; start {} of the broker\n",
    log.ended ? "at the end," : "of a run that goes on or was killed,", seconds(log.as_of),
    log.policy, log.epoch);
  out += "\nGPU                    phase        token      age s  class        held s  held by\n";
  for (const auto& g : log.gpus) {
    auto leased = !g.flow.problem.empty() || !g.attempt.empty();
    out += fmt::format(
      "{:<22} {:<11} {:>6} {:>10.3f}  ", g.name, phase_text(g), g.token, seconds(g.age));
    if (leased)
      out += fmt::format("{:<11} {:>7.3f}  {} ({} of {})", to_string(g.what), seconds(g.held),
        g.attempt, g.flow.agent, g.flow.problem);
    else
      out += g.reason;
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  out += fmt::format("\nwaiting: {}\n", log.queue.size());
  for (const auto& w : log.queue)
    out +=
      fmt::format("  ticket {:<6} {:<11} waits {:.3f} s, about {:.3f} s to go  {} ({} of {})\n",
        w.ticket, to_string(w.what), seconds(w.waited), seconds(w.estimated_wait), w.attempt,
        w.flow.agent, w.flow.problem);
  out += fmt::format("\nalarms: {}\n", log.alarms.size());
  for (const auto& a : log.alarms)
    out += fmt::format("  {} {} {}\n", a.kind, a.gpu, a.detail);
  out += "\nGPU time by flow\n";
  for (const auto& u : log.usage)
    out += fmt::format("  {:<28} {:<14} {:>12.3f} s in {} leases\n", u.flow.problem, u.flow.agent,
      static_cast<double>(u.held_ns) / 1e9, u.leases);
  out += fmt::format("\nwait  {}\nhold  {}\n\n", line_of(log.wait), line_of(log.hold));
  for (const auto& [name, n] : log.counts)
    out += fmt::format("  {:<22} {}\n", name, n);
  return out;
}

std::string to_json(const lease_log& log) {
  json root{{"schema", "gristmill.leases/1"}, {"ended", log.ended}, {"as_of_ns", log.as_of.count()},
    {"policy", log.policy}, {"epoch", log.epoch}, {"counts", log.counts},
    {"wait", json_of(log.wait)}, {"hold", json_of(log.hold)}};
  auto& gpus = root["gpus"] = json::array();
  for (const auto& g : log.gpus) {
    json row{{"name", g.name}, {"phase", phase_text(g)}, {"token", g.token},
      {"age_ns", g.age.count()}, {"reason", g.reason}};
    if (!g.flow.problem.empty() || !g.attempt.empty())
      row["lease"] = {{"attempt", g.attempt}, {"problem", g.flow.problem}, {"agent", g.flow.agent},
        {"class", to_string(g.what)}, {"held_ns", g.held.count()}, {"term_ns", g.term.count()}};
    gpus.push_back(std::move(row));
  }
  auto& queue = root["queue"] = json::array();
  for (const auto& w : log.queue)
    queue.push_back({{"ticket", w.ticket}, {"class", to_string(w.what)},
      {"problem", w.flow.problem}, {"agent", w.flow.agent}, {"attempt", w.attempt},
      {"need", w.need}, {"waited_ns", w.waited.count()}, {"ahead", w.ahead},
      {"estimated_wait_ns", w.estimated_wait.count()}});
  auto& usage = root["usage"] = json::array();
  for (const auto& u : log.usage)
    usage.push_back({{"problem", u.flow.problem}, {"agent", u.flow.agent}, {"held_ns", u.held_ns},
      {"leases", u.leases}});
  auto& alarms = root["alarms"] = json::array();
  for (const auto& a : log.alarms)
    alarms.push_back(
      {{"kind", a.kind}, {"gpu", a.gpu}, {"ticket", a.ticket}, {"detail", a.detail}});
  return root.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace gristmill
