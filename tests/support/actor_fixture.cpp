#include "tests/support/actor_fixture.hpp"

#include "actors/system_config.hpp"

#include <algorithm>

namespace gristmill::test {

actor_fixture::system_settings::system_settings() {
  configure(*this, 1);
  virtual_scheduler::install(*this);
}

void actor_fixture::end_all() {
  settle();
  while (!owned_.empty()) {
    caf::anon_send_exit(owned_.back(), caf::exit_reason::user_shutdown);
    owned_.pop_back();
    settle();
  }
}

actor_fixture::~actor_fixture() {
  end_all();
  time.clock().cancel_all();
  settle();
  auto left = sys.registry().running();
  CHECK_MESSAGE(left == 0, "an actor outlived its test: spawn it through the fixture");
  // The system would wait for ever for an actor that nobody runs.
  if (left != 0)
    sys.await_actors_before_shutdown(false);
}

namespace {

/// At once when there is no delay: without the clock, which moves only when the test says so.
template <class Self, class Handle, class Message>
void later(Self* self, caf::timespan delay, const Handle& to, Message what) {
  if (delay == caf::timespan{0})
    seam::tell(self, to, std::move(what));
  else
    seam::tell_later(self, delay, to, std::move(what));
}

} // namespace

// ---- journal
// -------------------------------------------------------------------------------------

namespace {

class fake_journal_impl final : public journal_actor::base {
public:
  fake_journal_impl(caf::actor_config& config, std::shared_ptr<journal_memory> memory)
    : journal_actor::base(config), memory_(std::move(memory)) {}

  behavior_type make_behavior() override {
    return {
      [this](journal_append& what) -> caf::result<journal_ack> {
        if (memory_->fails)
          return to_error(*memory_->fails);
        for (auto& e : what.events) {
          e.seq = memory_->events.size() + 1;
          memory_->events.push_back(std::move(e));
          memory_->how.push_back(what.how);
        }
        if (!memory_->withhold)
          return journal_ack{memory_->events.size()};
        auto promise = make_response_promise<journal_ack>();
        memory_->open.emplace_back(promise, memory_->events.size());
        return promise;
      },
      [](const tick&) {},
    };
  }

  void on_exit() override {
    for (auto& [promise, seq] : memory_->open)
      promise.deliver(to_error({errc::shutting_down, "the journal ends"}));
    memory_->open.clear();
  }

private:
  std::shared_ptr<journal_memory> memory_;
};

} // namespace

void journal_memory::acknowledge() {
  auto now = std::move(open);
  open.clear();
  for (auto& [promise, seq] : now)
    promise.deliver(journal_ack{seq});
}

size_t journal_memory::count(const std::string& kind) const {
  return static_cast<size_t>(
    std::count_if(events.begin(), events.end(), [&](const event& e) { return e.kind == kind; }));
}

const event& journal_memory::last(const std::string& kind) const {
  auto found =
    std::find_if(events.rbegin(), events.rend(), [&](const event& e) { return e.kind == kind; });
  REQUIRE_MESSAGE(found != events.rend(), "no event of kind ", kind);
  return *found;
}

fake_journal make_fake_journal(actor_fixture& fixture) {
  auto memory = std::make_shared<journal_memory>();
  return {fixture.spawn<fake_journal_impl>(memory), memory};
}

// ---- child front
// ---------------------------------------------------------------------------------

namespace {

class fake_child_front_impl final : public child_front_actor::base {
public:
  fake_child_front_impl(caf::actor_config& config, std::shared_ptr<child_front_memory> memory)
    : child_front_actor::base(config), memory_(std::move(memory)) {}

