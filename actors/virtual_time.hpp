#pragma once

#include "messages/caf_seam.hpp"

#include <deque>
#include <queue>
#include <random>
#include <unordered_map>
#include <vector>

namespace gristmill {

/// Timers that are no messages: those of a simulated world, which would otherwise send each of them
/// to an actor only to be called back.
class timer_source {
public:
  virtual ~timer_source() = default;
  /// When its first timer falls due; the largest time when it has none.
  virtual caf::actor_clock::time_point first() const = 0;
  /// Fires that one; the clock stands at its instant.
  virtual void fire() = 0;
};

/// The clock of a system in virtual time: moves only when `virtual_scheduler` moves it.
class virtual_clock final : public caf::actor_clock {
public:
  time_point now() const noexcept override { return now_; }
  duration_type difference(
    caf::atom_value, long, time_point a, time_point b) const noexcept override {
    return a == b ? duration_type{1} : b - a;
  }

  void set_ordinary_timeout(
    time_point t, caf::abstract_actor* self, caf::atom_value type, uint64_t id) override;
  void set_multi_timeout(
    time_point t, caf::abstract_actor* self, caf::atom_value type, uint64_t id) override;
  void set_request_timeout(time_point t, caf::abstract_actor* self, caf::message_id id) override;
  void cancel_ordinary_timeout(caf::abstract_actor* self, caf::atom_value type) override;
  void cancel_request_timeout(caf::abstract_actor* self, caf::message_id id) override;
  /// A dead actor drops what arrives late, so its entries may stay until they fall due.
  void cancel_timeouts(caf::abstract_actor*) override {}
  void schedule_message(
    time_point t, caf::strong_actor_ptr receiver, caf::mailbox_element_ptr content) override;
  void schedule_message(time_point t, caf::group, caf::strong_actor_ptr, caf::message) override;
  void cancel_all() override;

  /// What `source` has due at an instant comes before every message of that instant. It must
  /// outlive its use; nullptr takes it away.
  void set_source(timer_source* source) { source_ = source; }

  /// When the next timer falls due; false when there is none.
  bool next(time_point& due);
  /// Moves the clock to the next timer and fires it. Only after `next` said true.
  void fire_next();
  void advance_to(time_point t);
  size_t pending() const { return heap_.size(); }

private:
  enum class timer_kind : uint8_t { dead, ordinary, multi, request, message };
  struct timer {
    timer_kind kind = timer_kind::dead;
    caf::strong_actor_ptr self;
    caf::mailbox_element_ptr content;
    caf::atom_value type{};
    uint64_t id = 0;
    caf::message_id request;
  };
  struct slot {
    time_point due;
    /// The order in which they were set.
    uint64_t order;
    timer* what;
  };
  struct later {
    bool operator()(const slot& a, const slot& b) const {
      return a.due != b.due ? a.due > b.due : a.order > b.order;
    }
  };
  using key = std::pair<uint64_t, uint64_t>;
  struct key_hash {
    size_t operator()(const key& k) const {
      return (k.first * 0x9E3779B97F4A7C15ull) ^ (k.second * 0xC2B2AE3D27D4EB4Full);
    }
  };
  using index = std::unordered_map<key, timer*, key_hash>;

  timer* push(time_point due);
  void pop();
  void skip_dead();
  static void drop(index& from, key k);

  time_point now_{duration_type{1}};
  timer_source* source_ = nullptr;
  uint64_t seq_ = 0;
  std::vector<slot> heap_;
  std::deque<timer> store_;
  std::vector<timer*> free_;
  index named_, requests_;
};

/// A scheduler with one thread and a clock that stands still: three weeks pass in seconds, and two
/// runs of one seed do the same things in the same order. Installed before the actor system is
/// made:
///
///     caf::actor_system_config config;
///     virtual_scheduler::install(config);
///     caf::actor_system system{config};
///     auto& time = virtual_scheduler::of(system);
///     time.run_for(std::chrono::minutes{5});
class virtual_scheduler final : public caf::scheduler::abstract_coordinator {
public:
  static void install(caf::actor_system_config& config);
  static virtual_scheduler& of(caf::actor_system& system);

  explicit virtual_scheduler(caf::actor_system& system);

  /// Picks the next runnable actor at random, reproducibly, to explore interleavings; 0 means in
  /// order.
  void shuffle(uint64_t seed);
  /// Runs until no actor has anything to do at this instant.
  void settle();
  /// Fires everything due up to and including now + `by`; the clock ends there. Returns timers
  /// fired.
  uint64_t run_for(caf::timespan by);
  /// The same up to and including `end`, but stops early after `timers_max` timers: false, and the
  /// clock stands at the last one. Adds what has fired to `fired`.
  bool run_until(caf::actor_clock::time_point end, uint64_t timers_max, uint64_t* fired = nullptr);
  /// Handles one message batch of one actor; false when all are idle.
  bool run_once();
  uint64_t jobs_run() const { return jobs_run_; }

  // What a scheduler of CAF must have.
  virtual_clock& clock() noexcept override { return clock_; }
  bool detaches_utility_actors() const override { return false; }
  void enqueue(caf::resumable* job) override { jobs_.push_back(job); }
  void start() override;
  void stop() override;

private:
  struct unit : caf::execution_unit {
    explicit unit(virtual_scheduler* owner);
    void exec_later(caf::resumable* job) override;
    virtual_scheduler* owner;
  };

  unit unit_;
  std::deque<caf::resumable*> jobs_;
  virtual_clock clock_;
  std::mt19937_64 rng_;
  bool shuffle_ = false;
  uint64_t jobs_run_ = 0;
};

} // namespace gristmill
