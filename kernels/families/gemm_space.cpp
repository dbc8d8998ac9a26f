#include "kernels/families/gemm_space.hpp"

#include "kernels/families/gemm_code.hpp"
#include "kernels/families/gemm_points.hpp"
#include "kernels/families/gemm_task.hpp"
#include "kernels/plan_text.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace gristmill {

namespace {

using json = nlohmann::ordered_json;

/// 32-bit indices reach that far.
constexpr int64_t narrow_max = int64_t{1} << 31;

/// Vector widths of one kernel.
struct gemm_widths {
  int left = 1;
  int right = 1;
  int output = 1;

  friend bool operator==(const gemm_widths&, const gemm_widths&) = default;
};

int64_t elements_of(const tensor_spec& spec, const axis_values& axes) {
  const auto shape = resolve_shape(spec, axes);
  if (!shape || spec.is_scalar)
    return 0;
  const auto count = element_count(*shape);
  return count && *count < static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
    ? static_cast<int64_t>(*count)
    : std::numeric_limits<int64_t>::max() / 16;
}

/// A matrix that a tensor map describes: rows along one stride, neighbours along the depth.
struct map_matrix {
  /// Index into the definition's inputs.
  int input = 0;
  std::string rows;
  std::string depth;
  /// In elements.
  size_product stride;
};

std::optional<map_matrix> read_map_matrix(const contraction& what, bool left) {
  const contraction_operand& operand = left ? what.left : what.right;
  const index_group outer = left ? index_group::row : index_group::column;
  if (operand.plain_load < 0 || !operand.windows.empty())
    return std::nullopt;
  const auto load = static_cast<size_t>(operand.plain_load);
  const index_layout& layout = what.layouts[load];
  const auto& rows = layout.of(outer);
  const auto& depth = layout.of(index_group::depth);
  const index_group other = left ? index_group::column : index_group::row;
  if (!layout.base.empty() || !layout.before.empty() || !layout.of(index_group::batch).empty()
    || !layout.of(other).empty() || rows.size() != 1 || depth.size() != 1
    || !depth.front().stride.is(1) || rows.front().stride.is(0))
    return std::nullopt;
  return map_matrix{what.values.loads[load].input, rows.front().size.text(),
    depth.front().size.text(), rows.front().stride};
}

std::string conjunction(const std::vector<std::string>& conditions) {
  return fmt::format("{}", fmt::join(conditions, " and "));
}

/// Everything about one contraction that does not depend on the point.
struct gemm_problem {
  problem target;
  contraction what;
  std::vector<axis_values> axes;
  gemm_facts facts;
  /// Of the operands; both are there where `facts.has_tensor_maps`.
  std::optional<map_matrix> left_map;
  std::optional<map_matrix> right_map;
  bool is_wide = false;

  gemm_problem(const problem& of, contraction read) : target(of), what(std::move(read)) {
    for (const workload& work : of.workloads) {
      if (auto values = resolve_axes(of.def, work.axes))
        axes.push_back(std::move(*values));
    }
    for (const axis_values& values : axes) {
      gemm_shape shape{what.size(index_group::batch).at(values),
        what.size(index_group::row).at(values), what.size(index_group::column).at(values),
        what.size(index_group::depth).at(values), 0};
      for (const auto* list : {&of.def.inputs, &of.def.outputs}) {
        for (const tensor_spec& spec : *list) {
          const int64_t elements = elements_of(spec, values);
          shape.bytes += elements * 2;
          is_wide = is_wide || elements >= narrow_max;
        }
      }
      // Sums and products of indices stay below, too.
      is_wide = is_wide
        || static_cast<double>(shape.batches) * static_cast<double>(shape.rows)
            * static_cast<double>(shape.columns)
          >= 2e9;
      facts.shapes.push_back(shape);
    }
    const auto count_few = [&](bool by_columns) {
      return std::count_if(facts.shapes.begin(), facts.shapes.end(), [&](const gemm_shape& shape) {
        return by_columns ? shape.columns < shape.rows : shape.rows <= shape.columns;
      });
    };
    facts.many_is_left = count_few(true) > count_few(false);
    const gemm_task task(what, of.def, is_wide, false, facts.many_is_left);
    facts.has_tensor_cores = task.can_use_tensor_cores();
    left_map = read_map_matrix(what, true);
    right_map = read_map_matrix(what, false);
    facts.has_tensor_maps = facts.has_tensor_cores && left_map && right_map && !is_wide;
    facts.left_along_depth = task.left_along_depth();
    facts.right_along_depth = task.right_along_depth();
    if (axes.empty())
      return;
    const auto widths = widest(task, largest_axes());
    facts.left_width = widths.left;
    facts.right_width = widths.right;
  }

