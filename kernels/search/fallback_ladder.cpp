#include "kernels/search/fallback_ladder.hpp"

#include "kernels/search/search_key.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace gristmill {

namespace {

/// Single exchanges of a family that are tried before all stages are made plain.
constexpr size_t exchanges_before_plain = 4;

/// The only stage in which two points of a partition differ; nothing when it is another number.
std::optional<size_t> only_difference(const program_point& a, const program_point& b) {
  if (a.partition != b.partition || a.stages.size() != b.stages.size())
    return std::nullopt;
  std::optional<size_t> out;
  for (size_t i = 0; i < a.stages.size(); ++i) {
    if (a.stages[i] == b.stages[i])
      continue;
    if (out)
      return std::nullopt;
    out = i;
  }
  return out;
}

class ladder_builder {
public:
  explicit ladder_builder(const search_space& space) : space_(space) {}

  void add(const program_point& point) {
    if (seen_.insert(space_.key(point)).second)
      out_.push_back(point);
  }

  void add_partition(size_t partition, size_t exchanges_max) {
    const program_point base = space_.first(partition);
    add(base);
    const auto exchanges = other_families(space_, base);
    for (size_t i = 0; i < std::min(exchanges.size(), exchanges_max); ++i)
      add(exchanges[i]);
    // Families are ordered, best first, so the last of each stage is the plainest.
    program_point plain = base;
    for (const program_point& one : exchanges) {
      if (const auto stage = only_difference(base, one))
        plain.stages[*stage] = one.stages[*stage];
    }
    add(plain);
    for (const program_point& one : exchanges)
      add_later(one);
  }

  std::vector<program_point> finish() {
    for (const program_point& one : later_)
      add(one);
    return std::move(out_);
  }

private:
  void add_later(const program_point& one) { later_.push_back(one); }

  const search_space& space_;
  std::set<std::string> seen_;
  std::vector<program_point> out_;
  std::vector<program_point> later_;
};

} // namespace

std::vector<program_point> other_families(const search_space& space, const program_point& base) {
  const std::string base_key = space.key(base);
  const auto base_stages = stage_keys(base_key);
  std::set<std::pair<size_t, std::string>> seen;
  std::vector<program_point> out;
  for (program_point& one : space.neighbours(base)) {
    const auto stage = only_difference(base, one);
    if (!stage)
      continue;
    const std::string key = space.key(one);
    const auto stages = stage_keys(key);
    if (*stage >= stages.size() || *stage >= base_stages.size())
      continue;
    const std::string_view family = family_of(stages[*stage]);
    if (family != family_of(base_stages[*stage])
      && seen.emplace(*stage, std::string(family)).second)
      out.push_back(std::move(one));
  }
  return out;
}

std::vector<program_point> fallback_ladder(const search_space& space) {
  ladder_builder ladder(space);
  ladder.add_partition(0, exchanges_before_plain);
  const size_t last = space.partitions() - 1;
  if (last > 0)
    ladder.add_partition(last, 0);
  for (size_t partition = 1; partition < last; ++partition)
    ladder.add(space.first(partition));
  return ladder.finish();
}

} // namespace gristmill
