#include "actors/llm_gateway.hpp"

#include "actors/llm_history.hpp"

#include <cassert>
#include <fmt/format.h>
#include <mutex>
#include <set>
#include <spdlog/spdlog.h>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

dialect_options options_of(const model_deployment& d) {
  dialect_options out;
  out.model = d.model;
  out.endpoint = d.endpoint;
  out.key_environment = d.key_env;
  out.instructions_role = d.instructions_role;
  out.output_cap_field = d.output_cap_field;
  out.reasoning_effort = d.reasoning_effort;
  out.extra_body = d.extra_body;
  out.send_cache_key = d.send_cache_key;
  out.deadlines = {
    d.deadlines.connect, d.deadlines.first_event, d.deadlines.idle, d.deadlines.wall};
  return out;
}

/// A request that every deployment can encode, to try the options out.
llm_request smallest_request() {
  llm_request out;
  out.purpose = "propose";
  out.messages.push_back({chat_role::user, "?"});
  out.output_tokens_max = 1;
  return out;
}

gateway_core made(const llm_gateway_config& config) {
  auto core = gateway_core::make(config.core);
  assert(core && "check_gateway has said so");
  return std::move(*core);
}

} // namespace

result<void> check_gateway(const llm_gateway_config& config) {
  if (auto core = gateway_core::make(config.core); !core)
    return pass(core);
  for (const auto& d : config.core.models.deployments) {
    auto how = config.find(d.dialect);
    if (!how)
      return fail(how.error().code, "deployment '" + d.name + "': " + how.error().what);
    if (auto call = (*how)->encode(smallest_request(), options_of(d)); !call)
      return fail(call.error().code, "deployment '" + d.name + "': " + call.error().what);
  }
  return {};
}

/// What the port's threads have left for the actor. Bounded: reports of one call are joined, so
/// there is one entry a call under way, and the transport limits the bytes of each.
class llm_gateway::inbox {
public:
  explicit inbox(llm_gateway_actor owner) : owner_(std::move(owner)) {}

  void put(http_report report) {
    bool wake = false;
    llm_gateway_actor owner;
    {
      std::lock_guard hold(mutex_);
      if (!owner_)
        return;
      auto [at, fresh] = places_.try_emplace(report.id, reports_.size());
      if (fresh)
        reports_.push_back(std::move(report));
      else
        join(reports_[at->second], std::move(report));
      wake = !woken_;
      woken_ = true;
      owner = owner_;
    }
    if (wake)
      seam::post(owner, tick{});
  }

  std::vector<http_report> take() {
    std::lock_guard hold(mutex_);
    woken_ = false;
    places_.clear();
    return std::exchange(reports_, {});
  }

  void close() {
    std::lock_guard hold(mutex_);
    owner_ = nullptr;
    reports_.clear();
    places_.clear();
  }

private:
  static void join(http_report& to, http_report more) {
    if (to.status == 0) {
      to.status = more.status;
      to.headers = std::move(more.headers);
    }
    for (auto& e : more.events)
      to.events.push_back(std::move(e));
    if (!more.ended)
      return;
    to.body = std::move(more.body);
    to.ended = true;
    to.how = more.how;
    to.why = std::move(more.why);
  }

  std::mutex mutex_;
  llm_gateway_actor owner_;
  bool woken_ = false;
  std::vector<http_report> reports_;
  std::map<uint64_t, size_t> places_;
};

llm_gateway::llm_gateway(caf::actor_config& actor, llm_gateway_config config)
  : llm_gateway_actor::base(actor), config_(std::move(config)), core_(made(config_)) {
  for (const auto& d : config_.core.models.deployments) {
    auto how = config_.find(d.dialect);
    assert(how && "check_gateway has said so");
    dialects_.push_back(*how);
    options_.push_back(options_of(d));
  }
}

llm_gateway_actor::behavior_type llm_gateway::make_behavior() {
  seam::end_on_exception(this);
  inbox_ = std::make_shared<inbox>(llm_gateway_actor{this});
  port_ = config_.make_port([box = inbox_](http_report report) { box->put(std::move(report)); });
  return {
    [this](llm_request& request) -> caf::result<llm_reply> {
      auto asker = next_asker_++;
      auto reply = make_response_promise<llm_reply>();
      askers_.emplace(asker, reply);
      carry_out(core_.on_request(asker, std::move(request), now()));
      return reply;
    },
    [this](const llm_cancel& what) { carry_out(core_.on_cancel(what, now())); },
    [this](const llm_query&) { return core_.snapshot(now()); },
    [this](const tick& what) {
      // A generation of 0 is the port's; the others are deadlines, of which only the newest counts.
      read_inbox();
      if (what.generation == generation_)
        woken_for_ = nanoseconds{-1};
      carry_out(core_.on_due(now()));
    },
  };
}

nanoseconds llm_gateway::now() {
  return config_.events.since_start(clock().now());
}

