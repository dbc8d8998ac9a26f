#pragma once

#include "kernels/template_point.hpp"
#include "messages/result.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/problem.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// One way to compute a problem: how the graph is cut into stages, and one point of each stage.
struct program_point {
  size_t partition = 0;
  /// One for each stage of the partition, in launch order.
  std::vector<size_t> stages;

  friend bool operator==(const program_point&, const program_point&) = default;
};

/// All programs of our own for a problem: fusion partitions x families x parameters.
///
/// Partition 0 fuses most; the last one has a stage for each operator. Immutable; equal arguments
/// give equal spaces (numbers, keys, texts).
class program_space {
public:
  /// `unsupported` with a reason in words when some operator of the graph has no kernel, or a shape
  /// of it cannot be told from the axes.
  static result<program_space> make(const problem& target, const op_graph& graph);

  program_space(program_space&&) noexcept;
  program_space& operator=(program_space&&) noexcept;
  ~program_space();

  size_t partitions() const;
  size_t stages(size_t partition) const;
  /// Points of one stage, over all families that read it; those of the best family first.
  size_t points(size_t partition, size_t stage) const;
  /// Number of programs; UINT64_MAX when there are more.
  uint64_t size() const;
  /// The i-th of them, `index` < `size()`; neighbours in number are not neighbours in distance.
  program_point at(uint64_t index) const;

  /// The best family's first point for every stage of a partition.
  program_point first(size_t partition = 0) const;

  /// "map/t256/v8+gemm/bm64/bn64": keys of the stages; "p2:" before it for partitions other than 0.
  std::string key(const program_point& point) const;
  /// The point with that key, if this space has it.
  std::optional<program_point> find(std::string_view key) const;

  /// Points that differ in one stage by one step, the stage with the most work first, then the
  /// points of other families, then the first points of the other partitions with the stages that
  /// they share kept as they are.
  std::vector<program_point> neighbours(const program_point& point) const;

  /// Points of partition 0 that are worth a trial right after its first, the best guess first: what
  /// its stages promise (`stage_space::promising`), one promise a stage at a time.
  std::vector<program_point> promising() const;

  /// In words; starts in lower case, no full stop.
  std::string describe(const program_point& point) const;
  std::string difference(const program_point& from, const program_point& to) const;

  /// One candidate: device code and launch plan. `refused` when it would exceed a limit of launch
  /// plans, such as the number of steps.
  result<generated_kernel> generate(const program_point& point) const;

  /// One candidate with a configuration for each group of workloads: the first whose condition (a
  /// launch-plan expression over `axis.…`) holds is used; the last condition must be "true".
  /// 16 groups at most. Errors as above, and `invalid_input` for a condition that is no expression.
  result<generated_kernel> generate(
    const std::vector<std::pair<std::string, program_point>>& groups) const;

  /// What of the problem takes the time, in shares that sum to 1: floating-point and byte work of
  /// the stages of a partition at the largest workload. An estimate for the order of moves.
  std::vector<double> work_shares(size_t partition) const;

private:
  struct parts;
  explicit program_space(std::unique_ptr<const parts> made);
  std::unique_ptr<const parts> parts_;
};

} // namespace gristmill