  const axis_values& largest_axes() const {
    const gemm_shape& largest = facts.largest();
    return axes[static_cast<size_t>(&largest - facts.shapes.data())];
  }

  static int width_for(const vector_rule& rule, const axis_values& values) {
    int width = rule.widest;
    while (width > 1 && !rule.fits(width, values))
      width /= 2;
    return width;
  }
  static gemm_widths widest(const gemm_task& task, const axis_values& values) {
    return {width_for(task.left_rule(), values), width_for(task.right_rule(), values),
      width_for(task.output_rule(), values)};
  }
};

/// Writes source and plan of one point.
class gemm_writer {
public:
  gemm_writer(const gemm_problem& of, const gemm_point& point)
    : of_(of), point_(point),
      task_(of.what, of.target.def, of.is_wide, point.splits > 1, of.facts.many_is_left) {}

  generated_kernel write() {
    if (point_.path == gemm_path::wgmma)
      return write_wgmma();
    // Wide vectors for the largest workload; what every workload allows; one by one for the rest.
    const gemm_widths best = fitted(gemm_problem::widest(task_, of_.largest_axes()));
    gemm_widths safe = best;
    for (const axis_values& values : of_.axes) {
      const gemm_widths here = gemm_problem::widest(task_, values);
      safe = {std::min(safe.left, here.left), std::min(safe.right, here.right),
        std::min(safe.output, here.output)};
    }
    const std::string best_when = condition(best);
    const std::string safe_when = condition(safe);
    const bool has_safe = safe != best && point_.path != gemm_path::direct;
    const bool needs_rest = !(has_safe ? safe_when : best_when).empty();
    std::string kernels;
    add_kernel(kernels, point_, best, "gemm_main", best_when);
    if (has_safe)
      add_kernel(kernels, point_, safe, "gemm_narrow",
        safe_when.empty() ? fmt::format("not ({})", best_when)
                          : fmt::format("{} and not ({})", safe_when, best_when));
    const std::string covered = has_safe ? safe_when : best_when;
    if (point_.splits > 1)
      add_reduction(kernels, has_safe ? safe.output : best.output, covered);
    if (needs_rest) {
      const gemm_point rest{.path = gemm_path::direct, .threads = 128};
      add_kernel(kernels, rest, {}, "gemm_rest", fmt::format("not ({})", covered));
    }
    generated_kernel out;
    out.source = header() + task_.source() + code(needs_rest) + kernels;
    out.plan = plan();
    return out;
  }

