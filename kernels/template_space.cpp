#include "kernels/template_space.hpp"

#include "kernels/addressing.hpp"
#include "kernels/axis_scope.hpp"
#include "kernels/elementwise_template.hpp"
#include "kernels/expression_writer.hpp"
#include "kernels/row_kernel_writer.hpp"
#include "kernels/row_passes.hpp"
#include "protocol/expression.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>

namespace gristmill {

namespace {

/// Evaluates the sizes and conditions that generated plans are made of, without a plan.
class shape_scope : public axis_scope {
public:
  shape_scope(const definition& def, const axis_values& axes)
    : axis_scope(axes), def_(def), axes_(axes) {}

  result<expression_value> call(std::string_view function, const expression_name& subject,
    std::optional<int64_t> index) const override {
    const tensor_spec* spec =
      subject.kind == "out" ? def_.find_output(subject.name) : def_.find_input(subject.name);
    if (spec == nullptr || function != "dim")
      return fail(errc::not_found, fmt::format("there is no {}({})", function, name_text(subject)));
    const auto shape = resolve_shape(*spec, axes_);
    if (!shape)
      return pass(shape);
    const auto at = static_cast<size_t>(index.value_or(0));
    if (at >= shape->size())
      return fail(errc::invalid_input, fmt::format("{} has no dimension {}", spec->name, at));
    return expression_value{(*shape)[at]};
  }

private:
  const definition& def_;
  const axis_values& axes_;
};

result<int64_t> size_of(const std::string& text, const shape_scope& scope) {
  const auto parsed = parse_expression(text, expression_mode::plan);
  if (!parsed)
    return pass(parsed);
  return evaluate_int(*parsed, scope);
}

result<bool> all_hold(const std::vector<std::string>& conditions, const shape_scope& scope) {
  for (const auto& condition : conditions) {
    const auto parsed = parse_expression(condition, expression_mode::plan);
    if (!parsed)
      return pass(parsed);
    const auto holds = evaluate_bool(*parsed, scope);
    if (!holds || !*holds)
      return holds;
  }
  return true;
}

result<workload_shape> shape_of(
  const fused_kernel& kernel, const definition& def, const axis_values& axes) {
  const shape_scope scope(def, axes);
  workload_shape shape{.elements = 1, .cols = 1, .fits_width = {}};
  for (const space_dim& dim : kernel.space) {
    const auto size = size_of(dim.size, scope);
    if (!size)
      return pass(size);
    if (__builtin_mul_overflow(shape.elements, *size, &shape.elements))
      return fail(errc::invalid_input, "a workload has more than 2^63 elements");
    shape.cols = *size;
  }
  for (int width : vector_widths) {
    const auto conditions = width == 1        ? std::vector<std::string>{}
      : kernel.family == template_family::row ? row_vector_conditions(kernel, def, width)
                                              : elementwise_vector_conditions(kernel, def, width);
    const auto fits = all_hold(conditions, scope);
    if (!fits)
      return pass(fits);
    shape.fits_width[width] = *fits;
  }
  return shape;
}

template <class Claim>
bool some_workload(const space_facts& facts, Claim claim) {
  return std::any_of(facts.workloads.begin(), facts.workloads.end(), claim);
}

/// `__expf(x)` is off by 2 + 1.173 |x| units in the last place at most (CUDA Programming Guide,
/// "Intrinsic Functions"), so by 1.3e-5 where its result is a normal number, and `__fdividef` by 2
/// units up to denominators of 2^126. A workload that allows several times that hides it, unless
/// what follows cancels: the judge has the last word, and every point is there without it, too.
constexpr double lenient_rtol = 1e-4;

/// Bytes that a thread of an elementwise kernel holds for one element of each load.
int loaded_bytes(const fused_kernel& kernel) {
  int bytes = 0;
  for (const ir_load& load : kernel.loads)
    bytes += element_bytes(load.type);
  return bytes;
}

} // namespace

result<space_facts> facts_of(const fused_kernel& kernel, const problem& target) {
  space_facts facts;
  facts.kernel = &kernel;
  for (const workload& work : target.workloads) {
    const auto axes = resolve_axes(target.def, work.axes);
    if (!axes)
      return pass(axes);
    auto shape = shape_of(kernel, target.def, *axes);
    if (!shape)
      return pass(shape);
    facts.workloads.push_back(std::move(*shape));
  }
  facts.widest_bytes = 1;
  bool is_narrow = true;
  for (const ir_output& output : kernel.outputs) {
    facts.widest_bytes = std::max(facts.widest_bytes, element_bytes(output.type));
    is_narrow = is_narrow && (output.type == dtype::bfloat16 || output.type == dtype::float16);
  }
  for (const ir_load& load : kernel.loads)
    facts.widest_bytes = std::max(facts.widest_bytes, element_bytes(load.type));
  const bool has_fast_form =
    std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [](const ir_node& node) {
      return node.op == ir_op::exp || node.op == ir_op::sigmoid || node.op == ir_op::silu
        || node.op == ir_op::gelu_tanh || node.op == ir_op::div;
    });
  const bool is_lenient = std::all_of(target.workloads.begin(), target.workloads.end(),
    [](const workload& work) { return work.allowed.rtol >= lenient_rtol; });
  facts.may_be_fast = (is_narrow || is_lenient) && has_fast_form;
  const auto groups = group_dims(kernel, 0, kernel.space.size());
  facts.reads_apart =
    std::any_of(kernel.loads.begin(), kernel.loads.end(), [&](const ir_load& load) {
      const auto access = access_of(load, kernel, target.def, groups);
      return !access.is_identity && !access.is_contiguous() && !access.is_uniform();
    });
  if (kernel.family == template_family::row)
    facts.keeping = {keeping_of(kernel, false), keeping_of(kernel, true)};
  facts.may_be_online = !online_pairs(kernel).empty();
  return facts;
}

