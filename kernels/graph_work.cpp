#include "kernels/graph_work.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

namespace gristmill {

namespace {

constexpr uint64_t everything = std::numeric_limits<uint64_t>::max();

uint64_t saturating_add(uint64_t a, uint64_t b) {
  uint64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? everything : out;
}

template <size_t N>
bool is_one_of(std::string_view op, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), op) != list.end();
}

/// Each element of the result is one element of the first operand: what is not needed of the result
/// is not needed of the operand. Gathers read one element for each of their result, too.
constexpr std::array<std::string_view, 28> element_for_element{"view", "_unsafe_view", "reshape",
  "permute", "transpose", "t", "unsqueeze", "squeeze", "_to_copy", "clone", "contiguous", "detach",
  "alias", "slice", "select", "narrow", "split", "split_with_sizes", "chunk", "unbind", "embedding",
  "index", "index_select", "gather", "neg", "abs", "flatten", "lift_fresh"};

/// For these, only the first operand is read so; the others (indices) are read whole.
struct matrix_row {
  std::string_view op;
  /// Operands that are multiplied.
  size_t left;
  size_t right;
};

constexpr std::array<matrix_row, 13> matrix_rows{{{"mm", 0, 1}, {"bmm", 0, 1}, {"matmul", 0, 1},
  {"addmm", 1, 2}, {"baddbmm", 1, 2}, {"addbmm", 1, 2}, {"mv", 0, 1}, {"addmv", 1, 2},
  {"dot", 0, 1}, {"vdot", 0, 1}, {"linear", 0, 1}, {"_scaled_mm", 0, 1}, {"_int_mm", 0, 1}}};

constexpr std::array<std::string_view, 8> convolutions{"convolution", "_convolution", "conv1d",
  "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"};

/// Matrix operators that are known by name but not taken apart.
constexpr std::array<std::string_view, 4> opaque_operators{
  "scaled_dot_product_attention", "_scaled_dot_product_flash_attention", "einsum", "bilinear"};

std::optional<mac_class> class_of(std::string_view dtype) {
  if (dtype == "float64")
    return mac_class::f64;
  if (dtype == "float32")
    return mac_class::f32;
  if (dtype == "float16" || dtype == "bfloat16")
    return mac_class::f16;
  if (dtype.starts_with("float8"))
    return mac_class::f8;
  if (dtype == "int8" || dtype == "uint8")
    return mac_class::int8;
  if (dtype.starts_with("float4"))
    return mac_class::f4;
  return std::nullopt;
}

class counter {
public:
  counter(const op_graph& graph, const definition& def, const axis_values& axes)
    : graph_(graph), def_(def), axes_(axes) {}

  result<graph_work> run() {
    for (const auto& value : graph_.values)
      values_[value.id] = &value;
    if (auto done = read_inputs(); !done)
      return pass(done);
    mark_live();
    if (auto done = count_macs(); !done)
      return pass(done);
    count_reads();
    return std::move(out_);
  }

private:
  static std::vector<int64_t> ids_of(const graph_operand& operand) {
    if (operand.kind == operand_kind::value)
      return {operand.value};
    if (operand.kind == operand_kind::values)
      return operand.list;
    return {};
  }

  static std::vector<int64_t> operands_of(const graph_node& node) {
    std::vector<int64_t> out;
    for (const auto& operand : node.inputs)
      for (int64_t id : ids_of(operand))
        out.push_back(id);
    for (const auto& [key, operand] : node.attrs)
      for (int64_t id : ids_of(operand))
        out.push_back(id);
    return out;
  }

  /// Real shapes of the inputs, and the narrowest type that feeds each value.
  result<void> read_inputs() {
    for (const auto& value : graph_.values) {
      narrowest_[value.id] = class_of(value.dtype);
      if (value.source != graph_source::input)
        continue;
      const auto* spec = def_.find_input(value.name);
      if (spec == nullptr)
        return fail(errc::invalid_input,
          fmt::format("the graph reads an input {} that the definition does not have", value.name));
      auto shape = resolve_shape(*spec, axes_);
      if (!shape)
        return pass(shape);
      auto count = element_count(*shape);
      if (!count)
        return pass(count);
      shapes_[value.id] = std::move(*shape);
      counts_[value.id] = *count;
    }
    // A product that the reference computes wide may be fed from narrow numbers by a kernel, so the
    // rate is that of the narrowest float among all that a value is made of.
    for (const auto& node : graph_.nodes) {
      std::optional<mac_class> fastest;
      for (int64_t id : operands_of(node))
        if (const auto from = narrowest_[id]; from && (!fastest || *from > *fastest))
          fastest = from;
      for (int64_t id : node.outputs) {
        auto& at = narrowest_[id];
        if (fastest && (!at || *fastest > *at))
          at = fastest;
      }
    }
    return {};
  }

