#pragma once

#include "messages/result.hpp"
#include "protocol/program/program.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// What the rules of the file say about a candidate, before anything is compiled: sizes, forbidden
/// names, headers, inline PTX, entries, hypothesis. Every candidate of an agent passes through
/// here, however it was handed in. `refused` with "source:LINE: …", "plan: …" or "hypothesis: …"
/// for the agent; all that is wrong in one message, a line each. `language` is "cuda" or
/// "cute_dsl"; a language that no evaluator of this build can judge is `unsupported`.
result<void> check_candidate(const protocol_program& program, std::string_view source,
  std::string_view plan, std::string_view hypothesis, std::string_view language = "cuda");

/// Share of tokens that two sources have in common, 0 to 1: comments, blanks and the names that a
/// source declares itself do not count. 1 means the same code under other names.
double source_similarity(std::string_view left, std::string_view right);

/// What `check_duplicate` compares with.
struct earlier_source {
  /// How the message calls it, such as "softmax/cuda/12".
  std::string name;
  std::string source;
  std::string plan;
};

/// `refused` when source and plan agree with an earlier candidate's to `similarity_max` or more.
/// The same source with a plan that differs in more than blanks is no duplicate.
result<void> check_duplicate(const program_rules& rules, std::string_view source,
  std::string_view plan, const std::vector<earlier_source>& earlier);

} // namespace gristmill