  /// Wide vectors where the shape allows them, else those that fit every shape.
  generated_kernel write_plain() {
    const auto width_of = [](const vector_rule& rule, bool always) {
      const auto can_fit = [&](int width) {
        return always
          ? rule.always_fits(width)
          : std::none_of(rule.multiples.begin(), rule.multiples.end(),
            [&](const size_product& size) { return size.is_known() && size.number % width != 0; });
      };
      int width = rule.widest;
      while (width > 1 && !can_fit(width))
        width /= 2;
      return width;
    };
    const auto widths_of = [&](bool always) {
      return fitted({width_of(task_.left_rule(), always), width_of(task_.right_rule(), always),
        width_of(task_.output_rule(), always)});
    };
    const gemm_widths wide = widths_of(false);
    const gemm_widths narrow = widths_of(true);
    const std::string when = condition(wide);
    std::string kernels;
    add_kernel(kernels, point_, wide, "plain_product", when);
    if (!when.empty())
      add_kernel(kernels, point_, narrow, "plain_product_narrow", fmt::format("not ({})", when));
    generated_kernel out;
    out.source = header() + task_.source() + code(false) + kernels;
    out.plan = plan();
    return out;
  }

private:
  /// The warpgroup kernel where architecture and shape allow it, else the best tile of the path
  /// `mma`.
  generated_kernel write_wgmma() {
    std::vector<std::string> conditions{"arch == 90"};
    for (const map_matrix* map : {&*of_.left_map, &*of_.right_map}) {
      std::string text = fmt::format("({}) % 8 == 0", map->stride.text());
      if (map->stride.number % 8 != 0
        && std::find(conditions.begin(), conditions.end(), text) == conditions.end())
        conditions.push_back(std::move(text));
    }
    gemm_widths widths;
    widths.output = std::min(4, gemm_problem::widest(task_, of_.largest_axes()).output);
    for (const auto& text : task_.output_rule().conditions(widths.output))
      conditions.push_back(text);
    const std::string when = conjunction(conditions);
    const auto mma = best_gemm_point(feasible_gemm_points(of_.facts), of_.facts, gemm_path::mma);
    gemm_writer other(of_, mma ? *mma : gemm_point{.path = gemm_path::direct, .threads = 128});
    const generated_kernel fallback = other.write();
    std::string kernel = fmt::format(
      "extern \"C\" __global__ void __launch_bounds__(384, 1) gemm_warpgroups(\n"
      "  const __grid_constant__ tensor_map left_map, const __grid_constant__ tensor_map "
      "right_map,\n  {}) {{\n  const task p{{{}}};\n  warpgroup_tiles<{}, {}, {}, {}, {}>(p, "
      "&left_map, &right_map);\n}}\n",
      task_.parameters(), task_.names(), point_.bm, point_.bn, point_.stages, widths.output,
      point_.cluster);
    generated_kernel out;
    out.source =
      fallback.source + gemm_wgmma_code(of_.what.left.type, point_.bn) + std::move(kernel);
    json document = json::parse(fallback.plan);
    document["tensor_maps"] = {{"left_map", map_json(*of_.left_map, point_.bm)},
      {"right_map", map_json(*of_.right_map, point_.bn / point_.cluster)}};
    json step = {{"op", "launch"}, {"entry", "gemm_warpgroups"}};
    const std::string tiles = product_text({tiles_of(index_group::row, point_.bm * point_.cluster),
      tiles_of(index_group::column, point_.bn)});
    step["grid"] = {point_.cluster == 1
        ? fmt::format("min(sm_count, {})", tiles)
        : fmt::format("min(sm_count // {0}, {1}) * {0}", point_.cluster, tiles),
      1, 1};
    step["block"] = {point_.block_threads(), 1, 1};
    if (point_.cluster > 1)
      step["cluster"] = {point_.cluster, 1, 1};
    step["shared"] = point_.shared_bytes(true, true);
    step["args"] = json::array({json{{"map", "left_map"}}, json{{"map", "right_map"}}});
    for (const auto& argument : task_.plan_arguments())
      step["args"].push_back(argument);
    json first = {{"name", "warpgroups"}, {"when", when}, {"steps", json::array({step})}};
    document["variants"].insert(document["variants"].begin(), first);
    out.plan = document.dump(2) + "\n";
    return out;
  }

  json map_json(const map_matrix& map, int rows) const {
    return {
      {"of", qualified_name("in", of_.target.def.inputs[static_cast<size_t>(map.input)].name)},
      {"dims", {map.depth, map.rows}}, {"strides", {fmt::format("2 * ({})", map.stride.text())}},
      {"box", {64, rows}}, {"swizzle", "128B"}, {"l2", "256B"}};
  }

  /// Vectors must fill the tile as well.
  gemm_widths fitted(gemm_widths widths) const {
    const auto halve = [](int& width, int size) {
      while (width > 1 && size % width != 0)
        width /= 2;
    };
    if (point_.path == gemm_path::ffma || point_.path == gemm_path::mma) {
      halve(widths.left, task_.left_along_depth() ? point_.bk : point_.bm);
      halve(widths.right, task_.right_along_depth() ? point_.bk : point_.bn);
      // Accumulators of a thread are that many neighbours.
      halve(widths.output, point_.path == gemm_path::mma ? 2 : std::min(point_.tn, 4));
    } else {
      widths.output = 1;
      if (point_.path == gemm_path::direct)
        widths = {};
    }
    return widths;
  }

