#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

enum class search_key_kind : uint8_t { point = 0, probe, confirm, groups };

/// A key of the search, taken apart.
struct search_key {
  search_key_kind kind = search_key_kind::point;
  /// What was tried: a point's key, or "groups:…".
  std::string_view subject;
};

constexpr std::string_view probe_prefix = "probe:";
constexpr std::string_view confirm_prefix = "confirm:";
constexpr std::string_view groups_prefix = "groups:";

/// Views into `key`.
search_key read_key(std::string_view key);

/// The keys of the stages of a point: "p2:map/t256+gemm/bm64" has "map/t256" and "gemm/bm64".
std::vector<std::string_view> stage_keys(std::string_view point_key);

/// The part before the first '/': the family of a stage.
std::string_view family_of(std::string_view stage_key);

/// The key of a candidate with several configurations: equal for equal conditions and points. Short
/// ones in full, "groups:M <= 64?a;b", long ones as a hash, "groups:3x1f0c…".
std::string groups_key(const std::vector<std::pair<std::string, std::string>>& groups);

/// Conditions and keys of the points of a groups key; empty for one that is a hash.
std::vector<std::pair<std::string, std::string>> parts_of_groups_key(std::string_view key);

} // namespace gristmill
