#pragma once

#include "gpu/lease/policy.hpp"

#include <memory>

namespace gristmill {

/// Stands between the broker and a policy of somebody's own: where that names nobody although
/// somebody fits, or a ticket that does not wait or does not fit, the oldest request is served
/// instead and `take_failures` tells. The policy hears of each event once and in order.
std::unique_ptr<lease_policy> make_guarded_policy(std::unique_ptr<lease_policy> own);

} // namespace gristmill
