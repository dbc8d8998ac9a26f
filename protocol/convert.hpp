#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// A document in the SOL-ExecBench form, made from one of the older FlashInfer-Bench form.
struct converted {
  /// As the writers write it; it loads without an error.
  std::string text;
  /// What was dropped, filled in or left to the reader to check, a text each, with the field.
  std::vector<std::string> notes;
};

enum class document_kind : uint8_t { definition, workloads, solution };

/// "definition", "workloads" or "solution".
std::string_view name(document_kind kind);

/// What a text is by its keys: one object with `spec` and `sources`, one with `axes` and
/// `reference`, or lines with `workload` or `uuid`. Nothing when it is none of these.
std::optional<document_kind> recognise_document(std::string_view text);

/// Drops what the format has no place for (`tags`, `constraints`, …), each with a note. Fails on
/// what changes the meaning: an optional input, an unknown dtype.
result<converted> convert_definition(std::string_view text, const std::string& file_name);

/// Takes plain lines and lines wrapped in a trace. Repeated workloads (one a solution in a file of
/// results) become one; two different ones under one uuid, or lines of several definitions, fail.
result<converted> convert_workloads(std::string_view text, const std::string& file_name);

/// `spec.language` becomes `spec.languages`. Fails, naming the field, on what the format cannot
/// say: the tvm-ffi binding (also where it is only the old default), another language, no usable
/// hardware name.
result<converted> convert_solution(std::string_view text, const std::string& file_name);

/// The one of the three that fits the kind.
result<converted> convert_document(
  document_kind kind, std::string_view text, const std::string& file_name);

} // namespace gristmill
