#pragma once

#include "actors/interfaces.hpp"
#include "actors/virtual_time.hpp"

#include <caf/all.hpp>
#include <doctest/doctest.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gristmill::test {

/// The answer to an `ask`: there some time later, or never.
template <class T>
struct reply {
  std::shared_ptr<std::optional<caf::expected<T>>> slot;
};

/// An actor system that moves only when the test says so: one thread, and a clock that stands still
/// until `advance`. Whatever is spawned through the fixture is ended by it, last one first; an
/// actor that is still there afterwards fails the test.
struct actor_fixture {
  struct system_settings : caf::actor_system_config {
    system_settings();
  };

  system_settings cfg;
  caf::actor_system sys{cfg};
  virtual_scheduler& time = virtual_scheduler::of(sys);
  /// The start of the run, for actors that count from it.
  caf::actor_clock::time_point start = time.clock().now();

  actor_fixture() = default;
  actor_fixture(const actor_fixture&) = delete;
  actor_fixture& operator=(const actor_fixture&) = delete;
  ~actor_fixture();

  /// Ends everything that was spawned. For the destructor of a fixture whose members are used by
  /// its actors: this one here runs after they are gone.
  void end_all();

  /// Time since the start of the run.
  caf::timespan now() { return time.clock().now() - start; }

  /// Handles every message that can be handled without time passing.
  void settle() { time.settle(); }

  /// Lets `by` pass; what falls due on the way happens at its own instant.
  void advance(caf::timespan by) {
    time.run_for(by);
    settle();
  }

  /// Starts an actor that the fixture will end.
  template <class Actor, class... Ts>
  auto spawn(Ts&&... xs) {
    auto handle = sys.spawn<Actor>(std::forward<Ts>(xs)...);
    own(handle);
    return handle;
  }

  template <class Handle>
  void own(const Handle& handle) {
    owned_.push_back(caf::actor_cast<caf::strong_actor_ptr>(handle));
  }

  /// Ends an actor now, as a crash would (`kill`) or as its owner does.
  template <class Handle>
  void end(const Handle& handle, caf::exit_reason why = caf::exit_reason::user_shutdown) {
    caf::anon_send_exit(handle, why);
    settle();
  }

  template <class Handle>
  bool alive(const Handle& handle) {
    auto* actor = caf::actor_cast<caf::abstract_actor*>(handle);
    return !static_cast<caf::monitorable_actor*>(actor)->getf(
      caf::abstract_actor::is_terminated_flag);
  }

  /// Asks from an actor of no importance; `T` is `void` for a handler without a reply.
  template <class T, class Handle, class... Ts>
  reply<T> ask(const Handle& whom, Ts... xs) {
    reply<T> out{std::make_shared<std::optional<caf::expected<T>>>()};
    auto asker = sys.spawn([slot = out.slot, whom, xs...](caf::event_based_actor* self) {
      collect(self->request(whom, caf::infinite, xs...), slot);
    });
    own(asker);
    settle();
    return out;
  }

  /// Asks in the name of `who`, an actor whose class derives directly from its `base` (all fakes
  /// do).
  template <class T, class Sender, class Handle, class... Ts>
  reply<T> ask_as(const Sender& who, const Handle& whom, Ts... xs) {
    reply<T> out{std::make_shared<std::optional<caf::expected<T>>>()};
    collect(self_of(who)->request(whom, caf::infinite, std::move(xs)...), out.slot);
    settle();
    return out;
  }

  /// The actor behind a handle, for calls in its name; nothing else may run meanwhile.
  template <class Handle>
  static typename Handle::base* self_of(const Handle& who) {
    return static_cast<typename Handle::base*>(caf::actor_cast<caf::abstract_actor*>(who));
  }

  /// Sends without a sender.
  template <class Handle, class... Ts>
  void tell(const Handle& whom, Ts... xs) {
    caf::anon_send(whom, std::move(xs)...);
    settle();
  }

  template <class T>
  bool answered(const reply<T>& r) const {
    return r.slot->has_value();
  }

  /// What came back. A missing answer fails the test and never hangs it.
  template <class T>
  caf::expected<T> answer(const reply<T>& r) const {
    REQUIRE_MESSAGE(answered(r), "no answer yet");
    return **r.slot;
  }

  /// The error that came back, as code and text.
  template <class T>
  failure refusal(const reply<T>& r) const {
    REQUIRE_MESSAGE(answered(r), "no answer yet");
    REQUIRE_MESSAGE(!**r.slot, "an answer instead of an error");
    return from_error(sys, (**r.slot).error());
  }

private:
  template <class Response, class T>
  static void collect(Response response, std::shared_ptr<std::optional<caf::expected<T>>> slot) {
    auto failed = [slot](caf::error& why) { slot->emplace(std::move(why)); };
    if constexpr (std::is_void_v<T>)
      response.then([slot] { slot->emplace(caf::unit); }, failed);
    else
      response.then([slot](T& value) { slot->emplace(std::move(value)); }, failed);
  }

