#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// The candidate with the fewest edits (insert, delete, replace; a swap of neighbours and a
/// difference of case count half), or nothing when none is close enough to be a misspelling. The
/// first one wins a tie.
std::optional<std::string> nearest(
  std::string_view name, const std::vector<std::string>& candidates);

/// The end of a message: "; did you mean `x`?", or when nothing is near "; known: a, b, c" (cut
/// after a dozen), or nothing when there is no candidate at all.
std::string suggestion(std::string_view name, const std::vector<std::string>& candidates);

} // namespace gristmill
