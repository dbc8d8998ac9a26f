#include "kernels/search/proposal_maker.hpp"

#include "kernels/search/search_key.hpp"

namespace gristmill {

search_result search_ended(search_outcome outcome, std::string reason) {
  search_result out;
  out.outcome = outcome;
  out.reason = std::move(reason);
  return out;
}

std::optional<search_result> proposal_maker::made(
  std::string key, result<generated_kernel> kernel, std::string parent, std::string hypothesis) {
  if (!kernel) {
    refusal_ = kernel.error().what;
    return std::nullopt;
  }
  if (question_.check) {
    if (const auto fits = question_.check(*kernel); !fits) {
      refusal_ = fits.error().what;
      return std::nullopt;
    }
  }
  search_result out;
  out.outcome = search_outcome::candidate;
  out.candidate.source = std::move(kernel->source);
  out.candidate.plan = std::move(kernel->plan);
  out.candidate.key = std::move(key);
  out.candidate.parent = std::move(parent);
  out.candidate.hypothesis = std::move(hypothesis);
  return out;
}

std::optional<search_result> proposal_maker::full(
  const program_point& point, std::string parent, std::string hypothesis) {
  std::string key = space_.key(point);
  if (record_.knows(key))
    return std::nullopt;
  return made(std::move(key), space_.generate(point), std::move(parent), std::move(hypothesis));
}

std::optional<search_result> proposal_maker::probe(const program_point& point,
  const std::vector<size_t>& places, std::string parent, std::string hypothesis) {
  const std::string key = space_.key(point);
  if (record_.knows_point(key))
    return std::nullopt;
  auto out = made(std::string(probe_prefix) + key, space_.generate(point), std::move(parent),
    std::move(hypothesis));
  if (out) {
    out->candidate.effort = attempt_effort::probe;
    for (size_t place : places)
      out->candidate.workloads.push_back(question_.workloads[place].uuid);
  }
  return out;
}

std::optional<search_result> proposal_maker::confirm(
  const program_point& point, std::string hypothesis) {
  const std::string point_key = space_.key(point);
  std::string key = std::string(confirm_prefix) + point_key;
  if (record_.knows(key))
    return std::nullopt;
  return made(std::move(key), space_.generate(point), point_key, std::move(hypothesis));
}

std::optional<search_result> proposal_maker::groups(
  const std::vector<std::pair<std::string, program_point>>& parts, std::string prefix,
  std::string parent, std::string hypothesis) {
  std::vector<std::pair<std::string, std::string>> named;
  for (const auto& [condition, point] : parts)
    named.emplace_back(condition, space_.key(point));
  std::string key = prefix + groups_key(named);
  if (record_.knows(key))
    return std::nullopt;
  return made(std::move(key), space_.generate(parts), std::move(parent), std::move(hypothesis));
}

search_result nothing_left(const search_record& record, const proposal_maker& maker) {
  if (record.full_points() == 0 && !maker.refusal().empty())
    return search_ended(search_outcome::no_candidate,
      "no point of the space can be launched, the last because: " + maker.refusal());
  return search_ended(search_outcome::exhausted,
    maker.refusal().empty()
      ? std::string("every point was tried")
      : "no point that is left can be launched, the last because: " + maker.refusal());
}

} // namespace gristmill
