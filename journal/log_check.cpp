#include "journal/log_check.hpp"

#include "journal/event_line.hpp"

#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

namespace gristmill {

namespace {

using nlohmann::json;

class checker {
public:
  void take(const event& e) {
    at_ = e.seq;
    ++out.events;
    if (e.seq != last_seq_ + 1)
      fault(fmt::format("follows number {}", last_seq_));
    last_seq_ = e.seq;
    if (e.incarnation < incarnation_)
      fault(fmt::format("incarnation {} after {}", e.incarnation, incarnation_));
    incarnation_ = e.incarnation;
    if (!check_form(e))
      return;
    take_lease(e);
    take_attempt(e);
    if (e.kind == "verdict" || e.kind == "probe_verdict")
      take_verdict(e);
    else if (e.kind == "rerun_planned" || e.kind == "attempt_lost")
      may_be_judged_again(e);
    out.ended = e.kind == "run_ended" && json::parse(e.data).value("clean", false);
  }

  log_check finish() {
    at_ = 0;
    out.open_leases = leases_.size();
    if (out.ended) {
      for (const auto& [key, seq] : leases_)
        fault(fmt::format(
          "the lease of {} with token {} (event {}) was never closed", key.first, key.second, seq));
      for (const auto& [attempt, state] : attempts_)
        if (!state.finished)
          fault(fmt::format("attempt {} (event {}) was never finished", attempt, state.seq));
    }
    for (const auto& [attempt, state] : attempts_)
      out.open_attempts += state.finished ? 0 : 1;
    return std::move(out);
  }

  log_check out;

private:
  struct attempt_state {
    uint64_t seq = 0;
    bool finished = false;
  };

  void fault(std::string what) { out.faults.push_back({at_, std::move(what)}); }

  bool check_form(const event& e) {
    auto canonical = canonical_data(e.data);
    if (!canonical) {
      fault(canonical.error().what);
      return false;
    }
    if (*canonical != e.data) {
      fault("its data is not in canonical form");
      return false;
    }
    auto line = canonical_line(e);
    auto back = parse_line(line);
    if (!back || canonical_line(*back) != line) {
      fault("it does not read back as it was written");
      return false;
    }
    return true;
  }

  void take_lease(const event& e) {
    std::pair<std::string, uint64_t> key{e.gpu, e.token};
    if (e.kind == "lease_grant") {
      ++out.leases;
      auto& newest = newest_token_[e.gpu];
      if (e.token <= newest)
        fault(fmt::format("{} is leased under token {} after {}", e.gpu, e.token, newest));
      newest = std::max(newest, e.token);
      leases_[key] = e.seq;
    } else if (e.kind == "lease_release" || e.kind == "lease_withdraw"
      || e.kind == "lease_revoke") {
      if (leases_.erase(key) == 0 && !adopted_.contains(key))
        fault(fmt::format("closes a lease of {} with token {} that is not open", e.gpu, e.token));
      adopted_.erase(key);
    } else if (e.kind == "lease_adopt") {
      adopted_.insert(key);
    }
  }

  void take_attempt(const event& e) {
    if (e.kind == "assigned") {
      if (!attempts_.try_emplace(e.attempt, attempt_state{e.seq, false}).second)
        fault("attempt " + e.attempt + " is given out a second time");
    } else if (e.kind == "attempt_finished" || e.kind == "attempt_lost"
      || e.kind == "attempt_interrupted") {
      auto found = attempts_.find(e.attempt);
      if (found == attempts_.end())
        fault("attempt " + e.attempt + " ends without having been given out");
      else if (found->second.finished)
        fault("attempt " + e.attempt + " ends a second time");
      else
        found->second.finished = true;
    }
  }

  void take_verdict(const event& e) {
    ++out.verdicts;
    auto data = json::parse(e.data);
    auto name = std::make_tuple(e.problem, e.candidate, data.value("key", std::string{}), e.kind);
    attempt_verdicts_[e.attempt] = name;
    if (!verdicts_.insert(name).second && again_.erase(name) == 0)
      fault(fmt::format("candidate {} of {} gets a second verdict", e.candidate, e.problem));
  }

  void may_be_judged_again(const event& e) {
    for (const auto& name : verdicts_)
      if (e.kind == "rerun_planned" && std::get<0>(name) == e.problem
        && std::get<1>(name) == e.candidate)
        again_.insert(name);
    // Its verdict may be there without having been counted.
    if (auto judged = attempt_verdicts_.find(e.attempt);
        e.kind == "attempt_lost" && judged != attempt_verdicts_.end())
      again_.insert(judged->second);
  }

  using verdict_name = std::tuple<std::string, std::string, std::string, std::string>;

  uint64_t at_ = 0;
  uint64_t last_seq_ = 0;
  uint32_t incarnation_ = 0;
  std::map<std::string, uint64_t> newest_token_;
  std::map<std::pair<std::string, uint64_t>, uint64_t> leases_;
  std::set<std::pair<std::string, uint64_t>> adopted_;
  std::map<std::string, attempt_state> attempts_;
  std::set<verdict_name> verdicts_;
  std::set<verdict_name> again_;
  std::map<std::string, verdict_name> attempt_verdicts_;
};

} // namespace

log_check check_log(std::span<const event> events) {
  checker c;
  for (const auto& e : events)
    c.take(e);
  return c.finish();
}

} // namespace gristmill
