#pragma once

#include "protocol/definition.hpp"
#include "protocol/json_document.hpp"
#include "protocol/workload.hpp"

#include <string>
#include <string_view>

namespace gristmill {

// The writers of solution, trace and config stand beside their readers. What all of them have in
// common: the order of the format, strict JSON (neither NaN nor Infinity), and bytes that are not
// UTF-8 replaced by U+FFFD. Reading what was written gives the same value again.

/// `definition.json` with two blanks of indentation and a final newline. Fields that are null or
/// empty are left out.
std::string to_json(const definition& given);

/// One line of `workload.jsonl` without the newline, the tolerance with all its fields.
std::string to_json(const workload& given);

/// The object that `to_json` writes, for a document that contains one.
ordered_json workload_to_json(const workload& given);

/// A number that JSON can hold; an infinity or NaN becomes the text that the lenient readers
/// take for it ("inf", "-inf", "nan").
ordered_json lenient_number(double value);

/// On one line, or with two blanks of indentation and a final newline.
std::string dump_json(const ordered_json& value, bool pretty);

} // namespace gristmill