  std::string condition(const gemm_widths& widths) const {
    std::vector<std::string> all;
    for (const auto& list :
      {task_.left_rule().conditions(widths.left), task_.right_rule().conditions(widths.right),
        task_.output_rule().conditions(widths.output)}) {
      for (const auto& text : list) {
        if (std::find(all.begin(), all.end(), text) == all.end())
          all.push_back(text);
      }
    }
    return conjunction(all);
  }

  std::string header() const {
    return fmt::format("// One contraction with its epilogue: result[batch, row, column] is a sum "
                       "over the depth.\n// Way to compute: {}.\n",
      name(point_.path));
  }

  std::string code(bool needs_rest) const {
    std::string text{gemm_common_code()};
    if (point_.path == gemm_path::ffma)
      text += gemm_ffma_code();
    if (point_.path == gemm_path::mma)
      text += gemm_mma_code(of_.what.left.type);
    if (point_.path == gemm_path::dots)
      text += gemm_dots_code();
    if (point_.path == gemm_path::strips)
      text += gemm_strips_code();
    if (point_.path == gemm_path::direct || needs_rest)
      text += gemm_direct_code();
    if (point_.splits > 1)
      text += gemm_reduce_code();
    return text;
  }

  std::string size(index_group group) const {
    const std::string text = of_.what.size(group).text();
    return text.find(' ') == std::string::npos ? text : "(" + text + ")";
  }

  std::string tiles_of(index_group group, int each) const {
    return each == 1 ? size(group)
                     : fmt::format("ceil_div({}, {})", of_.what.size(group).text(), each);
  }

  /// Threads along the many have vectors of that many elements.
  int strip_width(const gemm_widths& widths) const {
    return std::min(of_.facts.many_is_left ? widths.left : widths.right, point_.few > 4 ? 4 : 8);
  }

  std::string grid(const gemm_point& point, const gemm_widths& widths) const {
    const index_group many = of_.facts.many_is_left ? index_group::row : index_group::column;
    const index_group few = of_.facts.many_is_left ? index_group::column : index_group::row;
    std::vector<std::string> factors;
    const auto add = [&](const std::string& factor) {
      if (factor != "1")
        factors.push_back(factor);
    };
    switch (point.path) {
    case gemm_path::ffma:
    case gemm_path::mma:
      add(tiles_of(index_group::row, point.bm));
      add(tiles_of(index_group::column, point.bn));
      break;
    case gemm_path::dots:
      add(tiles_of(many, point.warps / point.parts * point.many));
      add(tiles_of(few, point.few));
      break;
    case gemm_path::strips:
      add(tiles_of(many, point.along * strip_width(widths)));
      add(tiles_of(few, point.few));
      break;
    case gemm_path::direct:
    case gemm_path::wgmma: // Has a plan of its own.
      return fmt::format("ceil_div({}, {})", elements(), point.threads);
    }
    add(size(index_group::batch));
    if (point.splits > 1)
      add(fmt::format("{}", point.splits));
    return product_text(factors);
  }

  std::string elements() const {
    return (of_.what.size(index_group::batch) * of_.what.size(index_group::row)
      * of_.what.size(index_group::column))
      .text();
  }

  std::string call(const gemm_point& point, const gemm_widths& widths) const {
    const auto join = [](std::string_view function, const std::vector<int>& values) {
      return fmt::format("{}<{}>", function, fmt::join(values, ", "));
    };
    const int many_width = of_.facts.many_is_left ? widths.left : widths.right;
    const int few_width = of_.facts.many_is_left ? widths.right : widths.left;
    const bool few_along_depth =
      of_.facts.many_is_left ? task_.right_along_depth() : task_.left_along_depth();
    switch (point.path) {
    case gemm_path::ffma:
      return join("ffma_tile",
        {point.bm, point.bn, point.bk, point.tm, point.tn, widths.left, widths.right, widths.output,
          point.splits});
    case gemm_path::mma:
      return join("mma_tile",
        {point.bm, point.bn, point.bk, point.wm, point.wn, point.stages, widths.left, widths.right,
          widths.output, point.splits});
    case gemm_path::dots: {
      // Where vectors of the small side run along the depth, too, they are as long at most.
      const int width = few_along_depth ? std::min(many_width, few_width) : 1;
      return join(
        "dots", {point.warps, point.parts, point.many, point.few, many_width, width, point.splits});
    }
    case gemm_path::strips:
      return join(
        "strips", {point.along, 256 / point.along, point.few, strip_width(widths), point.splits});
    case gemm_path::direct:
    case gemm_path::wgmma:
      break;
    }
    return join("direct", {point.threads});
  }

