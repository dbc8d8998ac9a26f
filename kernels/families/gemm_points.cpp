#include "kernels/families/gemm_points.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace gristmill {

namespace {

constexpr int shared_bytes_max = 99 * 1024;
/// Static shared memory needs no permission up to here.
constexpr int static_bytes_max = 48 * 1024;
/// The GPUs of our table have about that many multiprocessors.
constexpr int64_t multiprocessors = 132;
constexpr int64_t few_max = 16;

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

int64_t tiles(const gemm_shape& shape, const gemm_point& point) {
  return shape.batches * ceil_div(shape.rows, point.bm) * ceil_div(shape.columns, point.bn);
}

/// Blocks of a point at a shape, without the splits.
int64_t blocks(const gemm_shape& shape, const gemm_point& point, const gemm_facts& facts) {
  switch (point.path) {
  case gemm_path::ffma:
  case gemm_path::mma:
  case gemm_path::wgmma:
    return tiles(shape, point);
  case gemm_path::dots:
    return shape.batches * ceil_div(facts.few(shape), point.few)
      * ceil_div(facts.many(shape), point.warps / point.parts * point.many);
  case gemm_path::strips:
    return shape.batches * ceil_div(facts.few(shape), point.few)
      * ceil_div(facts.many(shape), point.along * 4);
  case gemm_path::direct:
    break;
  }
  return ceil_div(shape.batches * shape.rows * shape.columns, point.threads);
}

std::vector<gemm_point> candidates(bool has_tensor_cores, bool has_tensor_maps) {
  std::vector<gemm_point> list;
  constexpr std::array<std::array<int, 5>, 14> ffma{{{128, 128, 8, 8, 8}, {128, 128, 16, 8, 8},
    {128, 64, 16, 8, 8}, {64, 128, 16, 8, 8}, {128, 64, 16, 8, 4}, {64, 128, 16, 4, 8},
    {64, 64, 16, 8, 4}, {64, 64, 16, 4, 4}, {64, 64, 32, 4, 4}, {64, 32, 32, 4, 4},
    {32, 64, 32, 4, 4}, {32, 32, 32, 4, 2}, {32, 32, 32, 2, 2}, {16, 16, 32, 1, 1}}};
  for (const auto& [bm, bn, bk, tm, tn] : ffma)
    list.push_back({.path = gemm_path::ffma, .bm = bm, .bn = bn, .bk = bk, .tm = tm, .tn = tn});
  constexpr std::array<std::array<int, 6>, 19> mma{{{256, 128, 32, 64, 64, 3},
    {128, 256, 32, 64, 64, 3}, {128, 128, 32, 64, 64, 3}, {128, 128, 32, 64, 64, 4},
    {128, 128, 32, 64, 32, 3}, {128, 128, 32, 64, 32, 4}, {128, 128, 64, 64, 32, 2},
    {128, 64, 32, 64, 32, 4}, {128, 64, 64, 64, 32, 3}, {64, 128, 32, 32, 64, 4},
    {64, 128, 64, 32, 64, 3}, {64, 64, 32, 32, 32, 4}, {64, 64, 64, 32, 32, 3},
    {64, 64, 64, 32, 32, 4}, {32, 64, 64, 16, 32, 4}, {64, 32, 64, 32, 16, 4},
    {32, 32, 64, 16, 16, 4}, {16, 128, 64, 16, 32, 4}, {16, 64, 64, 16, 16, 4}}};
  if (has_tensor_cores) {
    for (const auto& [bm, bn, bk, wm, wn, stages] : mma)
      list.push_back({.path = gemm_path::mma,
        .bm = bm,
        .bn = bn,
        .bk = bk,
        .wm = wm,
        .wn = wn,
        .stages = stages});
  }
  constexpr std::array<std::array<int, 3>, 7> wgmma{{{128, 256, 4}, {128, 256, 3}, {256, 128, 4},
    {256, 128, 3}, {128, 128, 6}, {128, 128, 5}, {128, 128, 4}}};
  if (has_tensor_maps) {
    for (const auto& [bm, bn, stages] : wgmma) {
      for (int cluster : {1, 2})
        list.push_back({.path = gemm_path::wgmma,
          .bm = bm,
          .bn = bn,
          .bk = 64,
          .stages = stages,
          .cluster = cluster});
    }
  }
  for (int few : {1, 2, 4, 8}) {
    for (int warps : {4, 8}) {
      for (int parts : {1, 4, 8}) {
        for (int many : {1, 2, 4}) {
          if (parts <= warps)
            list.push_back(
              {.path = gemm_path::dots, .few = few, .many = many, .warps = warps, .parts = parts});
        }
      }
    }
    for (int along : {4, 8, 16, 32})
      list.push_back({.path = gemm_path::strips, .few = few, .along = along});
  }
  for (int threads : {64, 128, 256})
    list.push_back({.path = gemm_path::direct, .threads = threads});
  return list;
}

bool fits_gpu(const gemm_point& point, const gemm_facts& facts) {
  // Chosen for the one architecture that has the units: 227 KiB, and registers by roles.
  if (point.path == gemm_path::wgmma)
    return point.shared_bytes(true, true) <= 227 * 1024;
  const int threads = point.block_threads();
  const int shared = point.shared_bytes(facts.left_along_depth, facts.right_along_depth);
  const bool is_static = point.path != gemm_path::mma;
  if (threads < 32 || threads > 1024 || shared > (is_static ? static_bytes_max : shared_bytes_max))
    return false;
  // Sums of a thread, what is read for the next step, and addresses.
  const int sums = point.path == gemm_path::ffma ? point.tm * point.tn
    : point.path == gemm_path::mma               ? point.wm * point.wn / 32
                                                 : 8;
  const int next = point.path == gemm_path::ffma ? (point.bm + point.bn) * point.bk / threads : 24;
  return sums + next + 48 <= std::min(255, 65536 / threads);
}

/// Vectors of the operands must fill the tile.
bool has_room(const gemm_point& point, const gemm_facts& facts) {
  const int left = facts.left_along_depth ? point.bk : point.bm;
  const int right = facts.right_along_depth ? point.bk : point.bn;
  return left % facts.left_width == 0 && right % facts.right_width == 0;
}

bool is_useful_for(const gemm_point& point, const gemm_shape& shape, const gemm_facts& facts) {
  const int64_t few = facts.few(shape);
  if (shape.batches == 0 || shape.rows == 0 || shape.columns == 0)
    return false;
  if (point.splits > 1) {
    // Splits are for GPUs that would else be empty, and each part must be worth a block.
    const int64_t partial = 4 * point.splits * shape.batches * shape.rows * shape.columns;
    if (blocks(shape, point, facts) > multiprocessors || shape.depth < 128 * point.splits
      || partial > 4 * std::max<int64_t>(shape.bytes, 1))
      return false;
  }
  switch (point.path) {
  case gemm_path::ffma:
  case gemm_path::mma: {
    // No more than half of a tile beyond the edge, unless it is the smallest.
    const int least = 16;
    const bool rows_fit = point.bm <= least || shape.rows * 2 > point.bm;
    const bool columns_fit = point.bn <= least || shape.columns * 2 > point.bn;
    const bool is_deep = point.bk <= 16 || shape.depth * 2 > point.bk;
    const bool is_tiny_tile = point.path == gemm_path::ffma && point.bm == 16;
    return rows_fit && columns_fit && is_deep
      && (!is_tiny_tile || tiles(shape, point) <= 4 * multiprocessors);
  }
  case gemm_path::wgmma:
    // Tiles for whole multiprocessors, and steps enough to fill the pipeline.
    return point.splits == 1 && shape.batches == 1 && 2 * shape.rows > point.bm * point.cluster
      && 2 * shape.columns > point.bn && shape.depth >= 256;
  case gemm_path::dots:
    return facts.many_along_depth() && few <= few_max && (point.few == 1 || point.few < 2 * few)
      && shape.depth >= 32;
  case gemm_path::strips:
    return !facts.many_along_depth() && few <= few_max && (point.few == 1 || point.few < 2 * few)
      && shape.depth >= 16;
  case gemm_path::direct:
    return shape.depth <= 256 || shape.work() < 1e6;
  }
  return false;
}

} // namespace

