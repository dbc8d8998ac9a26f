#include "llm/traffic/back_off.hpp"
#include "llm/traffic/gateway_core.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

void add_usage(llm_usage& to, const llm_usage& more) {
  to.state = usage_state::exact;
  for (auto part : {&llm_usage::uncached_input, &llm_usage::cache_read, &llm_usage::cache_write,
         &llm_usage::visible_output, &llm_usage::reasoning})
    to.*part = to.*part > UINT64_MAX - more.*part ? UINT64_MAX : to.*part + more.*part;
}

/// The model stopped, and not because of our cap: its own context or its server's limit did it, and
/// a larger cap changes nothing.
bool stopped_before_cap(const llm_usage& usage, uint32_t cap) {
  return usage.state == usage_state::exact && usage.output() < cap - cap / 16;
}

} // namespace

trouble gateway_core::trouble_of(const open_try&, const try_result& ended) const {
  if (ended.reply.failed.kind != trouble_kind::none)
    return ended.reply.failed;
  auto odd = [](const char* what) {
    return trouble{trouble_kind::ambiguous, nanoseconds{0}, what};
  };
  if (!ended.sent)
    return {trouble_kind::transient, nanoseconds{0}, "the call was not sent"};
  if (ended.reply.finish == finish_kind::unknown)
    return odd("the model stopped for a reason that nobody knows");
  // A server that has failed may dress it up as success.
  if (ended.reply.finish == finish_kind::stop && is_blank(ended.reply.text))
    return odd("the answer is empty");
  return {};
}

void gateway_core::end(open_try t, const try_result& ended, nanoseconds now, commands& out) {
  auto it = t.owner;
  auto why = trouble_of(t, ended);
  auto usage = ended.reply.usage;
  if (ended.refused_unbilled && usage.state != usage_state::exact)
    usage = llm_usage{.state = usage_state::exact};
  auto& d = deployments_[t.deployment];
  d.ended(t.input_likely, t.record.cap, usage, ended.sent, now);
  d.heed(ended.limits, now);
  std::string outcome =
    why.kind == trouble_kind::none ? to_string(ended.reply.finish) : to_string(why.kind);
  if (!ended.sent)
    outcome = "not sent";
  if (ended.cancelled)
    outcome = "cancelled";
  t.record.reason = why.kind == trouble_kind::none ? ended.reply.note : why.what;
  count(t, ended, outcome, now, out);
  --shares_[it->request.problem].in_flight;
  it->open_try = 0;
  ++waiting_;
  if (it->cancelled) {
    // Answered long ago; what the server did is still worth knowing.
    if (why.kind == trouble_kind::none && !ended.cancelled)
      d.success();
    else
      d.unlearned(t.place);
    --waiting_;
    calls_.erase(it);
    return;
  }
  if (ended.cancelled) {
    d.unlearned(t.place);
    refuse(it, errc::shutting_down, "the call was ended", now, out);
  } else if (why.kind == trouble_kind::none) {
    after_answer(t, ended, now, out);
  } else {
    ++d.failures;
    it->last_trouble = why.what;
    after_trouble(t, ended, why, now, out);
  }
}

void gateway_core::count(open_try& t, const try_result& ended, const std::string& outcome,
  nanoseconds now, commands& out) {
  auto& r = t.record;
  const auto& price = prices_[t.deployment];
  const auto& usage = ended.reply.usage;
  r.outcome = outcome;
  r.usage = usage;
  r.request_id = ended.reply.request_id;
  r.took = now - t.sent_at;
  if (!ended.reply.model.empty())
    r.model = ended.reply.model;
  budget_amounts one_call;
  one_call.calls = 1;
  if (!ended.sent) {
    book_.release(t.ticket);
  } else if (usage.state == usage_state::exact || ended.refused_unbilled) {
    r.spent = usage.state == usage_state::exact ? exact_use(price, usage) : one_call;
    r.usage.state = usage_state::exact;
    book_.settle(t.ticket, r.spent);
    add_usage(usage_, usage);
  } else {
    // An estimate may be too low, so it never makes the held amount smaller.
    auto estimate = exact_use(price, usage);
    budget_amounts worst{std::max(r.reserved.nano_usd, estimate.nano_usd),
      std::max(r.reserved.tokens, estimate.tokens), 1, 0, 0};
    r.spent = one_call;
    r.held = worst;
    r.held.calls = 0;
    book_.hold(t.ticket, one_call, worst);
    ++calls_unknown_;
  }
  if (ended.sent)
    ++calls_ended_;
  t.owner->cost_nano_usd += r.spent.nano_usd + r.held.nano_usd;
  gateway_command kept;
  kept.what = gateway_command::kind::ended;
  kept.record = r;
  out.push_back(std::move(kept));
}

