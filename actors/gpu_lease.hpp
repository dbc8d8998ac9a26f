#pragma once

#include "actors/event_port.hpp"
#include "actors/interfaces.hpp"
#include "gpu/lease/flat_index.hpp"
#include "gpu/lease/policy.hpp"
#include "gpu/lease/table.hpp"
#include "messages/inspect_device_join.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// The broker of a run whose machines come and go.
using growing_lease_actor = gpu_lease_actor::extend<
  // From the hub. `invalid_input` when the name is taken by a GPU of another model or machine,
  // `queue_full` when there are too many.
  sig<device_joined, device_join>>;

struct gpu_lease_config {
  lease_table_config table;
  std::unique_ptr<lease_policy> policy;
  /// In the order of their indices; each waits for the first report of its executor.
  std::vector<gpu_entry> gpus;
  /// By name, for GPUs that join later: as `gpu_entry::token_floor`.
  std::map<std::string, uint64_t> token_floors;
  /// More GPUs than this are refused.
  uint32_t gpus_max = 4096;
  event_port events;
  /// How many holders with nothing open stay known and watched, so that their next request finds
  /// them; any more are forgotten at once.
  uint32_t idle_holders_max = 4096;
  /// What failed only on a GPU that is in quarantine now; the event is written in any case.
  std::function<void(const blame_victim&)> on_rerun;
};

/// Carries messages to and from `lease_table`, which decides everything.
///
/// Alarms, drains, probes and adoptions are events like every other; what a policy from outside has
/// failed to answer is event `policy_failed`.
///
/// The holder of a lease is whoever sent its request; it is watched for as long as it waits or
/// holds, and mostly on to its next request. The executor of a GPU is whoever reports for it; only
/// that one may. When an executor ends, its GPU is lost and its lease over; another actor that
/// reports `up`, or `holding` to a broker that has started anew, takes its place. Only the
/// executor's word decides about blame: what a holder says about the outcome is not heard.
///
/// A grant follows a `verified` within the same message: nothing is asked in between, because
/// tokens are reserved in blocks beforehand.
class gpu_lease final : public growing_lease_actor::base {
public:
  gpu_lease(caf::actor_config& config, gpu_lease_config settings);

  const char* name() const override { return "gpu-lease"; }
  behavior_type make_behavior() override;
  void on_exit() override;

private:
  struct holder {
    /// As the table knows it: a new number whenever it asks with nothing open, 0 while nothing is.
    holder_id id = 0;
    /// Only while something is open: whoever has nothing from here must not live on because of it.
    lease_holder_actor handle;
    caf::actor_addr address;
    /// Requests that wait or hold a GPU.
    std::vector<uint64_t> open;
  };

  struct executor {
    caf::strong_actor_ptr pointer;
    gpu_executor_actor handle;
    /// Its newest boot id, and those before: a report under one of these comes too late to put
    /// another executor in the place of the one that is there.
    std::string boot;
    std::vector<std::string> boots_before;
    /// Who has the GPU, until it is verified.
    holder_id held_by = 0;
    uint64_t request = 0;
    uint64_t token = 0;
  };

  caf::result<lease_ticket> on_request(const lease_request& what);
  lease_ack on_command(const lease_command& what);
  lease_ack on_report(const device_report& what);
  /// To those who asked; who only told is not answered.
  caf::result<lease_ack> answer(lease_ack ack);
  caf::result<lease_ack> on_broker_command(const broker_command& what);
  caf::result<device_joined> on_join(const device_join& what);

  /// Does what the table wants done, then sets the timer anew.
  void perform(lease_actions& actions);
  void tell_policy_failures();
  void perform(lease_action& action);
  void grant(const lease_action& action);

  /// Slots of `holders_`, or `flat_index::none`. That of a sender, whether or not it has anything
  /// open; that of a number; that of a sender who is about to ask, made if need be.
  uint32_t known_sender(const caf::actor_control_block* from) const;
  uint32_t slot_of(holder_id id) const { return by_id_.find(mixed(id)); }
  uint32_t asking(const caf::strong_actor_ptr& from);
  void forget(uint32_t slot);
  void close_request(holder_id id, uint64_t request);
  void close_lease(uint32_t gpu);
  void close_lease_if_over(uint32_t gpu);
  void holder_down(uint32_t slot);
  void executor_down(const caf::actor_addr& address, const caf::error& why);
  void set_timer();
  std::chrono::nanoseconds now();

  gpu_lease_config settings_;
  /// Of the table, which owns it.
  lease_policy* policy_;
  lease_table table_;
  seam::monitors monitors_;
  /// In slots that are used again.
  std::vector<holder> holders_;
  std::vector<uint32_t> free_slots_;
  flat_index by_sender_;
  /// Those with something open.
  flat_index by_id_;
  uint32_t idle_ = 0;
  holder_id last_holder_ = 0;
  std::vector<executor> executors_;
  /// What joined after the start, by name.
  std::map<std::string, std::pair<uint32_t, device_join>> joined_;
  uint64_t generation_ = 0;
  /// When the newest timer fires.
  std::optional<std::chrono::nanoseconds> timer_;
};

} // namespace gristmill
