#pragma once

#include "kernels/families/contraction.hpp"
#include "kernels/families/gemm_task.hpp"
#include "kernels/stage.hpp"
#include "protocol/problem.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace gristmill {

enum class gemm_path : uint8_t { ffma, mma, dots, strips, direct, wgmma };
constexpr int gemm_paths = 6;

/// One way to compute a contraction. Fields that a path does not have are 0.
struct gemm_point {
  gemm_path path = gemm_path::ffma;
  /// ffma, mma, wgmma: a block's tile, the step along the depth.
  int bm = 0;
  int bn = 0;
  int bk = 0;
  /// ffma: a thread's tile.
  int tm = 0;
  int tn = 0;
  /// mma: a warp's tile; mma, wgmma: steps on their way.
  int wm = 0;
  int wn = 0;
  int stages = 0;
  /// dots, strips: rows of the few that a block has.
  int few = 0;
  /// dots: columns a warp; warps a block; warps that share a depth.
  int many = 0;
  int warps = 0;
  int parts = 0;
  /// strips: threads along the many.
  int along = 0;
  /// direct: threads of a block.
  int threads = 0;
  /// Parts of the depth in blocks of their own; 1 for none.
  int splits = 1;
  /// wgmma: blocks that share the right operand; 1 for none.
  int cluster = 1;

  int block_threads() const;
  /// Bytes of shared memory of a block.
  int shared_bytes(bool left_along_depth, bool right_along_depth) const;
  std::vector<int64_t> values() const;
  static gemm_point of(const std::vector<int64_t>& values);

  friend bool operator==(const gemm_point&, const gemm_point&) = default;
};

std::string_view name(gemm_path path);

/// Names and words of `values()`.
std::vector<stage_parameter> gemm_parameters();

/// Sizes of a contraction at one workload.
struct gemm_shape {
  int64_t batches = 1;
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t depth = 1;
  /// Of all tensors.
  int64_t bytes = 0;

  double work() const;
};

/// What of a contraction the feasibility of points depends on.
struct gemm_facts {
  /// One for each workload, at least one.
  std::vector<gemm_shape> shapes;
  bool has_tensor_cores = false;
  /// Both operands are matrices that a tensor map describes, with the depth innermost.
  bool has_tensor_maps = false;
  bool left_along_depth = true;
  bool right_along_depth = true;
  /// Widest vectors that the operands take at the largest workload.
  int left_width = 1;
  int right_width = 1;
  bool many_is_left = false;

  const gemm_shape& largest() const;
  int64_t few(const gemm_shape& shape) const { return many_is_left ? shape.columns : shape.rows; }
  int64_t many(const gemm_shape& shape) const { return many_is_left ? shape.rows : shape.columns; }
  bool many_along_depth() const { return many_is_left ? left_along_depth : right_along_depth; }
};

/// Points that fit (shared memory of 99 KiB, registers, threads; of `wgmma`, which other devices
/// never run, 227 KiB) and that some workload can use.
std::vector<gemm_point> feasible_gemm_points(const gemm_facts& facts);

/// A good guess among those of one path; nothing where there is none.
std::optional<gemm_point> best_gemm_point(
  const std::vector<gemm_point>& points, const gemm_facts& facts, gemm_path path);

/// Points of the same path as the good guess that are worth a trial right after it, best first.
std::vector<gemm_point> promising_gemm_points(
  const std::vector<gemm_point>& points, const gemm_facts& facts);

/// A good guess among all of them.
gemm_point first_gemm_point(const std::vector<gemm_point>& points, const gemm_facts& facts);

} // namespace gristmill