llm_reply gateway_core::reply_of(const open_try& t, const try_result& ended) const {
  llm_reply reply;
  reply.text = ended.reply.text;
  reply.finish = ended.reply.finish;
  reply.usage = ended.reply.usage;
  reply.deployment = t.record.deployment;
  reply.model = t.record.model;
  reply.request_id = ended.reply.request_id;
  reply.first_event = ended.first_event;
  return reply;
}

void gateway_core::after_answer(
  const open_try& t, const try_result& ended, nanoseconds now, commands& out) {
  auto it = t.owner;
  deployments_[t.deployment].success();
  auto reply = reply_of(t, ended);
  if (reply.finish != finish_kind::length) {
    answer(it, std::move(reply), now, out);
    return;
  }
  if (stopped_before_cap(reply.usage, it->cap)) {
    reply.finish = finish_kind::context_exceeded;
    answer(it, std::move(reply), now, out);
    return;
  }
  const auto most = config_.models.deployments[t.deployment].output_tokens_max;
  if (it->cap >= most || it->resends >= config_.policy.truncation_resends_max) {
    answer(it, std::move(reply), now, out);
    return;
  }
  // The same prompt again: complaining about a form that was only cut off makes models repeat it.
  ++it->resends;
  it->cap = it->cap > most / 2 ? most : it->cap * 2;
  it->truncated = std::move(reply);
  it->not_before = now;
}

void gateway_core::after_trouble(
  const open_try& t, const try_result& ended, const trouble& why, nanoseconds now, commands& out) {
  auto& d = deployments_[t.deployment];
  auto broke = [&](bool opened) {
    if (opened)
      note(t.deployment, "stops for a while: " + why.what, out);
  };
  switch (why.kind) {
  case trouble_kind::none:
    break;
  case trouble_kind::throttle:
    wait_out_throttle(t, why, now, out);
    break;
  case trouble_kind::money:
    d.answered(t.place);
    close_deployment(t.deployment, "no money or quota left: " + why.what, t.owner, now, out);
    move_on(t.owner, errc::provider_refused, now, out);
    break;
  case trouble_kind::config:
    after_config_trouble(t, ended, why, now, out);
    break;
  case trouble_kind::too_big:
    d.answered(t.place);
    after_too_big(t, ended, why, now, out);
    break;
  case trouble_kind::overload:
    broke(d.failed(t.place, true, now));
    retry(t, why, ended.timed_out, now, out);
    break;
  case trouble_kind::transient:
  case trouble_kind::ambiguous:
    broke(d.failed(t.place, false, now));
    retry(t, why, ended.timed_out, now, out);
    break;
  }
}

void gateway_core::wait_out_throttle(
  const open_try& t, const trouble& why, nanoseconds now, commands& out) {
  auto it = t.owner;
  auto& d = deployments_[t.deployment];
  if (why.wait > config_.policy.pause_max) {
    d.answered(t.place);
    close_deployment(t.deployment,
      fmt::format("asks for a pause of {} s: {}",
        std::chrono::duration_cast<std::chrono::seconds>(why.wait).count(), why.what),
      it, now, out);
    move_on(it, errc::provider_refused, now, out);
    return;
  }
  ++it->throttles;
  auto wait = back_off(why, it->throttles, random_);
  // Everybody waits as long as the server said, and those who were refused a little longer, each on
  // its own. A server that named no time pauses everybody for the drawn one.
  d.throttled(t.place, why.wait.count() > 0 ? why.wait : wait, now);
  ++d.retries;
  const bool elsewhere = open_to(*it).size() > 1 && wait > config_.policy.pause_before_fail_over;
  it->not_before = elsewhere ? now : now + wait;
  note(t.deployment,
    fmt::format("throttled for {} ms: {}",
      std::chrono::duration_cast<std::chrono::milliseconds>(d.paused_until() - now).count(),
      why.what),
    out);
}

