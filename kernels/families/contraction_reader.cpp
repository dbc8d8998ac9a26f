#include "kernels/families/contraction_reader.hpp"

#include "kernels/graph_operands.hpp"
#include "kernels/graph_reader.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

// Bounds on what a hostile graph can make us do: recursion, and size of the result.
constexpr size_t depth_max = 200;
constexpr size_t nodes_max = 400;
constexpr size_t loads_max = 24;

[[noreturn]] void refuse(const graph_node& node, std::string_view why) {
  throw no_template{fmt::format("operator '{}' {}", node.op, why)};
}

int64_t again_of(const graph_value& what, size_t dim) {
  return dim < what.shape_again.size() ? what.shape_again[dim] : 0;
}

int64_t integer_at(const graph_node& node, size_t position, int64_t fallback) {
  if (position >= node.inputs.size() || node.inputs[position].kind == operand_kind::none)
    return fallback;
  if (node.inputs[position].kind != operand_kind::integer)
    refuse(node, fmt::format("has no integer as its argument {}", position));
  return node.inputs[position].integer;
}

size_t dimension(const graph_node& node, int64_t dim, size_t dimensions) {
  const int64_t from_front = dim < 0 ? dim + static_cast<int64_t>(dimensions) : dim;
  if (from_front < 0 || from_front >= static_cast<int64_t>(dimensions))
    refuse(node, fmt::format("has no dimension {}", dim));
  return static_cast<size_t>(from_front);
}

bool varies_at(const graph_node& node, size_t position) {
  return position < node.inputs.size() && node.inputs[position].varies;
}

} // namespace

std::string text_of(const composite_index& index) {
  std::string text;
  for (const dim_index& dim : index) {
    text += '[';
    for (int atom : dim.atoms)
      text += fmt::format("{},", atom);
    for (const auto& part : dim.offset)
      text += fmt::format("+{}", part.text());
    if (dim.is_window()) {
      text += fmt::format("*{}-{}", dim.step, dim.padding);
      for (int tap : dim.taps)
        text += fmt::format("+{}*{}", tap, dim.dilation);
    }
    text += ']';
  }
  return text;
}

contraction_reader::contraction_reader(const problem& target, const op_graph& graph,
  const size_names& names, const graph_node& core, const std::vector<index_atom>& atoms,
  contraction& out)
  : def_(target.def), graph_(graph), names_(names), core_(core), atoms_(atoms), out_(out),
    build_(out.values) {
  for (const auto& what : graph.values)
    values_[what.id] = &what;
  for (const auto& node : graph_.nodes) {
    for (size_t i = 0; i < node.outputs.size(); ++i)
      places_[node.outputs[i]] = {&node, i};
  }
}

size_product contraction_reader::dim_size(const graph_value& what, size_t dim) const {
  if (what.source == graph_source::input) {
    if (const tensor_spec* spec = def_.find_input(what.name);
        spec != nullptr && dim < spec->shape.size())
      return names_.of_label(spec->shape[dim]);
  }
  for (size_t i = 0; i < graph_.outputs.size() && i < def_.outputs.size(); ++i) {
    if (graph_.outputs[i] == what.id && dim < def_.outputs[i].shape.size())
      return names_.of_label(def_.outputs[i].shape[dim]);
  }
  const auto size = names_.of_traced(what.shape.at(dim), again_of(what, dim));
  if (!size)
    throw no_template{
      fmt::format("no axis of the definition explains a dimension of size {}", what.shape.at(dim))};
  return *size;
}

index_atom contraction_reader::atom_of(const graph_value& what, size_t dim) const {
  return {dim_size(what, dim), what.shape.at(dim), again_of(what, dim)};
}

void contraction_reader::ask_split(int atom, const index_atom& outer) const {
  const index_atom& whole = atoms_[static_cast<size_t>(atom)];
  const auto inner = divided(whole.size, outer.size);
  if (!inner || outer.traced == 0 || whole.traced % outer.traced != 0)
    throw no_template{
      fmt::format("a dimension of {} elements does not come apart evenly", whole.size.text())};
  throw atom_split{atom, outer,
    {*inner, whole.traced / outer.traced, outer.again == 0 ? 0 : whole.again / outer.again}};
}