  void add_kernel(std::string& kernels, const gemm_point& point, const gemm_widths& widths,
    const std::string& entry, const std::string& when) {
    // Two blocks of that size share a multiprocessor as long as the compiler keeps to 128
    // registers, which tiles of 64 sums a thread allow.
    const bool wants_two = point.block_threads() == 256
      && (point.path == gemm_path::ffma || point.path == gemm_path::mma)
      && point.bm * point.bn <= 64 * 256;
    kernels += fmt::format("extern \"C\" __global__ void __launch_bounds__({}{}) {}({}) {{\n"
                           "  const task p{{{}}};\n  {}(p);\n}}\n\n",
      point.block_threads(), wants_two ? ", 2" : "", entry, task_.parameters(), task_.names(),
      call(point, widths));
    const int shared = point.path == gemm_path::mma
      ? point.shared_bytes(task_.left_along_depth(), task_.right_along_depth())
      : 0;
    add_step(entry, when, grid(point, widths), point.block_threads(), shared);
  }

  void add_reduction(std::string& kernels, int width, const std::string& when) {
    kernels +=
      fmt::format("extern \"C\" __global__ void __launch_bounds__(256) gemm_reduce({}) {{\n"
                  "  const task p{{{}}};\n  reduce_partial<{}, {}>(p);\n}}\n\n",
        task_.parameters(), task_.names(), point_.splits, width);
    add_step("gemm_reduce", when, fmt::format("ceil_div({}, {})", elements(), 256 * width), 256, 0);
  }

  void add_step(const std::string& entry, const std::string& when, const std::string& grid_text,
    int threads, int shared) {
    json step = {{"op", "launch"}, {"entry", entry}};
    if (!when.empty())
      step["when"] = when;
    step["grid"] = {grid_text, 1, 1};
    step["block"] = {threads, 1, 1};
    if (shared > 0)
      step["shared"] = shared;
    step["args"] = task_.plan_arguments();
    steps_.push_back(std::move(step));
  }

  std::string plan() const {
    json document = {{"schema", "gristmill.plan/1"}};
    std::vector<std::string> domain = of_.what.conditions;
    if (!of_.is_wide) {
      for (size_t i = 0; i < of_.target.def.inputs.size(); ++i) {
        if (!of_.target.def.inputs[i].is_scalar)
          domain.push_back(fmt::format(
            "numel({}) < {}", qualified_name("in", of_.target.def.inputs[i].name), narrow_max));
      }
      for (const auto& spec : of_.target.def.outputs)
        domain.push_back(
          fmt::format("numel({}) < {}", qualified_name("out", spec.name), narrow_max));
    }
    if (!domain.empty())
      document["domain"] = conjunction(domain);
    if (point_.splits > 1)
      document["scratch"] = {{"partial",
        {{"dtype", "float32"}, {"shape", {fmt::format("{}", point_.splits), elements()}},
          {"init", "undefined"}}}};
    json variant = {{"name", "all"}, {"steps", steps_}};
    document["variants"] = json::array({variant});
    return document.dump(2) + "\n";
  }

  const gemm_problem& of_;
  gemm_point point_;
  gemm_task task_;
  json steps_ = json::array();
};

class gemm_space : public parameter_space {
public:
  gemm_space(std::string family, const gemm_problem& of, const std::vector<gemm_point>& points)
    : parameter_space(std::move(family), gemm_parameters(), all_values(points),
      first_gemm_point(points, of.facts).values()),
      of_(of), promises_(points_with(promised_values(points, of.facts))) {
    for (int path = 0; path < gemm_paths; ++path)
      centres_[static_cast<size_t>(path)] =
        best_gemm_point(points, of.facts, static_cast<gemm_path>(path));
  }

  std::vector<size_t> promising() const override { return promises_; }