bool fits_vectors(const template_point& point, const space_facts& facts) {
  if (point.width == 1)
    return true;
  return point.width * facts.widest_bytes <= 32
    && some_workload(facts, [&](const workload_shape& w) { return w.fits_width.at(point.width); });
}

bool fits_registers(const template_point& point, const space_facts& facts) {
  if (point.family == template_family::row) {
    // Accumulators of a vector; what is kept has its own limit in `register_columns_max`.
    return point.width * point.threads * point.rows <= 16 * 512;
  }
  const int held = point.unroll * point.width * loaded_bytes(*facts.kernel);
  return held <= (point.threads > 256 ? 192 : 256);
}

bool fits_keeping(const template_point& point, const space_facts& facts) {
  if (point.family == template_family::elementwise)
    return point.keep == row_keep::global;
  const row_keeping& keeping = facts.keeping_at(point);
  if (point.keep == row_keep::global)
    return true;
  if (keeping.bytes == 0)
    return false;
  const int64_t longest = point.keep == row_keep::registers
    ? register_columns_max(keeping, point)
    : (shared_memory_sure - 4096) / (int64_t{keeping.bytes} * point.rows);
  return some_workload(facts,
    [&](const workload_shape& w) { return w.fits_width.at(point.width) && w.cols <= longest; });
}

bool fits_threads(const template_point& point, const space_facts& facts) {
  if (point.family == template_family::elementwise) {
    const int64_t tile = int64_t{point.threads} * point.width * point.unroll;
    return (point.unroll == 1 && point.threads == 128)
      || some_workload(facts, [&](const workload_shape& w) { return w.elements >= tile; });
  }
  const bool has_rows_right = point.threads == 32 ? point.rows <= 8 : point.rows == 1;
  return has_rows_right
    && (point.threads == 32 || some_workload(facts, [&](const workload_shape& w) {
         return w.cols * 2 > int64_t{point.threads} * point.width;
       }));
}

bool fits_switches(const template_point& point, const space_facts& facts) {
  if (point.online && !facts.may_be_online)
    return false;
  if (point.fast && !facts.may_be_fast)
    return false;
  if (point.reuse && (point.keep != row_keep::registers || facts.keeping_at(point).reusable == 0))
    return false;
  const bool rereads = point.family == template_family::row && point.keep == row_keep::global
    && facts.keeping_at(point).bytes > 0;
  return !(point.streaming && rereads);
}

bool is_feasible(const template_point& point, const space_facts& facts) {
  return fits_vectors(point, facts) && fits_registers(point, facts) && fits_keeping(point, facts)
    && fits_threads(point, facts) && fits_switches(point, facts);
}

std::vector<template_point> feasible_points(const space_facts& facts) {
  std::vector<template_point> points;
  const auto add_switched = [&](template_point point) {
    for (int switches = 0; switches < 8; ++switches) {
      point.reuse = (switches & 4) != 0;
      point.streaming = (switches & 2) != 0;
      point.fast = (switches & 1) != 0;
      if (is_feasible(point, facts))
        points.push_back(point);
    }
  };
  template_point point;
  point.family = facts.kernel->family;
  for (int width : vector_widths) {
    point.width = width;
    if (point.family == template_family::elementwise) {
      for (int threads : {128, 256, 512}) {
        for (int unroll : {1, 2, 4, 8}) {
          point.threads = threads;
          point.unroll = unroll;
          add_switched(point);
        }
      }
      continue;
    }
    for (int threads : {32, 128, 256, 512, 1024}) {
      for (int rows : {1, 2, 4, 8}) {
        for (row_keep keep : {row_keep::registers, row_keep::shared, row_keep::global}) {
          for (bool online : {false, true}) {
            point.threads = threads;
            point.rows = rows;
            point.keep = keep;
            point.online = online;
            add_switched(point);
          }
        }
      }
    }
  }
  return points;
}