void llm_gateway::carry_out(commands todo) {
  for (auto& order : todo)
    todo_.push_back(std::move(order));
  // A journal that is gone answers at once, and what follows from that is done after this.
  if (busy_)
    return;
  busy_ = true;
  while (!todo_.empty()) {
    auto order = std::move(todo_.front());
    todo_.pop_front();
    switch (order.what) {
    case gateway_command::kind::send:
      send(std::move(order));
      break;
    case gateway_command::kind::cancel:
      cancel(order.record.id);
      break;
    case gateway_command::kind::ended:
      config_.events.keep(this, call_event(order.record), [](const result<void>&) {});
      break;
    case gateway_command::kind::answer:
      if (auto asker = askers_.extract(order.asker))
        asker.mapped().deliver(std::move(order.reply));
      break;
    case gateway_command::kind::refuse:
      if (auto asker = askers_.extract(order.asker))
        asker.mapped().deliver(to_error(order.why));
      break;
    case gateway_command::kind::note: {
      const auto& d = config_.core.models.deployments[order.deployment];
      spdlog::info("{}: '{}' {}", name(), d.name, order.text);
      event e{.kind = "llm_note", .reason = "'" + d.name + "' " + order.text};
      config_.events.note(this, std::move(e));
      break;
    }
    case gateway_command::kind::stop:
      spdlog::warn("{}: {}", name(), order.why.what);
      if (config_.on_stop)
        config_.on_stop(order.why);
      break;
    }
  }
  busy_ = false;
  wake_up();
}

void llm_gateway::send(gateway_command order) {
  auto id = order.record.id;
  auto entry = sent_event(order.record);
  transfers_.emplace(id, transfer{nullptr, std::move(order), false, false, nanoseconds{0}});
  config_.events.keep(this, std::move(entry), [this, id](const result<void>& kept) {
    if (kept) {
      start(id);
      return;
    }
    // Without its log the run ends; nothing is sent that nobody would remember.
    if (auto found = transfers_.find(id); found != transfers_.end())
      found->second.cancelled = true;
    never_sent(id, {trouble_kind::ambiguous, nanoseconds{0}, kept.error().what});
  });
}

void llm_gateway::start(uint64_t id) {
  auto found = transfers_.find(id);
  if (found == transfers_.end())
    return;
  auto& t = found->second;
  if (t.cancelled) {
    never_sent(id, {trouble_kind::ambiguous, nanoseconds{0}, "cancelled before it was sent"});
    return;
  }
  auto d = t.order.deployment;
  auto call = dialects_[d]->encode(t.order.request, options_[d]);
  if (!call) {
    never_sent(id, {trouble_kind::config, nanoseconds{0}, call.error().what});
    return;
  }
  call->id = id;
  t.reader = std::make_unique<call_reader>(id, *dialects_[d], t.order.request.output_tokens_max);
  t.order.request = {}; // Prompts are large, and this one is in the body.
  t.started = true;
  t.sent_at = now();
  port_->start(std::move(*call));
}

void llm_gateway::never_sent(uint64_t id, trouble why) {
  auto found = transfers_.find(id);
  if (found == transfers_.end())
    return;
  try_result ended;
  ended.id = id;
  ended.sent = false;
  ended.cancelled = found->second.cancelled;
  ended.reply.failed = std::move(why);
  transfers_.erase(found);
  carry_out(core_.on_ended(ended, now()));
}

void llm_gateway::cancel(uint64_t id) {
  auto found = transfers_.find(id);
  if (found == transfers_.end())
    return;
  found->second.cancelled = true;
  if (found->second.started)
    port_->cancel(id);
}

void llm_gateway::read_inbox() {
  for (auto& report : inbox_->take())
    take(std::move(report));
}

void llm_gateway::take(http_report report) {
  auto found = transfers_.find(report.id);
  if (found == transfers_.end() || !found->second.started)
    return;
  auto& t = found->second;
  auto ended = t.reader->take(report, now() - t.sent_at, config_.utc());
  if (!ended) {
    if (t.reader->just_finished())
      port_->finished(report.id);
    return;
  }
  transfers_.erase(found);
  carry_out(core_.on_ended(*ended, now()));
}

void llm_gateway::wake_up() {
  auto due = core_.next_due(now());
  if (!due || (woken_for_ >= nanoseconds{0} && woken_for_ <= *due))
    return;
  woken_for_ = *due;
  // One nanosecond more than a rounded-down wait would be: a tick that comes too early finds
  // nothing due and asks again.
  seam::tell_later(
    this, std::max(*due - now(), nanoseconds{1}), llm_gateway_actor{this}, tick{++generation_});
}

void llm_gateway::on_exit() {
  // What is still waiting for the log was never sent.
  std::set<uint64_t> unsent;
  for (const auto& [id, t] : transfers_)
    if (!t.started)
      unsent.insert(id);
  for (auto& order : core_.on_shutdown(unsent, now()))
    if (order.what == gateway_command::kind::ended)
      config_.events.note(this, call_event(order.record));
  for (auto& [id, t] : transfers_)
    if (t.started)
      port_->cancel(id);
  auto ending = to_error({errc::shutting_down, "the run is ending"});
  for (auto& [asker, reply] : askers_)
    reply.deliver(ending);
  askers_.clear();
  transfers_.clear();
  if (inbox_)
    inbox_->close();
  // Ends the port's thread, whose last reports nobody takes.
  port_.reset();
  config_.on_stop = nullptr;
  config_.events.close();
}

} // namespace gristmill