  behavior_type make_behavior() override {
    return {
      [this](const child_request& what) -> caf::result<child_result> {
        memory_->requests.push_back(what);
        auto script = memory_->script
          ? memory_->script(what)
          : std::optional<scripted_child>{{child_that_says({}), {}, {}}};
        if (script && script->error)
          return to_error(*script->error);
        auto promise = make_response_promise<child_result>();
        memory_->promises[what.id] = promise;
        if (script) {
          script->result.id = what.id;
          later(this, script->after, child_front_actor{this}, script->result);
        }
        return promise;
      },
      [this](const child_cancel& what) {
        (what.gently ? memory_->terminated : memory_->cancelled).push_back(what.id);
        if (what.gently && !memory_->obeys_terminate)
          return;
        if (memory_->obeys_cancel)
          cancel(what.id);
      },
      [this](const device_quiet_query& what) -> caf::result<device_quiet> {
        if (quiet(what.device))
          return device_quiet{what.device};
        auto promise = make_response_promise<device_quiet>();
        quiet_.emplace(what.device, promise);
        return promise;
      },
      [this](const child_result& what) { finish(what); },
    };
  }

  void on_exit() override {
    for (auto& [id, promise] : memory_->promises)
      promise.deliver(to_error({errc::shutting_down, "the child front ends"}));
    memory_->promises.clear();
    for (auto& [device, promise] : quiet_)
      promise.deliver(to_error({errc::shutting_down, "the child front ends"}));
    quiet_.clear();
  }

private:
  void cancel(uint64_t id) {
    child_result out;
    out.id = id;
    out.end = child_end::cancelled;
    out.status = 128 + 9;
    finish(out);
  }

  bool quiet(const std::string& device) const {
    return std::none_of(memory_->requests.begin(), memory_->requests.end(),
      [&](const auto& r) { return r.device == device && memory_->promises.count(r.id) != 0; });
  }

  void finish(const child_result& what) {
    auto found = memory_->promises.find(what.id);
    if (found == memory_->promises.end())
      return;
    auto promise = std::move(found->second);
    memory_->promises.erase(found);
    promise.deliver(what);
    for (auto i = quiet_.begin(); i != quiet_.end();) {
      if (!quiet(i->first)) {
        ++i;
        continue;
      }
      i->second.deliver(device_quiet{i->first});
      i = quiet_.erase(i);
    }
  }

  std::multimap<std::string, caf::typed_response_promise<device_quiet>> quiet_;

  std::shared_ptr<child_front_memory> memory_;
};

} // namespace

void fake_child_front::finish(actor_fixture& fixture, child_result result) const {
  fixture.tell(handle, std::move(result));
}

fake_child_front make_fake_child_front(actor_fixture& fixture) {
  auto memory = std::make_shared<child_front_memory>();
  return {fixture.spawn<fake_child_front_impl>(memory), memory};
}

child_result child_that_says(std::vector<std::string> lines, child_end how) {
  child_result out;
  out.end = how;
  out.lines = std::move(lines);
  return out;
}

// ---- gpu
// -----------------------------------------------------------------------------------------

namespace {

class fake_gpu_impl final : public gpu_actor::base {
public:
  fake_gpu_impl(caf::actor_config& config, std::shared_ptr<gpu_memory> memory)
    : gpu_actor::base(config), memory_(std::move(memory)) {}

  behavior_type make_behavior() override {
    return {
      [this](const measure_request& what) -> caf::result<measurement> {
        memory_->requests.push_back(what);
        auto script = memory_->script ? memory_->script(what) : plain(what);
        auto promise = make_response_promise<measurement>();
        if (!script) {
          memory_->unanswered.push_back(promise);
          return promise;
        }
        memory_->open[++generation_] = {promise, *script};
        later(this, script->after, gpu_actor{this}, tick{generation_});
        return promise;
      },
      [this](const lease_revoke& what) { memory_->revoked.push_back(what); },
      [this](const probe_order& what) { memory_->probes.push_back(what); },
      [this](const tick& due) {
        auto found = memory_->open.find(due.generation);
        if (found == memory_->open.end())
          return;
        auto [promise, script] = std::move(found->second);
        memory_->open.erase(found);
        if (script.error)
          promise.deliver(to_error(*script.error));
        else
          promise.deliver(std::move(script.value));
      },
    };
  }

  void on_exit() override {
    for (auto& [generation, pending] : memory_->open)
      pending.first.deliver(to_error({errc::shutting_down, "the GPU ends"}));
    for (auto& promise : memory_->unanswered)
      promise.deliver(to_error({errc::shutting_down, "the GPU ends"}));
    memory_->open.clear();
    memory_->unanswered.clear();
  }

private:
  static std::optional<scripted_measurement> plain(const measure_request& what) {
    scripted_measurement out;
    out.value.attempt = what.attempt;
    out.value.gpu = what.under.gpu;
    out.value.token = what.under.token;
    return out;
  }

