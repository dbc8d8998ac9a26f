#pragma once

#include "llm/transport/http_port.hpp"
#include "llm/transport/redactor.hpp"
#include "protocol/json_document.hpp"

#include <span>
#include <string>
#include <vector>

namespace gristmill {

/// What makes two calls the same request, without secrets: the address, and the body with its keys
/// in order. Headers, keys and the number of the call are no part of it.
struct canonical_request {
  std::string url;
  /// A JSON body with the keys of every object sorted and the volatile fields left out; null for
  /// any other body.
  ordered_json json;
  /// Any other body.
  std::string text;
  /// SHA-256 of the above, in hexadecimal.
  std::string hash;
};

/// Volatile fields are those of the body's top level.
canonical_request canonical(const http_call& call, std::span<const std::string> volatile_fields,
  const redactor& secrets, redaction_count* count = nullptr);

/// The request as lines for a person: one for each value, with its path, and one for each line of a
/// longer text.
std::vector<std::string> lines_of(const canonical_request& request);

/// How much two requests have in common, in bytes of equal lines.
size_t likeness(const std::vector<std::string>& a, const std::vector<std::string>& b);

/// The lines in which they differ, "- " of `recorded`, "+ " of `wanted`, in order: at most `most`
/// of them, each cut.
std::string short_diff(const std::vector<std::string>& recorded,
  const std::vector<std::string>& wanted, size_t most = 16);

} // namespace gristmill