  std::vector<caf::strong_actor_ptr> owned_;
};

// ---- fakes
// --------------------------------------------------------------------------------------- Each is a
// handle and a memory that the test reads and scripts. All live in one thread.

struct journal_memory {
  /// Everything appended, in order, acknowledged or not; `seq` is filled.
  std::vector<event> events;
  /// Durability of each element of `events`.
  std::vector<durability> how;
  /// While true, nothing is acknowledged.
  bool withhold = false;
  /// When set, every append is answered with this and nothing is stored.
  std::optional<failure> fails;

  /// Acknowledges what was withheld so far; settle afterwards.
  void acknowledge();
  size_t withheld() const { return open.size(); }
  size_t count(const std::string& kind) const;
  /// The newest of its kind; fails the test when there is none.
  const event& last(const std::string& kind) const;

  std::vector<std::pair<caf::typed_response_promise<journal_ack>, uint64_t>> open;
};

struct fake_journal {
  journal_actor handle;
  std::shared_ptr<journal_memory> memory;
  journal_memory* operator->() const { return memory.get(); }
};
fake_journal make_fake_journal(actor_fixture& fixture);

/// What a scripted child does.
struct scripted_child {
  child_result result;
  caf::timespan after{0};
  /// Answered instead of a result.
  std::optional<failure> error;
};

struct child_front_memory {
  std::vector<child_request> requests;
  std::vector<uint64_t> cancelled;
  std::vector<uint64_t> terminated;
  /// Nothing: the child runs until it is cancelled or `finish` is called. The default finishes at
  /// once with `done` and no lines.
  std::function<std::optional<scripted_child>(const child_request&)> script;
  /// Whether a cancelled child is reported as such at once.
  bool obeys_cancel = true;
  bool obeys_terminate = true;
  size_t open() const { return promises.size(); }

  std::map<uint64_t, caf::typed_response_promise<child_result>> promises;
};

struct fake_child_front {
  child_front_actor handle;
  std::shared_ptr<child_front_memory> memory;
  child_front_memory* operator->() const { return memory.get(); }
  /// Ends a child that the script left running.
  void finish(actor_fixture& fixture, child_result result) const;
};
fake_child_front make_fake_child_front(actor_fixture& fixture);

/// A result whose lines are the given JSON lines.
child_result child_that_says(std::vector<std::string> lines, child_end how = child_end::done);

struct scripted_measurement {
  measurement value;
  caf::timespan after{0};
  std::optional<failure> error;
};

struct gpu_memory {
  std::vector<measure_request> requests;
  std::vector<lease_revoke> revoked;
  std::vector<probe_order> probes;
  /// Nothing: never answered. The default answers at once with a measurement that names attempt,
  /// GPU and token and has no workloads.
  std::function<std::optional<scripted_measurement>(const measure_request&)> script;

  std::map<uint64_t, std::pair<caf::typed_response_promise<measurement>, scripted_measurement>>
    open;
  std::vector<caf::typed_response_promise<measurement>> unanswered;
};

/// An executor that does only what the script says: tells the broker nothing by itself.
struct fake_gpu {
  gpu_actor handle;
  std::shared_ptr<gpu_memory> memory;
  gpu_memory* operator->() const { return memory.get(); }
  caf::strong_actor_ptr pointer() const { return caf::actor_cast<caf::strong_actor_ptr>(handle); }
};
fake_gpu make_fake_gpu(actor_fixture& fixture);

struct holder_memory {
  struct grant {
    lease_granted what;
    caf::strong_actor_ptr executor;
  };
  std::vector<grant> grants;
  std::vector<lease_ended> ended;
};

/// Somebody who asks for leases; use `ask_as<lease_ticket>(holder.handle, broker, …)`.
struct fake_holder {
  lease_holder_actor handle;
  std::shared_ptr<holder_memory> memory;
  holder_memory* operator->() const { return memory.get(); }
};
fake_holder make_fake_holder(actor_fixture& fixture);

struct broker_memory {
  struct asked {
    lease_request what;
    lease_holder_actor holder;
  };
  std::vector<asked> requests;
  std::vector<lease_command> commands;
  std::vector<device_report> reports;
  /// What the next commands and reports are answered with.
  bool applied = true;
  /// While true, commands and reports are not answered.
  bool withhold = false;
  /// When set, requests are answered with this.
  std::optional<failure> refuses;

  /// Answers what was withheld; settle afterwards.
  void acknowledge();
  size_t count(device_state state, uint64_t token) const;

  std::vector<caf::typed_response_promise<lease_ack>> open;
};

struct fake_broker {
  gpu_lease_actor handle;
  std::shared_ptr<broker_memory> memory;
  broker_memory* operator->() const { return memory.get(); }
  /// Grants the n-th request.
  void grant(actor_fixture& fixture, size_t n, const lease& what, const fake_gpu& executor) const;
};
fake_broker make_fake_broker(actor_fixture& fixture);

} // namespace gristmill::test
