#pragma once

#include "protocol/json_document.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gristmill {

// Reading of JSON that any server may have sent. Nothing here throws and nothing is taken for
// granted: a member that is missing, null or of another kind is simply not there.

/// One event, or one error body. A text, a null or a number is a value, too; nothing for what is no
/// JSON, too large or nested too deep.
std::optional<ordered_json> read_json(std::string_view text);

/// The member of an object; null when there is none, when it is null, or when `value` is no object.
const ordered_json* member(const ordered_json* value, std::string_view key);
/// The first element of an array, or null.
const ordered_json* first_element(const ordered_json* value);

/// A string; empty for anything else.
std::string_view text_of(const ordered_json* value);
/// The same of a member.
std::string_view text_at(const ordered_json* value, std::string_view key);
/// A string, or a whole number written out, for codes that may be either.
std::string word_at(const ordered_json* value, std::string_view key);
/// A whole number of 0 or more, also one written as 12.0; nothing for anything else.
std::optional<uint64_t> natural_at(const ordered_json* value, std::string_view key);

/// Text that may be a string or an array of parts, of which those of type "text", "output_text" or
/// without a type count.
std::string joined_text(const ordered_json* value);

} // namespace gristmill