  void mark_live() {
    std::set<int64_t> needed(graph_.outputs.begin(), graph_.outputs.end());
    live_.assign(graph_.nodes.size(), false);
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      const auto& node = graph_.nodes[n];
      live_[n] = std::any_of(
        node.outputs.begin(), node.outputs.end(), [&](int64_t id) { return needed.contains(id); });
      if (live_[n])
        for (int64_t id : operands_of(node))
          needed.insert(id);
    }
  }

  /// The real size that a traced one stands for; nothing when it cannot be told.
  std::optional<int64_t> real_size(int64_t traced) const {
    if (traced <= 1)
      return traced;
    std::optional<int64_t> least;
    const auto take = [&](std::optional<int64_t> size) {
      if (size && (!least || *size < *least))
        least = size;
    };
    std::vector<std::pair<int64_t, int64_t>> sizes; // traced, real
    bool never_smaller = true;
    for (const auto& [axis_name, size] : graph_.axes)
      if (const auto* real = find_axis_value(axes_, axis_name)) {
        sizes.emplace_back(size, *real);
        never_smaller = never_smaller && *real >= size;
        if (size == traced)
          take(*real);
      }
    if (least)
      return least;
    // A product of axes, such as tokens flattened from batch and sequence, or an axis times a
    // number of the reference's own.
    for (size_t i = 0; i < sizes.size(); ++i)
      for (size_t j = i; j < sizes.size(); ++j)
        if (sizes[i].first > 1 && sizes[j].first > 1 && sizes[i].first * sizes[j].first == traced)
          take(sizes[i].second * sizes[j].second);
    if (least)
      return least;
    for (const auto& [size, real] : sizes)
      if (size > 1 && traced % size == 0)
        take(real * (traced / size));
    if (least)
      return least;
    // A number of the reference's own; where some axis is smaller than it was traced, it might
    // also be something that shrinks with it.
    return never_smaller ? std::optional<int64_t>{traced} : std::nullopt;
  }

  std::optional<std::vector<int64_t>> real_shape(int64_t id) {
    if (const auto known = shapes_.find(id); known != shapes_.end())
      return known->second;
    const auto found = values_.find(id);
    if (found == values_.end())
      return std::nullopt;
    std::vector<int64_t> out;
    for (int64_t traced : found->second->shape) {
      const auto size = real_size(traced);
      if (!size)
        return std::nullopt;
      out.push_back(*size);
    }
    return out;
  }

  static std::optional<uint64_t> product(const std::vector<int64_t>& sizes) {
    uint64_t out = 1;
    for (int64_t size : sizes)
      if (__builtin_mul_overflow(out, static_cast<uint64_t>(size), &out))
        return std::nullopt;
    return out;
  }

  void add_macs(const graph_node& node, int64_t left, int64_t right, std::optional<uint64_t> macs) {
    const auto a = narrowest_[left];
    const auto b = narrowest_[right];
    if (!macs || (!a && !b)) {
      note_uncounted(node);
      return;
    }
    // Two types: the wider decides.
    const auto slower = !a ? *b : !b ? *a : std::min(*a, *b);
    auto& count = out_.macs[static_cast<size_t>(slower)];
    count = saturating_add(count, *macs);
    ++out_.mac_nodes;
  }

  void note_uncounted(const graph_node& node) {
    if (std::find(out_.uncounted.begin(), out_.uncounted.end(), node.op) == out_.uncounted.end())
      out_.uncounted.push_back(node.op);
  }

  result<void> count_macs() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const auto& node = graph_.nodes[n];
      if (!live_[n])
        continue;
      const auto row = std::find_if(matrix_rows.begin(), matrix_rows.end(),
        [&](const matrix_row& each) { return each.op == node.op; });
      if (row != matrix_rows.end())
        count_product(node, *row);
      else if (is_one_of(node.op, convolutions))
        count_convolution(node);
      else if (is_one_of(node.op, opaque_operators))
        note_uncounted(node);
    }
    for (uint64_t each : out_.macs)
      if (each == everything)
        return fail(errc::invalid_input, "more than 2^64 multiply-adds");
    return {};
  }

  static std::optional<int64_t> tensor_at(const graph_node& node, size_t position) {
    if (position >= node.inputs.size() || node.inputs[position].kind != operand_kind::value)
      return std::nullopt;
    return node.inputs[position].value;
  }

  /// Every element of the result is a sum over the last dimension of the left operand.
  void count_product(const graph_node& node, const matrix_row& row) {
    const auto left = tensor_at(node, row.left);
    const auto right = tensor_at(node, row.right);
    if (!left || !right || node.outputs.empty())
      return note_uncounted(node);
    const auto shape = real_shape(*left);
    const auto result = real_shape(node.outputs[0]);
    if (!shape || shape->empty() || !result)
      return note_uncounted(node);
    auto sizes = *result;
    sizes.push_back(shape->back());
    // Sums of several matrix products: the batch is not in the result.
    if (node.op == "addbmm")
      sizes.push_back(shape->front());
    add_macs(node, *left, *right, product(sizes));
  }

  /// The i-th number of a list such as `stride`; one number stands for all.
  static int64_t at_of(const graph_node& node, size_t position, size_t index, int64_t fallback) {
    if (position >= node.inputs.size())
      return fallback;
    const auto& operand = node.inputs[position];
    if (operand.kind == operand_kind::integer)
      return operand.integer;
    if (operand.kind != operand_kind::integers || operand.list.empty())
      return fallback;
    return operand.list[std::min(index, operand.list.size() - 1)];
  }

  /// Products of one dimension that are inside of the input: the zeros of the padding are no work.
  static std::optional<int64_t> taps(
    int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
    if (stride < 1 || dilation < 1 || padding < 0 || kernel < 0 || kernel > 4096)
      return std::nullopt;
    int64_t sum = 0;
    for (int64_t t = 0; t < kernel; ++t) {
      const int64_t shift = padding - t * dilation;
      const int64_t first = shift <= 0 ? 0 : (shift + stride - 1) / stride;
      const int64_t top = in - 1 + shift;
      const int64_t last = top < 0 ? -1 : std::min(out - 1, top / stride);
      sum += std::max<int64_t>(0, last - first + 1);
    }
    return sum;
  }

  /// A weight has the input channels of ONE group, so groups are counted as what they are.
  void count_convolution(const graph_node& node) {
    const auto input = tensor_at(node, 0);
    const auto weight = tensor_at(node, 1);
    if (!input || !weight || node.outputs.empty())
      return note_uncounted(node);
    const auto in = real_shape(*input);
    const auto kernel = real_shape(*weight);
    const auto out = real_shape(node.outputs[0]);
    if (!in || !kernel || !out || kernel->size() < 3 || in->size() != kernel->size()
      || out->size() != kernel->size())
      return note_uncounted(node);
    const bool general = node.op == "convolution" || node.op == "_convolution";
    const bool is_transposed = node.op.starts_with("conv_transpose")
      || (general && node.inputs.size() > 6 && node.inputs[6].integer != 0);
    // conv_transposeNd puts groups and dilation in another order than convNd.
    const size_t dilation_at = node.op.starts_with("conv_transpose") ? 7 : 5;
    std::vector<int64_t> sizes{(*in)[0], (*kernel)[0], (*kernel)[1]};
    for (size_t d = 2; d < kernel->size(); ++d) {
      // Transposed, input and result change places.
      const auto one = taps(is_transposed ? (*out)[d] : (*in)[d],
        is_transposed ? (*in)[d] : (*out)[d], (*kernel)[d], at_of(node, 3, d - 2, 1),
        at_of(node, 4, d - 2, 0), at_of(node, dilation_at, d - 2, 1));
      if (!one)
        return note_uncounted(node);
      sizes.push_back(*one);
    }
    add_macs(node, *input, *weight, product(sizes));
  }

  /// From the outputs backwards: how many elements of each value something live needs.
  void count_reads() {
    std::unordered_map<int64_t, uint64_t> need;
    const auto whole = [&](int64_t id) {
      const auto known = counts_.find(id);
      return known == counts_.end() ? everything : known->second;
    };
    const auto add = [&](int64_t id, uint64_t count) {
      need[id] = std::min(whole(id), saturating_add(need[id], count));
    };
    for (int64_t id : graph_.outputs)
      add(id, everything);
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      const auto& node = graph_.nodes[n];
      if (!live_[n])
        continue;
      uint64_t wanted = 0;
      for (int64_t id : node.outputs) {
        auto some = need[id];
        if (const auto shape = real_shape(id); shape && some > 0)
          some = std::min(some, product(*shape).value_or(everything));
        wanted = saturating_add(wanted, some);
      }
      const auto first = tensor_at(node, 0);
      const bool in_part = is_one_of(node.op, element_for_element) && first;
      bool seen_first = false;
      for (int64_t id : operands_of(node)) {
        const bool is_first = in_part && !seen_first && id == *first;
        seen_first = seen_first || is_first;
        add(id, is_first ? wanted : everything);
      }
    }
    for (const auto& value : graph_.values)
      if (const auto some = need.find(value.id);
          value.source == graph_source::input && some != need.end())
        out_.elements_read[value.name] = some->second;
  }

  const op_graph& graph_;
  const definition& def_;
  const axis_values& axes_;
  std::unordered_map<int64_t, const graph_value*> values_;
  /// Of the inputs.
  std::unordered_map<int64_t, std::vector<int64_t>> shapes_;
  std::unordered_map<int64_t, uint64_t> counts_;
  std::unordered_map<int64_t, std::optional<mac_class>> narrowest_;
  std::vector<bool> live_;
  graph_work out_;
};

} // namespace

result<graph_work> count_graph(
  const op_graph& graph, const definition& def, const axis_values& resolved_axes) {
  return counter{graph, def, resolved_axes}.run();
}

} // namespace gristmill
