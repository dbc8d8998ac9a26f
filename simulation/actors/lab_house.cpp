#include "simulation/actors/lab_house.hpp"

#include <algorithm>
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
      [this](const tick& due) {
        if (house_.is_due(number_, due))
          house_.open_world()->on_timer(number_, house_.now(), house_);
      },
    };
  }

private:
  lab_house& house_;
  uint32_t number_;
};

class lab_executor final : public lab_executor_actor::base {
public:
  lab_executor(caf::actor_config& config, lab_house& house, lab_entity entity)
    : lab_executor_actor::base(config), house_(house), entity_(entity) {}

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
      [this](const tick& due) {
        if (house_.is_due(entity_, due))
          house_.open_world()->on_timer(entity_, house_.now(), house_);
      },
    };
  }

private:
  lab_house& house_;
  lab_entity entity_;
};

class lab_director final : public lab_director_actor::base {
public:
  lab_director(caf::actor_config& config, lab_house& house, lab_entity first)
    : lab_director_actor::base(config), house_(house), entity_(first) {}

  const char* name() const override { return "lab-director"; }

  behavior_type make_behavior() override {
    seam::end_on_exception(this);
    return {
      [this](const tick& due) {
        auto* w = house_.open_world();
        if (due.generation == 0 && w != nullptr)
          w->start(house_);
        else if (house_.is_due(entity_, due))
          w->on_timer(entity_, house_.now(), house_);
      },
    };
  }

private:
  lab_house& house_;
  lab_entity entity_;
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
    start_(clock_.now()), world_(of), journal_(std::move(journal)) {}

lab_house::~lab_house() = default;

void lab_house::open(const std::function<gpu_lease_actor(const journal_actor&)>& broker) {
  auto watched = [this](const auto& handle, const char* who) {
    caf::actor_cast<caf::actor>(handle)->attach_functor(
      [this, who](const caf::error& why) { has_ended(who, seam::show(system_, why)); });
    return handle;
  };
  timers_.resize(world_.entity_count());
  unanswered_.resize(world_.agent_count());
  for (uint32_t i = 0; i < world_.agent_count(); ++i) {
    agents_.push_back(watched(system_.spawn<lab_agent>(*this, i), "an agent"));
    timers_[i].owner = caf::actor_cast<caf::strong_actor_ptr>(agents_.back());
  }
  for (uint32_t gpu = 0; gpu < world_.gpu_count(); ++gpu) {
    auto entity = world_.agent_count() + gpu;
    executors_.push_back(watched(system_.spawn<lab_executor>(*this, entity), "an executor"));
    timers_[entity].owner = caf::actor_cast<caf::strong_actor_ptr>(executors_.back());
    models_.push_back(world_.gpu_model(gpu));
  }
  boots_.resize(world_.gpu_count());
  auto first = world_.agent_count() + world_.gpu_count();
  director_ = watched(system_.spawn<lab_director>(*this, first), "the director");
  for (auto entity = first; entity < timers_.size(); ++entity)
    timers_[entity].owner = caf::actor_cast<caf::strong_actor_ptr>(director_);
  log_ = watched(system_.spawn<lab_journal>(*this), "the journal");
  broker_ = watched(broker(log_), "the lease broker");
  time_.settle();
}

void lab_house::start() {
  seam::post(director_, tick{0});
  time_.settle();
}

void lab_house::end() {
  over_ = true;
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
  if (director_)
    end_actor(director_);
  if (log_)
    end_actor(log_);
  timers_.clear();
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

// ---- what the world wants done
// --------------------------------------------------------------------

void lab_house::set_timer(lab_entity entity, std::chrono::nanoseconds at) {
  auto& t = timers_[entity];
  ++t.generation;
  // A message that is on its way cannot be taken back; the one before is stale now.
  if (at == std::chrono::nanoseconds::max())
    return;
  clock_.schedule_ranked(start_ + std::max(at, now()), entity, t.owner,
    caf::make_mailbox_element(nullptr, caf::make_message_id(), caf::no_stages, tick{t.generation}));
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
