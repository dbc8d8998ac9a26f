#pragma once

#include "kernels/lowering/program_graph.hpp"
#include "kernels/lowering/sub_problem.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace gristmill {

/// A graph cut into stages, as the values that each stage writes.
class stage_groups {
public:
  using group = std::vector<int64_t>;

  /// A stage for every operator that is no view; the values of one operator are one stage.
  static stage_groups one_an_operator(const program_graph& program);

  const std::vector<group>& groups() const { return groups_; }
  const value_set& materialised() const { return materialised_; }

  /// The stage of a group under this cut.
  stage_cut cut(const program_graph& program, const group& roots) const {
    return cut_stage(program, roots, materialised_);
  }

  /// Gives a value a buffer, written by a stage of its own.
  void add(int64_t value);
  /// Takes the buffers away: the values are computed where they are used.
  void remove(const std::vector<int64_t>& values);
  /// Makes one stage of two.
  void merge(size_t a, size_t b);

  /// The groups in launch order, by the place of what they compute where that is free; nothing when
  /// two stages wait for each other.
  std::optional<std::vector<group>> in_order(const program_graph& program) const;

  friend bool operator==(const stage_groups&, const stage_groups&) = default;

private:
  /// Sorted by their first value; values sorted.
  std::vector<group> groups_;
  value_set materialised_;
};

} // namespace gristmill