  std::shared_ptr<gpu_memory> memory_;
  uint64_t generation_ = 0;
};

} // namespace

fake_gpu make_fake_gpu(actor_fixture& fixture) {
  auto memory = std::make_shared<gpu_memory>();
  return {fixture.spawn<fake_gpu_impl>(memory), memory};
}

// ---- holder and broker
// ---------------------------------------------------------------------------

namespace {

class fake_holder_impl final : public lease_holder_actor::base {
public:
  fake_holder_impl(caf::actor_config& config, std::shared_ptr<holder_memory> memory)
    : lease_holder_actor::base(config), memory_(std::move(memory)) {}

  behavior_type make_behavior() override {
    return {
      [this](const lease_granted& what, const caf::strong_actor_ptr& executor) {
        memory_->grants.push_back({what, executor});
      },
      [this](const lease_ended& what) { memory_->ended.push_back(what); },
    };
  }

  void on_exit() override {
    for (auto& g : memory_->grants)
      g.executor = nullptr;
  }

private:
  std::shared_ptr<holder_memory> memory_;
};

class fake_broker_impl final : public gpu_lease_actor::base {
public:
  fake_broker_impl(caf::actor_config& config, std::shared_ptr<broker_memory> memory)
    : gpu_lease_actor::base(config), memory_(std::move(memory)) {}

  behavior_type make_behavior() override {
    return {
      [this](const lease_request& what) -> caf::result<lease_ticket> {
        if (memory_->refuses)
          return to_error(*memory_->refuses);
        memory_->requests.push_back({what, caf::actor_cast<lease_holder_actor>(current_sender())});
        auto place = memory_->requests.size();
        return lease_ticket{what.request, place, 0, std::chrono::nanoseconds{0}};
      },
      [this](const lease_command& what) -> caf::result<lease_ack> {
        memory_->commands.push_back(what);
        return acknowledge();
      },
      [this](const device_report& what) -> caf::result<lease_ack> {
        memory_->reports.push_back(what);
        return acknowledge();
      },
      [](const broker_query&) { return broker_snapshot{}; },
      [](const broker_command&) { return lease_ack{}; },
      [](const tick&) {},
    };
  }

  void on_exit() override {
    for (auto& promise : memory_->open)
      promise.deliver(to_error({errc::shutting_down, "the broker ends"}));
    memory_->open.clear();
    for (auto& r : memory_->requests)
      r.holder = nullptr;
  }

private:
  caf::result<lease_ack> acknowledge() {
    if (!memory_->withhold)
      return lease_ack{memory_->applied, {}};
    auto promise = make_response_promise<lease_ack>();
    memory_->open.push_back(promise);
    return promise;
  }

  std::shared_ptr<broker_memory> memory_;
};

} // namespace

fake_holder make_fake_holder(actor_fixture& fixture) {
  auto memory = std::make_shared<holder_memory>();
  return {fixture.spawn<fake_holder_impl>(memory), memory};
}

void broker_memory::acknowledge() {
  auto now = std::move(open);
  open.clear();
  for (auto& promise : now)
    promise.deliver(lease_ack{applied, {}});
}

size_t broker_memory::count(device_state state, uint64_t token) const {
  return static_cast<size_t>(std::count_if(reports.begin(), reports.end(),
    [&](const device_report& r) { return r.state == state && r.token == token; }));
}

void fake_broker::grant(
  actor_fixture& fixture, size_t n, const lease& what, const fake_gpu& executor) const {
  REQUIRE(n < memory->requests.size());
  const auto& asked = memory->requests[n];
  fixture.tell(asked.holder, lease_granted{asked.what.request, what}, executor.pointer());
}

fake_broker make_fake_broker(actor_fixture& fixture) {
  auto memory = std::make_shared<broker_memory>();
  return {fixture.spawn<fake_broker_impl>(memory), memory};
}

} // namespace gristmill::test