void contraction_reader::ask_split(int atom, int64_t outer, int64_t outer_again) const {
  const index_atom& whole = atoms_[static_cast<size_t>(atom)];
  if (outer <= 1 || whole.traced % outer != 0)
    throw no_template{"a view takes a dimension apart in a way that no template does yet"};
  if (const auto size = names_.of_traced(outer, outer_again); size && divided(whole.size, *size))
    ask_split(atom, {*size, outer, outer_again});
  const int64_t inner = whole.traced / outer;
  const auto size = names_.of_traced(inner, outer_again == 0 ? 0 : whole.again / outer_again);
  const auto rest = size ? divided(whole.size, *size) : std::nullopt;
  if (!rest)
    throw no_template{
      fmt::format("no axis explains how a dimension of {} elements is split", whole.size.text())};
  ask_split(atom, {*rest, outer, outer_again});
}

int contraction_reader::read(int64_t id, const composite_index& index) {
  const auto key = std::make_pair(id, text_of(index));
  if (const auto found = known_.find(key); found != known_.end())
    return found->second;
  if (index.size() != value(id).shape.size())
    throw no_template{"a tensor has other dimensions than its operator gives it"};
  if (depth_ >= depth_max || out_.values.nodes.size() >= nodes_max
    || out_.values.loads.size() >= loads_max)
    throw no_template{"the graph is too long for one kernel"};
  ++depth_;
  const int node = read_value(value(id), index);
  --depth_;
  known_.emplace(key, node);
  return node;
}

int contraction_reader::read_value(const graph_value& what, const composite_index& index) {
  if (what.source == graph_source::input)
    return read_input(what, index);
  if (what.source == graph_source::scalar_input) {
    graph_operand operand;
    operand.kind = operand_kind::scalar_input;
    operand.text = what.name;
    return read_operand(operand, what, index);
  }
  if (what.source == graph_source::constant) {
    if (what.constant.size() != 1)
      throw no_template{
        "a constant tensor with more than one element belongs to no template family yet"};
    return build_.constant(what.constant.front());
  }
  const auto origin = places_.find(what.id);
  if (origin == places_.end())
    throw no_template{fmt::format("nothing computes value {} of the graph", what.id)};
  const graph_node& node = *origin->second.node;
  if (&node == &core_)
    return read_core(what, index);
  if (is_view_operator(node.op))
    return read_view(origin->second, what, index);
  if (!is_pointwise(node.op))
    refuse(node, "beside a contraction belongs to no template family yet");
  const int number = build_pointwise(node, build_, out_.values,
    [&](const graph_operand& operand) { return read_operand(operand, what, index); });
  return rounded(node, what, number);
}

int contraction_reader::read_input(const graph_value& what, const composite_index& index) {
  const auto found = std::find_if(def_.inputs.begin(), def_.inputs.end(),
    [&](const tensor_spec& spec) { return spec.name == what.name && !spec.is_scalar; });
  if (found == def_.inputs.end() || found->shape.size() != what.shape.size()
    || index.size() != what.shape.size())
    throw no_template{
      fmt::format("the graph's input '{}' is no such tensor of the definition", what.name)};
  if (found->type != dtype::float32 && found->type != dtype::bfloat16
    && found->type != dtype::float16 && found->type != dtype::boolean)
    throw no_template{
      fmt::format("input of type {} belongs to no template family yet", name(found->type))};
  ir_load load{.input = static_cast<int>(found - def_.inputs.begin()),
    .type = found->type,
    .index = {{0, text_of(index)}},
    .is_full = {false},
    .is_unit = {false},
    .uses_last = true,
    .uses_leading = true};
  const int node = build_.load(std::move(load));
  if (load_indices_.size() < out_.values.loads.size())
    load_indices_.push_back(index);
  for (size_t i = 0; i < index.size(); ++i) {
    if (what.shape[i] == 1 && !names_.of_label(found->shape[i]).is(1))
      throw no_template{"a dimension that may change had the size 1 in the trace"};
  }
  // A dimension that is read in full has the size of its atoms, whatever its label is called.
  for (size_t i = 0; i < index.size(); ++i) {
    if (!index[i].is_plain() || index[i].atoms.empty())
      continue;
    int64_t traced = 1;
    size_product size;
    for (int atom : index[i].atoms) {
      traced *= atoms_[static_cast<size_t>(atom)].traced;
      size = size * atoms_[static_cast<size_t>(atom)].size;
    }
    const size_product label = names_.of_label(found->shape[i]);
    if (traced != what.shape[i] || size == label)
      continue;
    std::string condition = fmt::format("{} == {}", label.text(), size.text());
    if (std::find(out_.conditions.begin(), out_.conditions.end(), condition)
      == out_.conditions.end())
      out_.conditions.push_back(std::move(condition));
  }
  return node;
}

