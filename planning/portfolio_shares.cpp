#include "planning/portfolio.hpp"

namespace gristmill {

namespace {
/// Neither a problem nor a worker has this name, so its own account is empty.
const std::string nobody;
} // namespace

bool portfolio::share_holds(const problem& p) const {
  return !shares_.would_refuse(p.name, nobody);
}

bool portfolio::finish_spent(problem& p) {
  if (p.state != problem_state::open || !p.in_flight.empty())
    return false;
  auto no = shares_.would_refuse(p.name, nobody);
  if (!no || !no->for_good)
    return false;
  // What was finished before and is open for re-runs alone keeps its reason.
  finish(p, p.only_reruns ? p.reason : no->text());
  return true;
}

std::string portfolio::worker_is_spent(const std::string& worker) {
  if (!shares_.limits_anything())
    return {};
  workers_seen_.insert(worker);
  auto no = shares_.would_refuse(nobody, worker);
  if (!no)
    return {};
  workers_spent_.insert(worker);
  if (workers_spent_.size() == workers_seen_.size() && stop_reason_.empty())
    stop_reason_ = "every worker's own budget is spent; " + no->text();
  return no->text();
}

} // namespace gristmill
