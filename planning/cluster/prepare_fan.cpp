#include "planning/cluster/prepare_fan.hpp"

#include <algorithm>

namespace gristmill {

prepare_fan::prepare_fan(std::set<session_id> places) : waiting_(std::move(places)) {}

void prepare_fan::answered(session_id place, const prepared_problem& prepared) {
  if (waiting_.erase(place) != 0)
    answers_.emplace_back(place, prepared);
}

void prepare_fan::failed(session_id place, const failure& why) {
  if (waiting_.erase(place) != 0)
    failures_.emplace_back(place, why);
}

void prepare_fan::lost(session_id place) {
  waiting_.erase(place);
}

const std::pair<session_id, prepared_problem>* prepare_fan::best() const {
  if (answers_.empty())
    return nullptr;
  for (const auto& one : answers_)
    if (one.first == 0)
      return &one;
  for (const auto& one : answers_)
    if (one.second.status == verdict_status::passed)
      return &one;
  return &answers_.front();
}

result<prepared_problem> prepare_fan::outcome() const {
  if (const auto* one = best())
    return one->second;
  if (!failures_.empty())
    return tl::unexpected<failure>(failures_.front().second);
  return fail(errc::node_lost, "every node that prepared it was lost");
}

session_id prepare_fan::winner() const {
  const auto* one = best();
  return one ? one->first : 0;
}

std::vector<std::pair<session_id, std::string>> prepare_fan::unfit() const {
  std::vector<std::pair<session_id, std::string>> out;
  for (const auto& [place, why] : failures_)
    if (place != 0)
      out.emplace_back(place, why.what);
  const auto* one = best();
  if (one && one->second.status == verdict_status::passed)
    for (const auto& [place, prepared] : answers_)
      if (place != 0 && prepared.status != verdict_status::passed)
        out.emplace_back(place, prepared.reason);
  return out;
}

std::string prepare_key(const prepare_request& what) {
  return what.draw.empty() ? what.problem : what.problem + " @ " + what.draw;
}

} // namespace gristmill