int contraction_reader::factor(std::string_view name, int node) {
  const graph_operand* operand = find_attr(core_, name);
  if (operand == nullptr || operand->kind == operand_kind::none)
    return node;
  const bool is_one = !operand->varies
    && ((operand->kind == operand_kind::integer && operand->integer == 1)
      || (operand->kind == operand_kind::number && operand->number == 1));
  return is_one ? node : build_.apply(ir_op::mul, read_operand(*operand, {}, {}), node);
}

int contraction_reader::read_core(const graph_value& what, const composite_index& index) {
  if (!is_epilogue_)
    refuse(core_, "feeds itself");
  if (what.id != core_.outputs.front())
    refuse(core_, "has a second result");
  if (has_core_index_ && text_of(index) != text_of(core_index_))
    refuse(core_, "is used at other places than its own, which no template does yet");
  core_index_ = index;
  has_core_index_ = true;
  int number = build_.given();
  const bool has_addend = core_.op.starts_with("add") || core_.op == "baddbmm";
  if (has_addend) {
    number = factor("alpha", number);
    const int addend = factor("beta", read_operand(core_.inputs.at(0), what, index));
    number = build_.apply(ir_op::add, number, addend);
  } else if (core_.op == "linear" && core_.inputs.size() > 2
    && core_.inputs[2].kind == operand_kind::value) {
    number = build_.apply(ir_op::add, number, read_operand(core_.inputs[2], what, index));
  } else if (core_.op == "convolution" && core_.inputs.size() > 2
    && core_.inputs[2].kind == operand_kind::value) {
    number = build_.apply(ir_op::add, number, read(core_.inputs[2].value, {index.at(1)}));
  }
  return rounded(core_, what, number);
}

int contraction_reader::read_operand(
  const graph_operand& operand, const graph_value& result, const composite_index& index) {
  if (operand.kind != operand_kind::value)
    return number_node(build_, def_, operand);
  const graph_value& from = value(operand.value);
  return read(from.id, broadcast_index(from, result, index, dim_index{}));
}

int contraction_reader::rounded(const graph_node& node, const graph_value& what, int number) {
  const bool is_bool = out_.values.nodes[static_cast<size_t>(number)].is_bool;
  if (what.dtype == "bool")
    return is_bool ? number : build_.apply(ir_op::not_equal, number, build_.constant(0));
  number = build_.apply(ir_op::as_number, number);
  if (what.dtype == "float32")
    return number;
  if (what.dtype == "bfloat16")
    return build_.apply(ir_op::round_bf16, number);
  if (what.dtype == "float16")
    return build_.apply(ir_op::round_fp16, number);
  refuse(node, fmt::format("computes in {}, which no template does", what.dtype));
}

void contraction_reader::check_full(
  const graph_value& what, size_t dim, const dim_index& index) const {
  int64_t traced = 1;
  for (int atom : index.atoms)
    traced *= atoms_[static_cast<size_t>(atom)].traced;
  if (!index.is_plain() || traced != what.shape[dim])
    throw no_template{"a view of a part of a tensor merges or splits dimensions"};
}

