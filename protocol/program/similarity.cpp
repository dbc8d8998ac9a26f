#include "protocol/program/candidate_rules.hpp"
#include "protocol/program/device_tokens.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace gristmill {

namespace {

using token_kind = device_token::kind;
/// Tokens of one piece: a changed word changes this many pieces.
constexpr size_t piece_tokens = 3;

const std::set<std::string, std::less<>>& type_words() {
  static const std::set<std::string, std::less<>> words{"auto", "bool", "char", "class", "const",
    "constexpr", "define", "double", "enum", "float", "half", "int", "long", "short", "signed",
    "size_t", "struct", "typename", "uint", "union", "unsigned", "using", "void", "volatile",
    "__restrict__", "__shared__", "float2", "float4", "half2", "int2", "int4", "uint2", "uint4",
    "__half", "__half2", "__nv_bfloat16", "__nv_bfloat162"};
  return words;
}

bool is_type(const device_token& token) {
  return token.what == token_kind::identifier
    && (type_words().contains(token.text) || token.text.ends_with("_t"));
}

/// Names that stand where a declaration has its name: behind a type, with `*` or `&` between at
/// most. A name that is only used, such as that of an intrinsic, is not among them.
std::set<std::string, std::less<>> declared_names(const std::vector<device_token>& tokens) {
  std::set<std::string, std::less<>> out;
  for (size_t i = 1; i < tokens.size(); ++i) {
    if (tokens[i].what != token_kind::identifier || is_type(tokens[i]))
      continue;
    size_t before = i - 1;
    while (before > 0 && (tokens[before].text == "*" || tokens[before].text == "&"))
      --before;
    if (is_type(tokens[before]))
      out.insert(tokens[i].text);
  }
  return out;
}

/// The words of a source with its own names numbered in the order in which they come.
std::vector<std::string> normal_words(std::string_view source) {
  const auto tokens = device_tokens(source);
  const auto declared = declared_names(tokens);
  std::map<std::string, std::string> numbered;
  std::vector<std::string> out;
  out.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto& token = tokens[i];
    // `blockIdx.x` is not the `x` that the source declares.
    const bool member = i > 0 && (tokens[i - 1].text == "." || tokens[i - 1].text == "->");
    if (token.what != token_kind::identifier || member || !declared.contains(token.text)) {
      out.push_back(token.text);
      continue;
    }
    const auto found = numbered.emplace(token.text, fmt::format("name {}", numbered.size())).first;
    out.push_back(found->second);
  }
  return out;
}

std::map<std::string, size_t> pieces_of(const std::vector<std::string>& words) {
  std::map<std::string, size_t> out;
  for (size_t i = 0; i + 1 <= words.size(); ++i) {
    std::string piece;
    for (size_t k = i; k < std::min(i + piece_tokens, words.size()); ++k)
      piece += words[k] + '\n';
    ++out[piece];
  }
  return out;
}

/// The same document in the same bytes, whatever its blanks and the order of its keys.
std::string normal_plan(std::string_view text) {
  const auto parsed = nlohmann::json::parse(text, nullptr, false);
  return parsed.is_discarded()
    ? std::string(text)
    : parsed.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace

double source_similarity(std::string_view left, std::string_view right) {
  const auto a = normal_words(left), b = normal_words(right);
  if (a == b)
    return 1;
  const auto mine = pieces_of(a), other = pieces_of(b);
  size_t shared = 0;
  for (const auto& [piece, count] : mine)
    if (const auto found = other.find(piece); found != other.end())
      shared += std::min(count, found->second);
  // Different words may have the same pieces in another order: never 1.
  const double share = 2.0 * static_cast<double>(shared) / static_cast<double>(a.size() + b.size());
  return std::min(share, 0.9999);
}

result<void> check_duplicate(const program_rules& rules, std::string_view source,
  std::string_view plan, const std::vector<earlier_source>& earlier) {
  const auto own_plan = normal_plan(plan);
  for (const auto& each : earlier) {
    // Tuning by the plan alone is a change.
    if (normal_plan(each.plan) != own_plan)
      continue;
    const double share = source_similarity(source, each.source);
    if (share >= rules.similarity_max)
      return fail(errc::refused,
        fmt::format(
          "this is the candidate {} again, {} (candidate.similarity_max = {}); change what "
          "it does",
          each.name,
          share >= 1 ? std::string("under other names at most")
                     : fmt::format("with {:.1f} % of its tokens the same", share * 100),
          rules.similarity_max));
  }
  return {};
}

} // namespace gristmill