std::string_view name(gemm_path path) {
  switch (path) {
  case gemm_path::ffma:
    return "ffma";
  case gemm_path::mma:
    return "mma";
  case gemm_path::dots:
    return "dots";
  case gemm_path::strips:
    return "strips";
  case gemm_path::wgmma:
    return "wgmma";
  case gemm_path::direct:
    break;
  }
  return "direct";
}

int gemm_point::block_threads() const {
  switch (path) {
  case gemm_path::ffma:
    return bm / tm * (bn / tn);
  case gemm_path::mma:
    return bm / wm * (bn / wn) * 32;
  case gemm_path::dots:
    return warps * 32;
  case gemm_path::strips:
    return 256;
  case gemm_path::wgmma:
    return 384;
  case gemm_path::direct:
    break;
  }
  return threads;
}

int gemm_point::shared_bytes(bool left_along_depth, bool right_along_depth) const {
  switch (path) {
  case gemm_path::ffma:
    return 2 * bk * (bm + bn + 8) * 4;
  case gemm_path::mma:
    return stages * 2
      * ((left_along_depth ? bm * (bk + 8) : bk * (bm + 8))
        + (right_along_depth ? bn * (bk + 8) : bk * (bn + 8)));
  case gemm_path::dots:
    return warps * few * many * 4;
  case gemm_path::strips:
    // Vectors of 4 at most where there are 8 of the few, else of 8.
    return 256 * few * (few > 4 ? 4 : 8) * 4;
  case gemm_path::wgmma:
    // Tiles begin at multiples of 1024.
    return stages * (bm + bn) * 128 + 1024;
  case gemm_path::direct:
    break;
  }
  return 0;
}

