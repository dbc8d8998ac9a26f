#include "gpu/lease/policies/all.hpp"

namespace gristmill {

std::vector<policy_kind> house_policies() {
  return {backfill_kind(), drr_kind(), edf_kind(), external_kind(), fifo_kind(), las_kind(),
    lottery_kind(), maxmin_kind(), priority_kind(), rr_kind(), sept_kind(), stride_kind()};
}

void add_own_policies() {
  // A policy of your own: its file into gpu/lease/policies/ and its name into the CMakeLists.txt,
  // its maker declared above, and one line here, such as
  //   (void)register_lease_policy("shortest_queue", make_shortest_queue_policy, "what it does");
  // examples/lease_policy/ has a whole one.
}

} // namespace gristmill
