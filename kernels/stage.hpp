#pragma once

#include "kernels/template_point.hpp"
#include "messages/result.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/problem.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// The kernels that one template family can write for one sub-problem, as a finite set of points.
///
/// A sub-problem is a part of a problem that became a problem itself: its definition names the
/// tensors that the part reads and writes, its graph computes the outputs from the inputs, and its
/// workloads carry the axes of the whole problem's (docs/decisions/0010-stages.md). So a family
/// never knows whether a tensor is an input of the user's problem or the scratch of a neighbour.
///
/// Immutable. Points are numbered from 0 in a fixed order that only sub-problem and family decide.
class stage_space {
public:
  virtual ~stage_space() = default;

  /// Feasible points: some workload can use each, and it fits every GPU of our table. At least 1.
  virtual size_t size() const = 0;

  /// The point to begin with: a good guess, right for every workload.
  virtual size_t first() const = 0;

  /// Points that are worth a trial right after the first, the best guess first; may be empty. With
  /// few trials for a problem these are the ones that should not be left out.
  virtual std::vector<size_t> promising() const { return {}; }

  /// Stable name, such as "gemm/bm128/bn64/bk16/ffma": family, then parameters. Different points
  /// have different names. No spaces, no '+', no '@'.
  virtual std::string key(size_t point) const = 0;

  /// The point in words, for a hypothesis; starts in lower case, no full stop.
  virtual std::string describe(size_t point) const = 0;

  /// Steps between two points: neighbouring values of one parameter are 1 apart.
  virtual int distance(size_t a, size_t b) const = 0;

  /// What a move between two points is about, such as "vectors of 8 instead of 4: fewer and wider
  /// memory instructions".
  virtual std::string difference(size_t from, size_t to) const = 0;

  /// Device code and launch plan of a point: a whole candidate for the sub-problem. The plan has
  /// variants where shapes need them; it names tensors, axes and scalars in qualified form only
  /// (`in.x`, `out.y`, `axis.M`) except for bare names in `args`. Kernels are `extern "C"`.
  virtual generated_kernel generate(size_t point) const = 0;
};

using stage_space_ptr = std::unique_ptr<stage_space>;

/// Reads a sub-problem for one family. `unsupported` with a reason in words when it does not fit,
/// such as "operator 'sort' belongs to no template family yet".
using stage_reader = result<stage_space_ptr> (*)(const problem& target, const op_graph& graph);

struct stage_family {
  /// Prefix of its keys.
  std::string_view name;
  stage_reader read;
  /// Fusing more operators into one stage of this family is worth it. False for kernels that are
  /// merely correct.
  bool is_good = true;
};

/// All families, best first. The first that reads a stage is where its search begins; the spaces of
/// the others that read it belong to the search, too.
const std::vector<stage_family>& stage_families();

/// One parameter of a family whose points are combinations of parameters.
struct stage_parameter {
  /// Short, for keys, such as "bm".
  std::string name;
  /// In words, such as "rows a block".
  std::string words;
  /// What more of it means and what less, in words; may be empty.
  std::string more;
  std::string less;
};

/// A stage space over combinations of integer parameters: keys, distances and words for free. A
/// derived class says what a point generates.
class parameter_space : public stage_space {
public:
  size_t size() const override { return points_.size(); }
  size_t first() const override { return first_; }
  /// "family/bm128/bn64": a parameter with the value 0 is left out.
  std::string key(size_t point) const override;
  std::string describe(size_t point) const override;
  /// Sum over the parameters of how many of its values lie between.
  int distance(size_t a, size_t b) const override;
  std::string difference(size_t from, size_t to) const override;

protected:
  /// `points` must not be empty; each has one value for each parameter; `first` is one of them.
  parameter_space(std::string family, std::vector<stage_parameter> parameters,
    std::vector<std::vector<int64_t>> points, std::vector<int64_t> first);

  const std::vector<int64_t>& values(size_t point) const { return points_[point]; }
  /// The point with these values; the number of points when there is none.
  size_t point_with(const std::vector<int64_t>& values) const;
  /// Those of `wished` that are points, in that order.
  std::vector<size_t> points_with(const std::vector<std::vector<int64_t>>& wished) const;

private:
  std::string family_;
  std::vector<stage_parameter> parameters_;
  std::vector<std::vector<int64_t>> points_;
  /// The values of each parameter that occur, ascending.
  std::vector<std::vector<int64_t>> ladder_;
  size_t first_ = 0;
};

} // namespace gristmill
