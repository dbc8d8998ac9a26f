#include "kernels/lowering/sweep_stage.hpp"

#include "kernels/expression_writer.hpp"
#include "kernels/fusion.hpp"
#include "kernels/row_kernel_writer.hpp"
#include "kernels/row_passes.hpp"
#include "kernels/sweep_ring.hpp"
#include "kernels/sweep_template.hpp"
#include "kernels/template_space.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace gristmill {

namespace {

/// A block's part of a row that is shared by a cluster has at least so many bytes.
constexpr int64_t shared_row_bytes = 8192;
/// Vectors of a thread; more make the code long.
constexpr int64_t chunks_max = 8;
/// Multiprocessors of a cluster lie together, in groups of 16 or 18: only a number of blocks that
/// both can hold without a rest is on the device at once.
constexpr int64_t group_sizes[] = {16, 18};

/// Shared memory of a block of architecture 90 at most, without what is beside a ring.
constexpr int64_t ring_bytes_max = 232448 - bytes_beside_ring;

struct sweep_facts {
  space_facts shapes;
  sweep_load load;
  /// Bytes of an element of what is moved in vectors.
  int widest = 1;
  int narrowest = 4;
  /// The same of the tensors of a row; 0 where a row cannot be copied as it lies in memory.
  int narrowest_of_row = 16;
  bool reduces_rows = false;
  bool writes_elements = false;
  bool has_sums = false;
  /// Some exponentials wait in registers for the maximum of their row.
  bool raises = false;
};

sweep_facts sweep_facts_of(const fused_kernel& kernel, const definition& def, space_facts shapes) {
  sweep_facts facts{.shapes = std::move(shapes), .load = sweep_load_of(kernel)};
  const auto moved = [&](dtype type) {
    facts.widest = std::max(facts.widest, element_bytes(type));
    facts.narrowest = std::min(facts.narrowest, element_bytes(type));
  };
  for (const ir_load& load : kernel.loads) {
    if (load.uses_last)
      moved(load.type);
    if (role_of(load) == load_role::element)
      facts.narrowest_of_row = std::min(facts.narrowest_of_row,
        has_contiguous_rows(load, kernel, def) ? element_bytes(load.type) : 0);
  }
  for (const ir_output& output : kernel.outputs) {
    if (!output.is_per_row && !output.is_per_column) {
      moved(output.type);
      facts.writes_elements = true;
    }
    facts.has_sums = facts.has_sums || output.is_per_column;
  }
  for (const row_pass& pass : passes_of(kernel, true))
    facts.raises = facts.raises || !pass.pairs.empty();
  const auto reached = reachable_nodes(kernel);
  for (size_t i = 0; i < reached.size(); ++i)
    facts.reduces_rows = facts.reduces_rows || (reached[i] && kernel.nodes[i].op == ir_op::reduce);
  return facts;
}

/// Parameters in the order of `sweep_space`.
sweep_point point_of(const std::vector<int64_t>& values) {
  return {.threads = static_cast<int>(values[0]),
    .cluster = static_cast<int>(std::max<int64_t>(1, values[1])),
    .width = static_cast<int>(values[2]),
    .blocks = static_cast<int>(values[3]),
    .walk = static_cast<row_walk>(values[4]),
    .streaming = values[5] != 0,
    .fast = values[6] != 0,
    .full = values[7] != 0};
}

bool is_feasible(const sweep_point& point, const sweep_facts& facts) {
  const int threads = point.threads * point.blocks;
  if (threads > 2048 || threads < 256 || point.width * facts.widest > 32)
    return false;
  if (facts.has_sums && point.walk == row_walk::one)
    return false;
  // The copies of a ring are of 16 bytes; what they bring leaves no mark in a cache.
  if (point.walk == row_walk::ring
    && (point.cluster > 1 || point.streaming || ring_threads(point) > 1024
      || point.width * facts.narrowest_of_row < 16 || facts.load.row_bytes == 0))
    return false;
  if (point.cluster > 1) {
    if (!facts.reduces_rows)
      return false;
    for (int64_t group : group_sizes) {
      if (point.walk != row_walk::one && group * point.blocks % point.cluster != 0)
        return false;
    }
  }
  const int64_t longest = sweep_columns_max(facts.load, point);
  const int64_t span = int64_t{point.threads} * point.cluster * point.width;
  return std::any_of(
    facts.shapes.workloads.begin(), facts.shapes.workloads.end(), [&](const workload_shape& work) {
      const bool is_worth_sharing =
        work.cols * std::max(1, facts.load.row_bytes) >= shared_row_bytes * point.cluster;
      const bool fits_ring = point.walk != row_walk::ring
        || ring_bytes_min(point, work.cols * facts.load.row_bytes) <= ring_bytes_max;
      return work.fits_width.at(point.width) && fits_ring && work.cols <= longest
        && work.cols * 2 > span && work.cols <= chunks_max * span
        && (point.cluster == 1 || is_worth_sharing) && (!point.full || work.cols % span == 0);
    });
}

std::vector<std::vector<int64_t>> all_points(const sweep_facts& facts) {
  std::set<int> widths{16 / facts.widest, 16 / facts.narrowest, 32 / facts.widest};
  std::vector<std::vector<int64_t>> points;
  for (int threads : {128, 256, 512, 1024}) {
    for (int cluster : {0, 2, 4, 8}) {
      for (int width : widths) {
        for (int blocks : {1, 2, 3, 4, 6, 8}) {
          for (int walk : {0, 1, 2, 3}) {
            for (int streaming : {0, 1}) {
              for (int fast : {0, 1}) {
                for (int full : {0, 1}) {
                  std::vector<int64_t> values{
                    threads, cluster, width, blocks, walk, streaming, fast, full};
                  if ((fast == 0 || facts.shapes.may_be_fast)
                    && is_feasible(point_of(values), facts))
                    points.push_back(std::move(values));
                }
              }
            }
          }
        }
      }
    }
  }
  return points;
}

/// Points to try in this order, as far as they are feasible.
std::vector<std::vector<int64_t>> wishes(
  const sweep_facts& facts, const std::vector<std::vector<int64_t>>& points) {
  const auto largest =
    std::max_element(facts.shapes.workloads.begin(), facts.shapes.workloads.end(),
      [](const workload_shape& a, const workload_shape& b) { return a.elements < b.elements; });
  const int64_t cols = largest == facts.shapes.workloads.end() ? 4096 : largest->cols;
  const int64_t width = 16 / facts.narrowest;
  // As many blocks as the registers allow: rows of several blocks overlap.
  // Without guards where exponentials wait in registers (a softmax spills with them: 85 us, 72
  // without), and else with them (a layer norm: 69 us, 73 without); one H200, docs/results-h200.md.
  const auto fullest = [&](int64_t threads, int64_t cluster, row_walk walk, int64_t streaming) {
    std::vector<int64_t> best;
    for (const auto& one : points) {
      if (one[0] != threads || one[1] != cluster || one[2] != width
        || one[4] != static_cast<int64_t>(walk) || one[5] != streaming
        || one[6] != (facts.shapes.may_be_fast ? 1 : 0) || (one[7] == 1 && !facts.raises))
        continue;
      if (best.empty() || std::pair{one[3], one[7]} > std::pair{best[3], best[7]})
        best = one;
    }
    return best;
  };
  std::vector<std::vector<int64_t>> out;
  const auto add = [&](std::vector<int64_t> one) {
    if (!one.empty() && std::find(out.begin(), out.end(), one) == out.end())
      out.push_back(std::move(one));
  };
  // Without sums over all rows the device hands out rows better than a walk does.
  const row_walk walk = facts.has_sums ? row_walk::all : row_walk::one;
  // Measured on an H200 (docs/results-h200.md): four vectors of 16 bytes a thread in blocks that
  // have a row each, eight in clusters, and where nothing but numbers is written, twice the
  // threads.
  const auto threads_for = [&](int64_t columns, int64_t vectors) {
    int64_t threads = 128;
    while (threads < 1024 && threads * vectors * width < columns)
      threads *= 2;
    return threads;
  };
  const int64_t threads = threads_for(cols, 4);
  // Two groups: with three the sums of 4096 columns spill. Without guards, which keep nothing in
  // order here: all of a row has arrived.
  for (int64_t full : facts.has_sums ? std::vector{1, 0} : std::vector<int>{}) {
    const std::vector<int64_t> wanted{threads, 0, width, 2, static_cast<int64_t>(row_walk::ring), 0,
      facts.shapes.may_be_fast ? 1 : 0, full};
    if (out.empty() && std::find(points.begin(), points.end(), wanted) != points.end())
      add(wanted);
  }
  // Only rows that one block can hardly hold are worth a cluster.
  const bool is_long = cols * std::max(1, facts.load.row_bytes) >= 8 * 2 * shared_row_bytes;
  for (int64_t cluster : facts.raises ? std::vector{2, 4, 8} : std::vector{8, 4}) {
    if (is_long)
      add(fullest(threads_for(cols / cluster, 8), cluster, walk, 0));
  }
  const int64_t twice = std::min<int64_t>(1024, 2 * threads);
  if (!facts.writes_elements)
    add(fullest(twice, 0, walk, 1));
  add(fullest(threads, 0, walk, 0));
  add(fullest(threads, 0, row_walk::all, 0));
  add(fullest(twice, 0, walk, 0));
  add(fullest(threads, 0, row_walk::ahead, 0));
  if (is_long)
    add(fullest(threads_for(cols / 2, 8), 2, walk, 0));
  return out;
}

class sweep_space : public parameter_space {
public:
  sweep_space(fused_kernel kernel, const definition& def, std::vector<std::vector<int64_t>> points,
    const std::vector<std::vector<int64_t>>& wished)
    : parameter_space("sweep",
      {{"t", "threads a block", "more threads for a row", "more vectors a thread"},
        {"c", "blocks a row", "longer rows stay in registers", "fewer blocks wait for each other"},
        {"v", "elements a vector", "wider accesses", "more threads"},
        {"b", "blocks a multiprocessor", "more rows at a time", "more registers a thread"},
        {"w",
          "as the walk (0 a row a block, 1 all rows, 2 with the next row loaded ahead, 3 with a "
          "ring of rows)",
          "loads overlap with work", "fewer registers"},
        {"cs", "for rows marked as used once", "", ""},
        {"fast", "for approximate arithmetic", "", ""},
        {"full", "for code without guards where a row fills all vectors", "", ""}},
      points, wished.empty() ? points.front() : wished.front()),
      kernel_(std::move(kernel)), def_(def), wished_(points_with(wished)) {}

  std::vector<size_t> promising() const override { return wished_; }

  generated_kernel generate(size_t point) const override {
    return sweep_kernel(kernel_, def_, point_of(values(point)));
  }

private:
  fused_kernel kernel_;
  definition def_;
  std::vector<size_t> wished_;
};

} // namespace

result<stage_space_ptr> read_sweep_stage(const problem& target, const op_graph& graph) {
  auto kernel = fuse_with_columns(graph, target.def);
  if (!kernel)
    return pass(kernel);
  if (kernel->family != template_family::row)
    return fail(errc::unsupported, "it reduces no rows");
  auto shapes = facts_of(*kernel, target);
  if (!shapes)
    return pass(shapes);
  const sweep_facts facts = sweep_facts_of(*kernel, target.def, std::move(*shapes));
  auto points = all_points(facts);
  if (points.empty())
    return fail(errc::unsupported, "no workload has rows that registers hold");
  const auto wished = wishes(facts, points);
  return stage_space_ptr{
    std::make_unique<sweep_space>(std::move(*kernel), target.def, std::move(points), wished)};
}

} // namespace gristmill