void gateway_core::after_config_trouble(
  const open_try& t, const try_result& ended, const trouble& why, nanoseconds now, commands& out) {
  auto it = t.owner;
  auto& d = deployments_[t.deployment];
  it->excluded.insert(t.deployment);
  if (!ended.sent) {
    d.unlearned(t.place);
    move_on(it, errc::invalid_input, now, out);
    return;
  }
  d.answered(t.place);
  // A key, a right, a name: it will not get better. Any other refusal may be this one call's fault.
  const bool of_key = ended.status == 401 || ended.status == 403;
  if (of_key || ended.status == 404 || ++d.config_failures >= config_.policy.config_failures_max) {
    auto text = "refused us: " + why.what;
    const auto& variable = config_.models.deployments[t.deployment].key_env;
    if (of_key)
      text += variable.empty() ? " (no key was sent: key_env is not set)"
                               : " (the key was that of the variable " + variable + ")";
    close_deployment(t.deployment, text, it, now, out);
  }
  // What one call did wrong must not end the search of its problem.
  move_on(it, d.closed().empty() ? errc::invalid_input : errc::provider_refused, now, out);
}

void gateway_core::after_too_big(
  const open_try& t, const try_result& ended, const trouble& why, nanoseconds now, commands& out) {
  auto it = t.owner;
  const auto& here = config_.models.deployments[t.deployment].context_tokens;
  it->excluded.insert(t.deployment);
  auto others = open_to(*it);
  const bool larger = here && std::any_of(others.begin(), others.end(), [&](size_t o) {
    const auto& there = config_.models.deployments[o].context_tokens;
    return there && *there > *here;
  });
  if (larger) {
    for (auto o : others)
      if (const auto& there = config_.models.deployments[o].context_tokens;
          !there || *there <= *here)
        it->excluded.insert(o);
    it->not_before = now;
    return;
  }
  auto reply = reply_of(t, ended);
  reply.text = why.what;
  reply.finish = finish_kind::context_exceeded;
  it->truncated.reset();
  answer(it, std::move(reply), now, out);
}

void gateway_core::retry(
  const open_try& t, const trouble& why, bool timed_out, nanoseconds now, commands& out) {
  auto it = t.owner;
  const auto& policy = config_.policy;
  const auto code = timed_out ? errc::timed_out : errc::io_failed;
  if (why.kind == trouble_kind::ambiguous && ++it->ambiguous > policy.ambiguous_retries_max) {
    refuse(it, code,
      fmt::format("given up after {} tries that may have been billed: {}", it->ambiguous, why.what),
      now, out);
    return;
  }
  if (++it->retries > policy.retries_max) {
    refuse(it, code, fmt::format("given up after {} tries: {}", it->tries, why.what), now, out);
    return;
  }
  if (!retries_.take()) {
    refuse(it, code,
      fmt::format("not tried again, because the run's retries are used up (one for {} calls): {}",
        policy.calls_per_retry, why.what),
      now, out);
    return;
  }
  ++deployments_[t.deployment].retries;
  auto& failures = it->failures[t.deployment];
  // An overloaded server is left at once.
  failures += why.kind == trouble_kind::overload ? policy.failures_before_fail_over : 1;
  auto elsewhere = open_to(*it);
  std::erase_if(elsewhere, [&](size_t d) {
    auto found = it->failures.find(d);
    return found != it->failures.end() && found->second >= policy.failures_before_fail_over;
  });
  const bool leaves = failures >= policy.failures_before_fail_over && !elsewhere.empty();
  it->not_before = leaves ? now : now + back_off(why, it->retries, random_);
}

void gateway_core::move_on(calls::iterator it, errc code, nanoseconds now, commands& out) {
  if (open_to(*it).empty()) {
    auto why = why_nobody(*it);
    refuse(it, code, std::move(why), now, out);
    return;
  }
  it->not_before = now;
}

void gateway_core::close_deployment(
  size_t d, const std::string& why, calls::iterator except, nanoseconds now, commands& out) {
  if (!deployments_[d].closed().empty())
    return;
  deployments_[d].close(why);
  note(d, "closed for this run: " + why, out);
  const auto& proposers = config_.models.role("propose");
  const bool none_left = std::all_of(proposers.begin(), proposers.end(),
    [&](size_t p) { return !deployments_[p].closed().empty(); });
  if (closed_.empty() && none_left) {
    closed_ = fmt::format("no deployment for role 'propose' is left; '{}': {}",
      config_.models.deployments[d].name, why);
    gateway_command stop;
    stop.what = gateway_command::kind::stop;
    stop.why = {errc::provider_refused, closed_};
    out.push_back(std::move(stop));
  }
  for (auto it = calls_.begin(); it != calls_.end();) {
    auto here = it++;
    if (here != except && here->open_try == 0 && !here->cancelled && open_to(*here).empty()) {
      auto text = why_nobody(*here);
      refuse(here, errc::provider_refused, std::move(text), now, out);
    }
  }
}

} // namespace gristmill
