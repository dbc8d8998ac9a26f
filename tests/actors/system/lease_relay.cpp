#include "tests/actors/system/lease_relay.hpp"

namespace gristmill::test {

uint64_t dice::operator()() {
  state += 0x9E3779B97F4A7C15ull;
  auto z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

namespace {

class relay_impl final : public relay_actor::base {
public:
  relay_impl(caf::actor_config& config, std::shared_ptr<relay_memory> memory)
    : relay_actor::base(config), memory_(std::move(memory)), net_(memory_->net) {
    memory_->attach = [this] { attach(); };
    memory_->leave = [this](caf::timespan after) {
      leaving_ = true;
      leave_at_ = clock().now() + after;
      wake(std::max(after, caf::timespan{1}), [] {});
    };
  }

  behavior_type make_behavior() override {
    return {
      [this](const lease_granted& what, const caf::strong_actor_ptr& executor) {
        push([this, what, executor] {
          if (memory_->holder)
            seam::tell(this, memory_->holder, what, executor);
        });
      },
      [this](const lease_ended& what) {
        push([this, what] {
          if (memory_->holder)
            seam::tell(this, memory_->holder, what);
        });
      },
      [this](const lease_request& what) { return to_broker<lease_ticket>(what); },
      [this](const lease_command& what) { return to_broker<lease_ack>(what); },
      [this](const device_report& what) {
        note(what);
        auto introduces = what.state == device_state::up;
        auto start = net_->broker ? net_->start : 0; // 0: nobody will ever hear it.
        return carry<lease_ack>(
          link::up, link::down,
          [this, start, introduces] {
            return start == net_->start && (!introduces || may_introduce()) ? net_->broker
                                                                            : gpu_lease_actor{};
          },
          what, what.state == device_state::down);
      },
      [this](const broker_query& what) { return to_broker<broker_snapshot>(what); },
      [this](const broker_command& what) { return to_broker<lease_ack>(what); },
      [this](measure_request& what) -> caf::result<measurement> {
        what.under.term = what.under.term / 100 * memory_->clock_percent;
        memory_->asked[what.under.token] = what;
        return carry<measurement>(
          link::in, link::out,
          [this, token = what.under.token] {
            return token > memory_->void_up_to ? memory_->executor : gpu_actor{};
          },
          what);
      },
      [this](const lease_revoke& what) {
        push([this, what] {
          if (memory_->executor)
            seam::tell(this, memory_->executor, what);
        });
      },
      [this](const probe_order& what) {
        push([this, what] {
          if (memory_->executor)
            seam::tell(this, memory_->executor, what);
        });
      },
      [this](const tick& due) {
        auto found = on_the_way_.extract(due.generation);
        if (!found.empty())
          found.mapped()();
        if (leaving_ && on_the_way_.empty() && clock().now() >= leave_at_)
          quit(caf::exit_reason::user_shutdown);
      },
    };
  }

  void on_exit() override {
    memory_->attach = nullptr;
    memory_->leave = nullptr;
    memory_->holder = nullptr;
    memory_->executor = nullptr;
    on_the_way_.clear();
    auto open = std::move(open_);
    open_.clear();
    for (auto& [id, failed] : open)
      failed(caf::sec::request_receiver_down);
    net_.reset();
  }

private:
  /// The directions whose messages keep their order, where order is kept.
  enum link { up, down, in, out };
  using action = std::function<void()>;

  void wake(caf::timespan after, action what) {
    on_the_way_[++last_] = std::move(what);
    seam::tell_later(this, after, relay_actor{this}, tick{last_});
  }

  // What an executor says first comes in order: `verified` before its `release` would be an answer
  // to nothing. A second copy comes after the first, however late.
  void later(link which, action what, bool copy = false) {
    ++net_->carried;
    auto now = clock().now();
    auto due = now;
    if (net_->random.percent(net_->delay_percent))
      due += caf::timespan{static_cast<int64_t>(
        1 + net_->random.below(static_cast<uint64_t>(net_->delay_max.count())))};
    auto& last = due_[which];
    if (copy && net_->reorders) {
      if (due <= last)
        due = last + caf::timespan{1};
    } else if (due <= last && last > now) {
      if (net_->reorders && (which != link::up || memory_->holder))
        ++net_->overtaken;
      else
        due = last + caf::timespan{1};
    }
    if (!copy)
      last = std::max(last, due);
    if (due == now) {
      what();
      return;
    }
    ++net_->delayed;
    wake(due - now, std::move(what));
  }

  uint64_t copies() {
    if (!net_->random.percent(net_->double_percent))
      return 1;
    ++net_->doubled;
    return 2;
  }

  void push(const action& what) {
    for (auto n = copies(); n > 0; --n)
      later(link::down, what);
  }

  void fail(uint64_t id, caf::error why) {
    auto found = open_.extract(id);
    if (!found.empty())
      found.mapped()(std::move(why));
  }

  /// Of several answers to the copies of one question, the first that arrives counts.
  template <class Reply, class Target, class Message>
  caf::result<Reply> carry(
    link there, link back, Target target, const Message& what, bool single = false) {
    auto id = ++last_asked_;
    auto promise = make_response_promise<Reply>();
    open_[id] = [promise](caf::error why) mutable { promise.deliver(std::move(why)); };
    auto all = single ? 1 : copies();
    for (auto n = all; n > 0; --n)
      later(
        there,
        [this, id, promise, back, target, what] {
          auto to = target();
          if (!to) {
            ++net_->lost;
            fail(id, caf::sec::request_receiver_down);
            return;
          }
          seam::ask(this, to, what)
            .then(
              [this, id, promise, back](const Reply& reply) {
                later(back, [this, id, promise, reply]() mutable {
                  if (open_.erase(id) != 0)
                    promise.deliver(reply);
                });
              },
              [this, id, back](
                const caf::error& why) { later(back, [this, id, why] { fail(id, why); }); });
        },
        n != all);
    return promise;
  }

  template <class Reply, class Message>
  caf::result<Reply> to_broker(const Message& what) {
    auto start = net_->broker ? net_->start : 0; // 0: nobody will ever hear it.
    return carry<Reply>(
      link::up, link::down,
      [this, start] { return start == net_->start ? net_->broker : gpu_lease_actor{}; }, what);
  }

  bool may_introduce() {
    if (memory_->dead && memory_->introduced_to != net_->start)
      return false;
    memory_->introduced_to = net_->start;
    return true;
  }

  void note(const device_report& what) {
    switch (what.state) {
    case device_state::up:
      memory_->up = what;
      break;
    case device_state::down:
      memory_->up.reset();
      memory_->runs.reset();
      break;
    case device_state::active:
      if (auto found = memory_->asked.find(what.token);
          found != memory_->asked.end() && what.token > newest_active_) {
        newest_active_ = what.token;
        memory_->runs = found->second;
        memory_->began = clock().now();
      }
      break;
    case device_state::verified:
      if (memory_->runs && memory_->runs->under.token <= what.token)
        memory_->runs.reset();
      break;
    default:
      break;
    }
  }

  void attach() {
    if (!memory_->up || leaving_)
      return;
    auto what = *memory_->up;
    if (memory_->runs) {
      const auto& under = memory_->runs->under;
      what.state = device_state::holding;
      what.token = under.token;
      what.adopted.request.request = 1;
      what.adopted.request.what = under.what;
      what.adopted.request.flow = {"p0", "agent"};
      what.adopted.request.term = under.term / memory_->clock_percent * 100;
      what.adopted.held = (clock().now() - memory_->began) / 100 * memory_->clock_percent;
      ++net_->held_reports;
    }
    auto start = net_->broker ? net_->start : 0; // 0: nobody will ever hear it.
    for (auto n = copies(); n > 0; --n)
      later(link::up, [this, start, what] {
        if (start == net_->start && net_->broker && may_introduce())
          seam::ask(this, net_->broker, what)
            .then([](const lease_ack&) {}, [](const caf::error&) {});
      });
  }

  std::shared_ptr<relay_memory> memory_;
  std::shared_ptr<network> net_;
  std::map<uint64_t, action> on_the_way_;
  std::map<uint64_t, std::function<void(caf::error)>> open_;
  caf::actor_clock::time_point due_[4] = {};
  uint64_t last_ = 0;
  uint64_t last_asked_ = 0;
  uint64_t newest_active_ = 0;
  bool leaving_ = false;
  caf::actor_clock::time_point leave_at_;
};

} // namespace

relay make_relay(actor_fixture& fixture, std::shared_ptr<network> net) {
  auto memory = std::make_shared<relay_memory>();
  memory->net = std::move(net);
  return {fixture.spawn<relay_impl>(memory), memory};
}

} // namespace gristmill::test