std::vector<int64_t> gemm_point::values() const {
  return {static_cast<int64_t>(path) + 1, bm, bn, bk, tm, tn, wm, wn, stages, few, many, warps,
    parts, along, threads, splits == 1 ? 0 : splits, cluster == 1 ? 0 : cluster};
}

gemm_point gemm_point::of(const std::vector<int64_t>& values) {
  const auto at = [&](size_t i) { return static_cast<int>(values[i]); };
  return {static_cast<gemm_path>(at(0) - 1), at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8),
    at(9), at(10), at(11), at(12), at(13), at(14), at(15) == 0 ? 1 : at(15),
    at(16) == 0 ? 1 : at(16)};
}

std::vector<stage_parameter> gemm_parameters() {
  return {{"path", "as its way to compute", "", ""},
    {"bm", "rows a block", "an element of the right operand is read less often",
      "more blocks for the GPU to spread"},
    {"bn", "columns a block", "an element of the left operand is read less often",
      "more blocks for the GPU to spread"},
    {"bk", "elements of the depth a step", "fewer barriers", "less shared memory"},
    {"tm", "rows a thread", "more products for each number from shared memory", "fewer registers"},
    {"tn", "columns a thread", "more products for each number from shared memory",
      "fewer registers"},
    {"wm", "rows a warp", "more products for each number from shared memory", "fewer registers"},
    {"wn", "columns a warp", "more products for each number from shared memory", "fewer registers"},
    {"st", "steps on their way", "memory is waited for less", "less shared memory"},
    {"few", "rows of the small side a block", "the large side is read less often",
      "fewer registers"},
    {"many", "columns a warp", "the small side is read less often", "more blocks"},
    {"w", "warps a block", "", ""},
    {"parts", "warps that share a depth", "shorter ways along the depth", "fewer sums to combine"},
    {"x", "threads side by side", "longer runs of memory a row", "more threads along the depth"},
    {"t", "threads a block", "", ""},
    {"sp", "parts of the depth", "more blocks where the result is small",
      "no partial sums to write and read"},
    {"c", "blocks that share the right operand", "the cache is read less often",
      "blocks need not wait for each other"}};
}

double gemm_shape::work() const {
  return static_cast<double>(batches) * static_cast<double>(rows) * static_cast<double>(columns)
    * static_cast<double>(depth);
}

const gemm_shape& gemm_facts::largest() const {
  return *std::max_element(shapes.begin(), shapes.end(),
    [](const gemm_shape& a, const gemm_shape& b) { return a.work() < b.work(); });
}

std::vector<gemm_point> feasible_gemm_points(const gemm_facts& facts) {
  std::vector<gemm_point> points;
  for (gemm_point point : candidates(facts.has_tensor_cores, facts.has_tensor_maps)) {
    const bool is_tile = point.path == gemm_path::ffma || point.path == gemm_path::mma;
    if (!fits_gpu(point, facts) || (is_tile && !has_room(point, facts)))
      continue;
    for (int splits : {1, 2, 4, 8, 16}) {
      point.splits = splits;
      if (splits > 1 && (point.path == gemm_path::direct || point.path == gemm_path::wgmma))
        break;
      if (std::any_of(facts.shapes.begin(), facts.shapes.end(),
            [&](const gemm_shape& shape) { return is_useful_for(point, shape, facts); }))
        points.push_back(point);
    }
  }
  // Something is always right: one element a thread.
  if (points.empty())
    points.push_back({.path = gemm_path::direct, .threads = 128});
  return points;
}

