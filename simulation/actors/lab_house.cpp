#include "simulation/actors/lab_house.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace gristmill {

namespace {

class lab_agent final : public lab_agent_actor::base {
public:
  lab_agent(caf::actor_config& config, lab_house& house, uint32_t number)
    : lab_agent_actor::base(config), house_(house), number_(number) {}

  const char* name() const override { return "lab-agent"; }

  behavior_type make_behavior() override {
    seam::end_on_exception(this);
    // A refusal is the only error that anybody sends here.
    set_error_handler([this](caf::error&) {
      auto request = house_.answered(number_);
      if (auto* w = house_.open_world())
        w->on_refused(number_, request, house_.now(), house_);
    });
    return {
      [this](const lease_granted& what, const caf::strong_actor_ptr&) {
        if (auto* w = house_.open_world())
          w->on_granted(number_, what, house_.now(), house_);
      },
      [this](const lease_ended& what) {
        if (auto* w = house_.open_world())
          w->on_ended(number_, what, house_.now(), house_);
      },
      [this](const lease_ticket&) { house_.answered(number_); },
      [](const lease_ack&) {},
    };
  }

private:
  lab_house& house_;
  uint32_t number_;
};

class lab_executor final : public lab_executor_actor::base {
public:
  lab_executor(caf::actor_config& config, lab_house& house)
    : lab_executor_actor::base(config), house_(house) {}

  const char* name() const override { return "lab-executor"; }

  behavior_type make_behavior() override {
    seam::end_on_exception(this);
    return {
      [this](const lease_revoke& what) {
        if (auto* w = house_.open_world())
          w->on_revoke(what, house_.now(), house_);
      },
      [this](const probe_order& what) {
        if (auto* w = house_.open_world())
          w->on_probe(what, house_.now(), house_);
      },
      [](const lease_ack&) {},
    };
  }

private:
  lab_house& house_;
};

/// Acknowledges at once: what is simulated needs no disk.
class lab_journal final : public journal_actor::base {
public:
  lab_journal(caf::actor_config& config, lab_house& house)
    : journal_actor::base(config), house_(house) {}

  const char* name() const override { return "lab-journal"; }

  behavior_type make_behavior() override {
    seam::end_on_exception(this);
    return {
      [this](journal_append& what) {
        count_ += what.events.size();
        house_.write(what.events);
        return journal_ack{count_};
      },
      [](const tick&) {},
    };
  }

private:
  lab_house& house_;
  uint64_t count_ = 0;
};

} // namespace

lab_house::lab_house(caf::actor_system& system, world& of, std::function<void(event&&)> journal)
  : system_(system), time_(virtual_scheduler::of(system)), clock_(time_.clock()),
    start_(clock_.now()), world_(of), journal_(std::move(journal)), timers_(of.entity_count()) {}

lab_house::~lab_house() = default;

void lab_house::open(const std::function<gpu_lease_actor(const journal_actor&)>& broker) {
  auto watched = [this](const auto& handle, const char* who) {
    caf::actor_cast<caf::actor>(handle)->attach_functor(
      [this, who](const caf::error& why) { has_ended(who, seam::show(system_, why)); });
    return handle;
  };
  unanswered_.resize(world_.agent_count());
  for (uint32_t i = 0; i < world_.agent_count(); ++i)
    agents_.push_back(watched(system_.spawn<lab_agent>(*this, i), "an agent"));
  for (uint32_t gpu = 0; gpu < world_.gpu_count(); ++gpu) {
    executors_.push_back(watched(system_.spawn<lab_executor>(*this), "an executor"));
    models_.push_back(world_.gpu(gpu).model);
  }
  boots_.resize(world_.gpu_count());
  log_ = watched(system_.spawn<lab_journal>(*this), "the journal");
  broker_ = watched(broker(log_), "the lease broker");
  time_.settle();
  clock_.set_source(this);
}

void lab_house::start() {
  world_.start(*this);
  time_.settle();
}