int contraction_reader::read_reshape(const graph_node& node, const graph_value& base,
  const graph_value& what, const composite_index& index) {
  composite_index inner(base.shape.size());
  // Where only dimensions of size 1 come and go, each index stays whole, whatever it is.
  std::vector<size_t> from;
  std::vector<size_t> to;
  for (size_t i = 0; i < base.shape.size(); ++i) {
    if (base.shape[i] != 1)
      from.push_back(i);
  }
  for (size_t i = 0; i < what.shape.size(); ++i) {
    if (what.shape[i] != 1)
      to.push_back(i);
  }
  bool is_same = from.size() == to.size();
  for (size_t i = 0; is_same && i < from.size(); ++i)
    is_same = base.shape[from[i]] == what.shape[to[i]];
  if (is_same) {
    for (size_t i = 0; i < from.size(); ++i)
      inner[from[i]] = index.at(to[i]);
    return read(base.id, inner);
  }
  std::vector<int> digits;
  for (size_t i = 0; i < what.shape.size(); ++i) {
    check_full(what, i, index.at(i));
    digits.insert(digits.end(), index[i].atoms.begin(), index[i].atoms.end());
  }
  size_t next = 0;
  for (size_t i = 0; i < base.shape.size(); ++i) {
    int64_t product = 1;
    int64_t product_again = 1;
    while (product < base.shape[i]) {
      if (next >= digits.size())
        refuse(node, "has another number of elements than its tensor");
      const index_atom& atom = atoms_[static_cast<size_t>(digits[next])];
      if (base.shape[i] % product != 0)
        refuse(node, "merges or splits dimensions in a way that no template does yet");
      const int64_t wanted = base.shape[i] / product;
      if (atom.traced > wanted)
        ask_split(digits[next], wanted,
          atom.again == 0 ? 0 : again_of(base, i) / std::max<int64_t>(product_again, 1));
      product *= atom.traced;
      product_again *= atom.again;
      inner[i].atoms.push_back(digits[next++]);
    }
    if (product != base.shape[i])
      refuse(node, "merges or splits dimensions in a way that no template does yet");
  }
  return read(base.id, inner);
}

int contraction_reader::read_view(
  const place& from, const graph_value& what, const composite_index& index) {
  const graph_node& node = *from.node;
  if (node.inputs.empty() || node.inputs[0].kind != operand_kind::value)
    refuse(node, "has no tensor");
  const graph_value& base = value(node.inputs[0].value);
  const size_t dimensions = base.shape.size();
  const std::string_view op = node.op;
  if (op == "permute") {
    if (node.inputs.size() < 2 || node.inputs[1].list.size() != dimensions
      || index.size() != dimensions)
      refuse(node, "has no list of all dimensions");
    composite_index inner(dimensions);
    for (size_t i = 0; i < dimensions; ++i)
      inner[dimension(node, node.inputs[1].list[i], dimensions)] = index[i];
    return read(base.id, inner);
  }
  if (op == "transpose" || op == "t") {
    composite_index inner = index;
    if (dimensions >= 2) {
      const size_t a = dimension(node, op == "t" ? 0 : integer_at(node, 1, 0), dimensions);
      const size_t b = dimension(node, op == "t" ? 1 : integer_at(node, 2, 0), dimensions);
      std::swap(inner.at(a), inner.at(b));
    }
    return read(base.id, inner);
  }
  if (op == "expand") {
    graph_operand operand;
    operand.kind = operand_kind::value;
    operand.value = base.id;
    return read_operand(operand, what, index);
  }
  const auto at_number = [&](size_t position) {
    const int64_t number = integer_at(node, position, 0);
    if (number < 0 || varies_at(node, position))
      refuse(node, "has a position that follows the shape, which no template does yet");
    return size_product{number, {}};
  };
  if (op == "select" || op == "unbind") {
    const size_t dim = dimension(node, integer_at(node, 1, 0), dimensions);
    if (index.size() + 1 != dimensions)
      refuse(node, "changes the number of dimensions in an unexpected way");
    const size_product at =
      op == "unbind" ? size_product{static_cast<int64_t>(from.output), {}} : at_number(2);
    composite_index inner = index;
    dim_index fixed;
    if (!at.is(0))
      fixed.offset.push_back(at);
    inner.insert(inner.begin() + static_cast<std::ptrdiff_t>(dim), fixed);
    return read(base.id, inner);
  }
  const bool is_split = op == "split" || op == "split_with_sizes" || op == "chunk";
  if (op == "slice" || op == "narrow" || is_split) {
    const size_t dim = dimension(node, integer_at(node, is_split ? 2 : 1, 0), dimensions);
    if (index.size() != dimensions)
      refuse(node, "changes the number of dimensions");
    if (op == "slice" && integer_at(node, 4, 1) != 1)
      refuse(node, "with a step belongs to no template family yet");
    composite_index inner = index;
    const auto shift = [&](const size_product& by) {
      if (by.is(0))
        return;
      if (inner[dim].is_window())
        refuse(node, "under a convolution belongs to no template family yet");
      inner[dim].offset.push_back(by);
    };
    if (is_split) {
      for (size_t i = 0; i < from.output; ++i)
        shift(dim_size(value(node.outputs[i]), dim));
    } else {
      shift(at_number(2));
    }
    return read(base.id, inner);
  }
  return read_reshape(node, base, what, index);
}

} // namespace gristmill