std::optional<gemm_point> best_gemm_point(
  const std::vector<gemm_point>& points, const gemm_facts& facts, gemm_path path) {
  const gemm_shape& shape = facts.largest();
  const int64_t few = facts.few(shape);
  const bool has_useful = std::any_of(points.begin(), points.end(), [&](const gemm_point& point) {
    return point.path == path && is_useful_for(point, shape, facts);
  });
  const gemm_point* best = nullptr;
  double best_cost = 0;
  for (const gemm_point& point : points) {
    if (point.path != path || (has_useful && !is_useful_for(point, shape, facts)))
      continue;
    // Waves of blocks times what a block costs: its share of the products at the rate that the tile
    // allows, plus a fixed price.
    const double count = static_cast<double>(blocks(shape, point, facts) * point.splits);
    const double slots = static_cast<double>(multiprocessors);
    const double depth = static_cast<double>(shape.depth) / point.splits;
    double cost = 0;
    switch (path) {
    case gemm_path::ffma:
    case gemm_path::mma: {
      const double m = point.bm;
      const double n = point.bn;
      // Operands that a block reads weigh against products: small tiles starve.
      const double unit = path == gemm_path::mma ? 100.0 : 24.0;
      const double registers =
        path == gemm_path::mma ? 1.0 / point.wm + 1.0 / point.wn : 1.0 / point.tm + 1.0 / point.tn;
      const double rate =
        m * n + unit * (m + n) + (path == gemm_path::mma ? 8.0 : 1.5) * m * n * registers;
      cost = std::max(1.0, count / slots) * (depth * rate + 60000.0);
      // Whole waves for what fills the GPU a few times only.
      if (count < 8 * slots)
        cost *= std::ceil(count / slots) / std::max(1.0, count / slots);
      break;
    }
    case gemm_path::dots:
    case gemm_path::strips: {
      // As many rows of the few as there are, then enough blocks.
      const double waste = static_cast<double>(ceil_div(few, point.few)) + 0.02 * point.few;
      const double fill = std::max(1.0, 4 * slots / std::max(count, 1.0));
      cost = waste * fill
        * (1.0 + 0.05 * std::abs(point.many - 2) + 0.05 * std::abs(point.along - 8)
          + 0.02 * point.parts);
      break;
    }
    case gemm_path::wgmma:
      // Blocks take tile after tile: whole rounds of the tiles, at what a tile reads and computes.
      cost = std::ceil(count / slots) * (point.bm * point.bn + 100.0 * (point.bm + point.bn))
        * (1.0 - 0.01 * point.stages + 0.01 * point.cluster);
      break;
    case gemm_path::direct:
      cost = point.threads == 128 ? 1 : 2;
      break;
    }
    if (point.splits > 1)
      cost *= 1.1;
    if (best == nullptr || cost < best_cost) {
      best = &point;
      best_cost = cost;
    }
  }
  return best == nullptr ? std::nullopt : std::optional{*best};
}

std::vector<gemm_point> promising_gemm_points(
  const std::vector<gemm_point>& points, const gemm_facts& facts) {
  const gemm_point first = first_gemm_point(points, facts);
  std::vector<gemm_point> out;
  if (first.path != gemm_path::wgmma)
    return out;
  for (const auto& [bm, bn] : {std::pair{128, 256}, std::pair{256, 128}, std::pair{128, 128}}) {
    for (int cluster : {2, 1}) {
      // The deepest pipeline of each tile stands first.
      const auto found = std::find_if(points.begin(), points.end(), [&](const gemm_point& point) {
        return point.path == gemm_path::wgmma && point.bm == bm && point.bn == bn
          && point.cluster == cluster;
      });
      if (found != points.end() && !(*found == first))
        out.push_back(*found);
    }
  }
  return out;
}

gemm_point first_gemm_point(const std::vector<gemm_point>& points, const gemm_facts& facts) {
  const gemm_shape& shape = facts.largest();
  const auto has_path = [&](gemm_path path) {
    return std::any_of(points.begin(), points.end(), [&](const gemm_point& point) {
      return point.path == path && is_useful_for(point, shape, facts);
    });
  };
  const int64_t few = facts.few(shape);
  gemm_path path = facts.has_tensor_cores ? gemm_path::mma : gemm_path::ffma;
  // Large products; elsewhere than on architecture 90a such a candidate is an mma tile.
  if (shape.work() >= 8e9 && has_path(gemm_path::wgmma))
    path = gemm_path::wgmma;
  // Tensor cores lose nothing on empty rows: memory decides.
  const int64_t few_enough = facts.has_tensor_cores ? 4 : 8;
  if (few <= few_enough && has_path(gemm_path::dots))
    path = gemm_path::dots;
  else if (few <= few_enough && has_path(gemm_path::strips))
    path = gemm_path::strips;
  if (has_path(gemm_path::direct) && (!has_path(path) || shape.depth <= 16))
    path = gemm_path::direct;
  return best_gemm_point(points, facts, path).value_or(points.front());
}

} // namespace gristmill