void lab_house::end() {
  over_ = true;
  clock_.set_source(nullptr);
  // What is still on its way reaches nobody who would act on it.
  time_.settle();
  clock_.cancel_all();
  auto end_actor = [&](auto& handle) {
    caf::anon_send_exit(handle, caf::exit_reason::user_shutdown);
    handle = nullptr;
  };
  // The broker first: it must not take the end of its holders for their death.
  if (broker_)
    end_actor(broker_);
  time_.settle();
  for (auto& each : agents_)
    end_actor(each);
  for (auto& each : executors_)
    end_actor(each);
  if (log_)
    end_actor(log_);
  time_.settle();
  agents_.clear();
  executors_.clear();
}

void lab_house::write(std::vector<event>& events) {
  if (over_ || !journal_)
    return;
  for (auto& e : events)
    journal_(std::move(e));
}

uint64_t lab_house::answered(uint32_t agent) {
  auto& open = unanswered_[agent];
  if (open.empty())
    return 0;
  auto out = open.front();
  open.erase(open.begin());
  return out;
}

void lab_house::has_ended(const std::string& who, const std::string& why) {
  if (!over_ && broken_.empty())
    broken_ = who + " has ended: " + why;
}

// ---- timers
// --------------------------------------------------------------------------------------

caf::actor_clock::time_point lab_house::first() const {
  auto at = timers_.first().at;
  // What has broken must not go on with half of its actors.
  if (at == timer_tree::never || !broken_.empty())
    return caf::actor_clock::time_point::max();
  return start_ + at;
}

void lab_house::fire() {
  auto entity = timers_.first().entity;
  timers_.set(entity, timer_tree::never);
  try {
    world_.on_timer(entity, now(), *this);
  } catch (const std::exception& error) {
    has_ended("the world", error.what());
  }
}

// ---- what the world wants done
// --------------------------------------------------------------------

void lab_house::set_timer(lab_entity entity, std::chrono::nanoseconds at) {
  timers_.set(entity, at == timer_tree::never ? at : std::max(at, now()));
}

void lab_house::request(uint32_t agent, const lease_request& what) {
  unanswered_[agent].push_back(what.request);
  caf::send_as(agents_[agent], broker_, what);
}

void lab_house::cancel(uint32_t agent, uint64_t request) {
  lease_command what;
  what.verb = lease_verb::cancel;
  what.request = request;
  caf::send_as(agents_[agent], broker_, std::move(what));
}

device_report lab_house::report_of(uint32_t gpu, device_state state, uint64_t token) const {
  device_report what;
  what.gpu = gpu;
  what.state = state;
  what.token = token;
  what.model = models_[gpu];
  what.boot = boots_[gpu];
  return what;
}

void lab_house::up(uint32_t gpu, const std::string& boot) {
  boots_[gpu] = boot;
  caf::send_as(executors_[gpu], broker_, report_of(gpu, device_state::up, 0));
}

void lab_house::down(uint32_t gpu, const std::string& reason) {
  auto what = report_of(gpu, device_state::down, 0);
  what.reason = reason;
  caf::send_as(executors_[gpu], broker_, std::move(what));
}

void lab_house::activated(uint32_t gpu, uint64_t token) {
  caf::send_as(executors_[gpu], broker_, report_of(gpu, device_state::active, token));
}

void lab_house::verified(uint32_t gpu, uint64_t token) {
  caf::send_as(executors_[gpu], broker_, report_of(gpu, device_state::verified, token));
}

void lab_house::probed(uint32_t gpu, const probe_report& what) {
  auto said = report_of(gpu, device_state::probed, 0);
  said.probe = what;
  caf::send_as(executors_[gpu], broker_, std::move(said));
}

void lab_house::release(
  uint32_t gpu, uint64_t token, const std::string& reason, lease_outcome outcome) {
  lease_command what;
  what.verb = lease_verb::release;
  what.gpu = gpu;
  what.token = token;
  what.reason = reason;
  what.outcome = outcome;
  caf::send_as(executors_[gpu], broker_, std::move(what));
}

} // namespace gristmill
