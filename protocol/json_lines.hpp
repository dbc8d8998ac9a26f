#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// The line, counted from 1, on which each field of a JSON document begins. Paths are those of the
/// readers' messages: keys and list indices joined by dots ("axes.K.value", "sources.0.path"); the
/// line of a key counts, and of a key that is written twice the last one. For a field that is not
/// there: the line of the nearest object or list above it.
///
/// One pass over the text, which must be valid JSON (for another text the lines mean nothing). It
/// is called only when there is something to say, so that reading costs nothing more.
std::vector<size_t> lines_of_fields(std::string_view text, const std::vector<std::string>& paths);

} // namespace gristmill