template_point first_point(const std::vector<template_point>& points, const space_facts& facts) {
  // The workload with most elements decides: that is where time is.
  const auto largest = std::max_element(facts.workloads.begin(), facts.workloads.end(),
    [](const workload_shape& a, const workload_shape& b) { return a.elements < b.elements; });
  template_point wanted;
  wanted.family = facts.kernel->family;
  wanted.width = 16 / facts.widest_bytes;
  wanted.fast = facts.may_be_fast;
  if (wanted.family == template_family::elementwise) {
    // Two words of 16 bytes, all of a thread's work at once (docs/results-h200.md).
    wanted.threads = 128;
    wanted.width = std::min(16, 32 / facts.widest_bytes);
    wanted.unroll = 1;
  } else {
    const int64_t cols = largest == facts.workloads.end() ? 1024 : largest->cols;
    // One to two vectors a thread where they are kept for the next pass, else up to four: enough
    // reads in flight, and rows for all SMs.
    const int64_t threads = cols / (int64_t{wanted.width} * (facts.keeping[0].bytes > 0 ? 2 : 4));
    wanted.threads = threads <= 64 ? 32
      : threads <= 128             ? 128
      : threads <= 256             ? 256
      : threads <= 512             ? 512
                                   : 1024;
    // Each number that waits for another is a meeting of all threads: fewer, with longer vectors.
    if (passes_of(*facts.kernel, false).size() > 2 && facts.widest_bytes == 2
      && wanted.threads > 128) {
      wanted.threads /= 2;
      wanted.width *= 2;
    }
    wanted.rows = wanted.threads == 32 ? 4 : 1;
    wanted.keep = row_keep::registers;
    wanted.reuse = facts.keeping[0].reusable > 0;
  }
  return *std::min_element(
    points.begin(), points.end(), [&](const template_point& a, const template_point& b) {
      return distance(a, wanted) < distance(b, wanted);
    });
}

std::vector<template_point> promising_points(
  const std::vector<template_point>& points, const space_facts& facts) {
  const template_point first = first_point(points, facts);
  std::vector<template_point> out;
  const auto add = [&](int threads, int width, int unroll, row_keep keep, bool streaming) {
    template_point one = first;
    one.threads = threads;
    one.rows = threads == 32 ? 4 : 1;
    one.width = width;
    one.unroll = unroll;
    one.keep = keep;
    one.reuse = first.reuse && keep == row_keep::registers;
    one.streaming = streaming;
    if (!(one == first) && std::find(points.begin(), points.end(), one) != points.end()
      && std::find(out.begin(), out.end(), one) == out.end())
      out.push_back(one);
  };
  if (first.family == template_family::elementwise) {
    // Of what lies apart no vectors are read: nothing of the following would matter.
    if (facts.reads_apart)
      return out;
    add(first.threads, first.width, 1, first.keep, true);
    add(256, first.width, 1, first.keep, false);
    add(128, std::max(1, first.width / 2), 1, first.keep, false);
    return out;
  }
  if (first.threads > 128)
    add(first.threads / 2, 2 * first.width, 1, first.keep, false);
  add(first.threads, std::max(1, first.width / 2), 1, row_keep::global, false);
  add(first.threads == 32 ? 128 : std::min(1024, 2 * first.threads), first.width, 1, first.keep,
    false);
  add(first.threads, first.width, 1, first.keep, true);
  return out;
}

int distance(const template_point& a, const template_point& b) {
  const auto steps = [](int x, int y) {
    return std::abs(static_cast<int>(std::bit_width(static_cast<unsigned>(x)))
      - static_cast<int>(std::bit_width(static_cast<unsigned>(y))));
  };
  // Rows of a block only mean something for one warp a row: 32 and 128 threads are neighbours.
  const auto thread_steps = [&](const template_point& p) {
    return p.family == template_family::row && p.threads == 32 ? 64 : p.threads;
  };
  const bool both_warps = a.threads == 32 && b.threads == 32;
  int sum = steps(thread_steps(a), thread_steps(b));
  if (a.family == template_family::elementwise || both_warps)
    sum += steps(a.rows, b.rows);
  sum += steps(a.width, b.width) + steps(a.unroll, b.unroll);
  sum += a.keep == b.keep ? 0 : 1;
  sum += (a.online != b.online ? 1 : 0) + (a.reuse != b.reuse ? 1 : 0);
  sum += a.streaming != b.streaming ? 1 : 0;
  return sum + (a.fast != b.fast ? 1 : 0);
}

generated_kernel kernel_at(
  const fused_kernel& kernel, const definition& def, const template_point& point) {
  return kernel.family == template_family::row ? row_kernel(kernel, def, point)
                                               : elementwise_kernel(kernel, def, point);
}

} // namespace gristmill
