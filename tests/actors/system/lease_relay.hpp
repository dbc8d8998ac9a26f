#pragma once

#include "tests/support/actor_fixture.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace gristmill::test {

/// A small generator (splitmix64): each step of a script has one of its own, so that a step does
/// the same whichever steps are left out before it.
struct dice {
  uint64_t state = 0;
  uint64_t operator()();
  uint64_t below(uint64_t n) { return (*this)() % n; }
  bool percent(uint64_t n) { return below(100) < n; }
};

/// How bad the links are, and which broker they lead to.
struct network {
  dice random;
  uint64_t delay_percent = 0;
  caf::timespan delay_max{0};
  uint64_t double_percent = 0;
  /// Whether a message may overtake an older one of its own link, as after a re-connection.
  bool reorders = false;

  gpu_lease_actor broker;
  /// Which start of the broker; what was sent to an earlier one is lost.
  uint64_t start = 1;

  uint64_t carried = 0, delayed = 0, doubled = 0, overtaken = 0, lost = 0, held_reports = 0;

  void clear_up() { delay_percent = double_percent = 0; }
};

/// Everything that passes between a broker, a holder and an executor.
using relay_actor = caf::typed_actor<
  // To the holder.
  seam::sig<void, lease_granted, caf::strong_actor_ptr>, seam::sig<void, lease_ended>,
  // To the broker.
  seam::sig<lease_ticket, lease_request>, seam::sig<lease_ack, lease_command>,
  seam::sig<lease_ack, device_report>, seam::sig<broker_snapshot, broker_query>,
  seam::sig<lease_ack, broker_command>,
  // To the executor.
  seam::sig<measurement, measure_request>, seam::sig<void, lease_revoke>,
  seam::sig<void, probe_order>,
  // INTERNAL: a message has been on its way for long enough.
  seam::sig<void, tick>>;

struct relay_memory {
  std::shared_ptr<network> net;
  /// One of the two is set.
  lease_holder_actor holder;
  gpu_actor executor;
  /// The clock of the executor, in percent of the broker's.
  int64_t clock_percent = 100;

  /// What the executor has said of itself: what a link tells a broker that has started anew.
  std::optional<device_report> up;
  std::map<uint64_t, measure_request> asked;
  std::optional<measure_request> runs;
  caf::actor_clock::time_point began;

  /// Highest token of the brokers before this one: what has not started under it never does.
  uint64_t void_up_to = 0;
  /// The executor is dead. Its `up` that has never arrived goes down with it: boot ids have no
  /// order, so a broker could not tell a first `up` that comes after its successor's from a newer
  /// one.
  bool dead = false;
  uint64_t introduced_to = 0;

  /// Tells the new broker `holding` or `up`, for executors that know one broker only.
  std::function<void()> attach;
  /// The link ends this much later, and not before all that is on its way has arrived.
  std::function<void(caf::timespan)> leave;
};

/// One link between the broker and a holder or an executor. To the broker it is that holder or
/// executor, and to them it is the broker; holders reach executors through it as well.
struct relay {
  relay_actor handle;
  std::shared_ptr<relay_memory> memory;
  relay_memory* operator->() const { return memory.get(); }
};
relay make_relay(actor_fixture& fixture, std::shared_ptr<network> net);

} // namespace gristmill::test
