#include "llm/traffic/gateway_core.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

namespace gristmill {

using std::chrono::nanoseconds;

result<gateway_core> gateway_core::make(gateway_config config) {
  std::vector<deployment_price> prices;
  for (size_t d = 0; d < config.models.deployments.size(); ++d) {
    auto price = price_for(config.models, d, config.allow_unpriced);
    if (!price)
      return pass(price);
    prices.push_back(*price);
  }
  return gateway_core(std::move(config), std::move(prices));
}

gateway_core::gateway_core(gateway_config config, std::vector<deployment_price> prices)
  : config_(std::move(config)), prices_(std::move(prices)), book_(config_.limits),
    retries_(config_.policy.calls_per_retry, config_.policy.retries_at_start),
    random_(config_.seed) {
  for (const auto& d : config_.models.deployments)
    deployments_.emplace_back(d);
  for (const auto& s : config_.spent_before) {
    book_.restore(s.problem, s.agent, s.spent, s.held);
    next_try_ = std::max(next_try_, s.last_try + 1);
  }
}

std::vector<gateway_command> gateway_core::on_request(
  uint64_t asker, llm_request request, nanoseconds now) {
  commands out;
  auto no = [&](errc code, std::string why) {
    gateway_command refusal;
    refusal.what = gateway_command::kind::refuse;
    refusal.asker = asker;
    refusal.why = {code, std::move(why)};
    out.push_back(std::move(refusal));
    return out;
  };
  const std::pair key{request.agent, request.call};
  if (!closed_.empty())
    return no(errc::provider_refused, closed_);
  if (by_agent_.count(key) != 0)
    return no(errc::invalid_input,
      fmt::format(
        "llm_request.call: agent '{}' has call {} open already", request.agent, request.call));
  if (request.output_tokens_max == 0)
    return no(errc::invalid_input, "llm_request.output_tokens_max: must be at least 1");
  if (waiting_ >= config_.policy.waiting_max)
    return no(
      errc::queue_full, fmt::format("{} calls of models wait already; try again later", waiting_));
  call fresh;
  fresh.asker = asker;
  fresh.cap = request.output_tokens_max;
  fresh.request = std::move(request);
  fresh.arrived = fresh.not_before = now;
  if (open_to(fresh).empty()) {
    const auto& role = config_.models.role(fresh.request.purpose);
    const bool any_fits = std::any_of(role.begin(), role.end(),
      [&](size_t d) { return fresh.cap <= config_.models.deployments[d].output_tokens_max; });
    return no(any_fits ? errc::provider_refused : errc::invalid_input, why_nobody(fresh));
  }
  auto it = calls_.insert(calls_.end(), std::move(fresh));
  by_agent_.emplace(key, it);
  ++waiting_;
  schedule(now, out);
  return out;
}

std::vector<gateway_command> gateway_core::on_cancel(const llm_cancel& what, nanoseconds now) {
  commands out;
  auto found = by_agent_.find({what.agent, what.call});
  if (found == by_agent_.end())
    return out;
  auto it = found->second;
  it->truncated.reset();
  if (it->open_try != 0) {
    gateway_command stop;
    stop.what = gateway_command::kind::cancel;
    stop.record = tries_.at(it->open_try).record;
    out.push_back(std::move(stop));
  }
  refuse(it, errc::shutting_down, "the call was cancelled", now, out);
  schedule(now, out);
  return out;
}

std::vector<gateway_command> gateway_core::on_ended(const try_result& ended, nanoseconds now) {
  commands out;
  auto found = tries_.find(ended.id);
  if (found == tries_.end())
    return out;
  auto t = std::move(found->second);
  tries_.erase(found);
  end(std::move(t), ended, now, out);
  schedule(now, out);
  return out;
}

std::vector<gateway_command> gateway_core::on_due(nanoseconds now) {
  commands out;
  give_up_late(now, out);
  schedule(now, out);
  return out;
}

std::vector<gateway_command> gateway_core::on_shutdown(
  const std::set<uint64_t>& unsent, nanoseconds now) {
  commands out;
  closed_ = "the run is ending";
  for (auto it = calls_.begin(); it != calls_.end();) {
    auto here = it++;
    if (here->cancelled)
      continue;
    here->truncated.reset();
    refuse(here, errc::shutting_down, closed_, now, out);
  }
  auto open = std::move(tries_);
  tries_.clear();
  for (auto& [id, t] : open) {
    try_result ended;
    ended.id = id;
    ended.sent = unsent.count(id) == 0;
    ended.cancelled = true;
    end(std::move(t), ended, now, out);
  }
  return out;
}

std::optional<nanoseconds> gateway_core::next_due(nanoseconds now) const {
  std::optional<nanoseconds> first;
  auto at = [&](nanoseconds due) {
    due = std::max(due, now);
    if (!first || due < *first)
      first = due;
  };
  for (const auto& [id, t] : tries_)
    at(t.give_up);
  bool ready = false;
  for (const auto& c : calls_) {
    if (c.open_try != 0 || c.cancelled)
      continue;
    at(c.arrived + config_.policy.patience);
    if (c.not_before > now)
      at(c.not_before);
    else
      ready = true;
  }
  if (!ready)
    return first;
  // A call that waits for a place, a bucket or a pause; the exact time depends on its size, so the
  // deployment says when to look again.
  for (const auto& c : calls_) {
    if (c.open_try != 0 || c.cancelled || c.not_before > now)
      continue;
    auto likely = input_tokens_likely(c.request);
    for (auto d : open_to(c))
      if (auto why = deployments_[d].may_send(likely, c.cap, now);
          why.what != obstacle::none && why.again > now)
        at(why.again);
  }
  return first;
}

std::vector<size_t> gateway_core::open_to(const call& c) const {
  std::vector<size_t> out;
  for (auto d : config_.models.role(c.request.purpose))
    if (c.cap <= config_.models.deployments[d].output_tokens_max && c.excluded.count(d) == 0
      && deployments_[d].closed().empty())
      out.push_back(d);
  return out;
}

std::string gateway_core::why_nobody(const call& c) const {
  std::string out = fmt::format("no deployment takes this call of role '{}'", c.request.purpose);
  for (auto d : config_.models.role(c.request.purpose)) {
    const auto& what = config_.models.deployments[d];
    out += "; '" + what.name + "': ";
    if (!deployments_[d].closed().empty())
      out += deployments_[d].closed();
    else if (c.cap > what.output_tokens_max)
      out += fmt::format(
        "its output_tokens_max is {}, the call wants {}", what.output_tokens_max, c.cap);
    else
      out += c.last_trouble.empty() ? "refused it" : c.last_trouble;
  }
  return out;
}

std::optional<size_t> gateway_core::choose(const call& c, nanoseconds now) const {
  auto all = open_to(c);
  // Those that have failed this call often enough come into question when no other is left.
  auto fresh = all;
  std::erase_if(fresh, [&](size_t d) {
    auto found = c.failures.find(d);
    return found != c.failures.end() && found->second >= config_.policy.failures_before_fail_over;
  });
  auto likely = input_tokens_likely(c.request);
  for (auto d : fresh.empty() ? all : fresh) {
    auto why = deployments_[d].may_send(likely, c.cap, now);
    switch (why.what) {
    case obstacle::none:
      return d;
    case obstacle::full:
      return std::nullopt;
    case obstacle::paused:
      if (why.again - now <= config_.policy.pause_before_fail_over)
        return std::nullopt;
      break;
    case obstacle::broken:
    case obstacle::closed:
      break;
    }
  }
  return std::nullopt;
}

std::vector<gateway_core::calls::iterator> gateway_core::in_fair_order(nanoseconds now) {
  // The problem with the fewest calls under way is next, then the one that was served longest ago;
  // within it the order of arrival. An agent's calls stay in order.
  struct ready {
    uint32_t in_flight;
    uint64_t served;
    size_t arrival;
    calls::iterator it;
  };
  std::vector<ready> found;
  std::set<std::string_view> agents;
  size_t arrival = 0;
  for (auto it = calls_.begin(); it != calls_.end(); ++it) {
    if (it->open_try != 0 || it->cancelled)
      continue;
    if (!agents.insert(it->request.agent).second || it->not_before > now)
      continue;
    const auto& of_problem = shares_[it->request.problem];
    found.push_back({of_problem.in_flight, of_problem.served, arrival++, it});
  }
  std::sort(found.begin(), found.end(), [](const ready& a, const ready& b) {
    return std::tie(a.in_flight, a.served, a.arrival) < std::tie(b.in_flight, b.served, b.arrival);
  });
  std::vector<calls::iterator> out;
  for (const auto& r : found)
    out.push_back(r.it);
  return out;
}

void gateway_core::schedule(nanoseconds now, commands& out) {
  bool again = waiting_ > 0;
  while (again) {
    again = false;
    const bool any_place = std::any_of(deployments_.begin(), deployments_.end(),
      [&](const deployment_state& d) { return d.may_send(0, 0, now).what == obstacle::none; });
    if (!any_place)
      return;
    // One at a time, because each call that is sent changes whose turn it is.
    for (auto it : in_fair_order(now))
      if (try_send(it, now, out)) {
        again = true;
        break;
      }
  }
}

bool gateway_core::try_send(calls::iterator it, nanoseconds now, commands& out) {
  auto d = choose(*it, now);
  if (!d)
    return false;
  auto worst = worst_case(config_.models.deployments[*d], prices_[*d], it->request, it->cap);
  if (auto no = book_.would_refuse(it->request.problem, it->request.agent, worst)) {
    if (!no->for_good)
      return false;
    if (no->of_run && !budget_told_) {
      budget_told_ = true;
      gateway_command stop;
      stop.what = gateway_command::kind::stop;
      stop.why = {errc::budget_exhausted, no->text()};
      out.push_back(std::move(stop));
    }
    refuse(it, errc::budget_exhausted, no->text(), now, out);
    return true;
  }
  auto ticket = book_.reserve(it->request.problem, it->request.agent, worst);
  send(it, *d, ticket, worst, now, out);
  return true;
}

void gateway_core::send(calls::iterator it, size_t d, uint64_t ticket, const budget_amounts& worst,
  nanoseconds now, commands& out) {
  const auto& what = config_.models.deployments[d];
  open_try t;
  t.owner = it;
  t.deployment = d;
  t.ticket = ticket;
  t.input_likely = input_tokens_likely(it->request);
  t.place = deployments_[d].sent(t.input_likely, it->cap, now);
  t.sent_at = now;
  t.give_up = now
    + (what.deadlines.wall.count() > 0 ? what.deadlines.wall + config_.policy.wall_grace
                                       : config_.policy.try_max);
  auto& r = t.record;
  r.id = next_try_++;
  r.call = it->request.call;
  r.problem = it->request.problem;
  r.agent = it->request.agent;
  r.purpose = it->request.purpose;
  r.deployment = what.name;
  r.model = what.model;
  r.number = ++it->tries;
  r.cap = it->cap;
  r.reserved = worst;
  r.origin = prices_[d].origin;
  if (it->tries == 1)
    retries_.first_try();
  it->open_try = r.id;
  --waiting_;
  auto& of_problem = shares_[it->request.problem];
  ++of_problem.in_flight;
  of_problem.served = next_serve_++;

  gateway_command order;
  order.what = gateway_command::kind::send;
  order.record = r;
  order.request = it->request;
  order.request.output_tokens_max = it->cap;
  order.deployment = d;
  out.push_back(std::move(order));
  tries_.emplace(r.id, std::move(t));
}

void gateway_core::give_up_late(nanoseconds now, commands& out) {
  std::vector<uint64_t> late;
  for (const auto& [id, t] : tries_)
    if (t.give_up <= now)
      late.push_back(id);
  for (auto id : late) {
    auto t = std::move(tries_.extract(id).mapped());
    gateway_command stop;
    stop.what = gateway_command::kind::cancel;
    stop.record = t.record;
    out.push_back(std::move(stop));
    try_result ended;
    ended.id = id;
    ended.timed_out = true;
    ended.reply.failed = {
      trouble_kind::ambiguous, nanoseconds{0}, "the transport has not ended the call in time"};
    end(std::move(t), ended, now, out);
  }
  for (auto it = calls_.begin(); it != calls_.end();) {
    auto here = it++;
    if (here->open_try != 0 || here->cancelled || here->arrived + config_.policy.patience > now)
      continue;
    std::string why =
      here->last_trouble.empty() ? "no deployment had room or budget for it" : here->last_trouble;
    refuse(here, errc::timed_out,
      fmt::format("the call has waited for {} s: {}",
        std::chrono::duration_cast<std::chrono::seconds>(now - here->arrived).count(), why),
      now, out);
  }
}

void gateway_core::answer(calls::iterator it, llm_reply reply, nanoseconds now, commands& out) {
  reply.call = it->request.call;
  reply.cost_nano_usd = it->cost_nano_usd;
  reply.tries = it->tries;
  reply.took = now - it->arrived;
  gateway_command done;
  done.what = gateway_command::kind::answer;
  done.asker = it->asker;
  done.reply = std::move(reply);
  out.push_back(std::move(done));
  forget(it);
}

void gateway_core::refuse(
  calls::iterator it, errc code, std::string why, nanoseconds now, commands& out) {
  if (it->truncated) {
    auto reply = std::move(*it->truncated);
    answer(it, std::move(reply), now, out);
    return;
  }
  gateway_command no;
  no.what = gateway_command::kind::refuse;
  no.asker = it->asker;
  no.why = {code, std::move(why)};
  out.push_back(std::move(no));
  forget(it);
}

void gateway_core::forget(calls::iterator it) {
  by_agent_.erase({it->request.agent, it->request.call});
  if (it->open_try != 0) {
    // Its try goes on, and is counted when it ends.
    it->cancelled = true;
    return;
  }
  --waiting_;
  calls_.erase(it);
}

void gateway_core::note(size_t d, std::string text, commands& out) const {
  gateway_command told;
  told.what = gateway_command::kind::note;
  told.deployment = d;
  told.text = std::move(text);
  out.push_back(std::move(told));
}

llm_snapshot gateway_core::snapshot(nanoseconds now) const {
  llm_snapshot out;
  for (size_t d = 0; d < deployments_.size(); ++d) {
    const auto& s = deployments_[d];
    const auto& what = config_.models.deployments[d];
    out.deployments.push_back({what.name, what.model, s.in_flight(), s.window(), s.calls, s.retries,
      s.failures, s.paused_text(now)});
  }
  out.waiting = static_cast<uint32_t>(waiting_);
  out.calls = calls_ended_;
  out.usage = usage_;
  out.calls_unknown = calls_unknown_;
  out.spent_nano_usd = book_.run().spent.nano_usd;
  out.reserved_nano_usd = (budget_amounts{book_.run().held} += book_.run().reserved).nano_usd;
  out.closed = closed_;
  return out;
}

} // namespace gristmill
