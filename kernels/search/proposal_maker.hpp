#pragma once

#include "kernels/search.hpp"
#include "kernels/search/search_record.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

search_result search_ended(search_outcome outcome, std::string reason);

/// Makes candidates of points: nothing for a key that is known and for a plan that cannot be used.
class proposal_maker {
public:
  proposal_maker(
    const search_space& space, const search_question& question, const search_record& record)
    : space_(space), question_(question), record_(record) {}

  std::optional<search_result> full(
    const program_point& point, std::string parent, std::string hypothesis);
  /// On the workloads at `places`.
  std::optional<search_result> probe(const program_point& point, const std::vector<size_t>& places,
    std::string parent, std::string hypothesis);
  std::optional<search_result> confirm(const program_point& point, std::string hypothesis);
  /// A candidate with a configuration for each condition.
  std::optional<search_result> groups(
    const std::vector<std::pair<std::string, program_point>>& parts, std::string prefix,
    std::string parent, std::string hypothesis);

  /// Why the last refused plan was refused; empty when none was.
  const std::string& refusal() const { return refusal_; }

private:
  std::optional<search_result> made(
    std::string key, result<generated_kernel> kernel, std::string parent, std::string hypothesis);

  const search_space& space_;
  const search_question& question_;
  const search_record& record_;
  std::string refusal_;
};

/// Why there is no further candidate: every point was tried, or what is left cannot be launched.
search_result nothing_left(const search_record& record, const proposal_maker& maker);

} // namespace gristmill