  std::string key(size_t point) const override {
    std::string text = parameter_space::key(point);
    const gemm_point what = at(point);
    // The path by its name.
    const std::string number = fmt::format("/path{}", static_cast<int>(what.path) + 1);
    const size_t place = text.find(number);
    return text.replace(place, number.size(), fmt::format("/{}", name(what.path)));
  }

  std::string describe(size_t point) const override {
    const gemm_point what = at(point);
    const auto parameters = gemm_parameters();
    const auto numbers = what.values();
    std::string text;
    switch (what.path) {
    case gemm_path::ffma:
      text = "tiles in shared memory with fused multiply-adds";
      break;
    case gemm_path::mma:
      text = "tiles in shared memory with tensor cores";
      break;
    case gemm_path::dots:
      text = "warps along the depth";
      break;
    case gemm_path::strips:
      text = "threads along the large side";
      break;
    case gemm_path::wgmma:
      text = "tiles brought by tensor maps to warpgroup units";
      break;
    case gemm_path::direct:
      text = "one element a thread";
      break;
    }
    for (size_t i = 1; i < numbers.size(); ++i) {
      if (numbers[i] != 0)
        text += fmt::format(", {} {}", numbers[i], parameters[i].words);
    }
    return text;
  }

  int distance(size_t a, size_t b) const override {
    const gemm_point from = at(a);
    const gemm_point to = at(b);
    if (from.path == to.path)
      return parameter_space::distance(a, b);
    // Parameters of two ways mean different things: from one to the other by their best guesses.
    return 1 + from_centre(from) + from_centre(to);
  }

  std::string difference(size_t from, size_t to) const override {
    if (at(from).path != at(to).path)
      return fmt::format("{} instead of {}", describe(to), name(at(from).path));
    return parameter_space::difference(from, to);
  }

  generated_kernel generate(size_t point) const override {
    return gemm_writer(of_, at(point)).write();
  }

private:
  static std::vector<std::vector<int64_t>> all_values(const std::vector<gemm_point>& points) {
    std::vector<std::vector<int64_t>> list;
    for (const gemm_point& point : points)
      list.push_back(point.values());
    return list;
  }

  static std::vector<std::vector<int64_t>> promised_values(
    const std::vector<gemm_point>& points, const gemm_facts& facts) {
    std::vector<std::vector<int64_t>> list;
    for (const gemm_point& point : promising_gemm_points(points, facts))
      list.push_back(point.values());
    return list;
  }

  gemm_point at(size_t point) const { return gemm_point::of(values(point)); }

  /// How many parameters differ from the best guess of its path.
  int from_centre(const gemm_point& point) const {
    const auto& centre = centres_[static_cast<size_t>(point.path)];
    const auto ours = point.values();
    const auto theirs = centre ? centre->values() : ours;
    int count = 0;
    for (size_t i = 0; i < ours.size(); ++i)
      count += ours[i] != theirs[i];
    return count;
  }

  gemm_problem of_;
  std::vector<size_t> promises_;
  std::array<std::optional<gemm_point>, gemm_paths> centres_;
};

} // namespace

result<stage_space_ptr> make_gemm_space(
  std::string family, const problem& target, contraction what) {
  const bool has_workload = std::any_of(target.workloads.begin(), target.workloads.end(),
    [&](const workload& work) { return resolve_axes(target.def, work.axes).has_value(); });
  if (!has_workload)
    return fail(errc::unsupported, "the problem has no workload whose axes resolve");
  const gemm_problem of(target, std::move(what));
  return std::make_unique<gemm_space>(std::move(family), of, feasible_gemm_points(of.facts));
}

generated_kernel plain_gemm(const problem& target, contraction what) {
  problem timeless = target;
  timeless.workloads.clear();
  gemm_problem of(timeless, std::move(what));
  // Right for every shape, so nothing may rest on sizes.
  of.is_wide = true;
  const gemm_point point = of.facts.has_tensor_cores
    ? gemm_point{.path = gemm_path::mma,
      .bm = 64,
      .bn = 64,
      .bk = 32,
      .wm = 32,
      .wn = 32,
      .stages = 3}
    : gemm_point{.path = gemm_path::ffma, .bm = 64, .bn = 64, .bk = 16, .tm = 4, .tn = 4};
  return gemm_writer(of, point).write_plain();
}

} // namespace gristmill
