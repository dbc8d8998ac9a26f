#include "kernels/families/contraction.hpp"

#include "kernels/families/contraction_reader.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <stdexcept>
#include <string_view>

namespace gristmill {

namespace {

// Every restart takes one atom apart; shapes have 8 dimensions at most.
constexpr int restarts_max = 24;
constexpr int64_t elements_max = int64_t{1} << 48;

bool is_matrix_product(std::string_view op) {
  static const std::set<std::string_view> table = {
    "mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "linear"};
  return table.contains(op);
}

/// The only operator of that kind that the outputs need.
const graph_node& find_core(const op_graph& graph, contraction_kind kind) {
  const graph_node* core = nullptr;
  for (const graph_node& node : graph.nodes) {
    const bool is_ours =
      kind == contraction_kind::convolution ? node.op == "convolution" : is_matrix_product(node.op);
    if (!is_ours)
      continue;
    if (core != nullptr)
      throw no_template{"two products in one stage belong to no template family yet"};
    core = &node;
  }
  if (core == nullptr || core->outputs.empty())
    throw no_template{kind == contraction_kind::convolution ? "there is no convolution in it"
                                                            : "there is no matrix product in it"};
  return *core;
}

/// The numbers of a list argument such as `stride`, one for each spatial dimension.
std::vector<int64_t> list_at(const graph_node& node, size_t position, size_t count) {
  if (position >= node.inputs.size() || node.inputs[position].kind != operand_kind::integers
    || node.inputs[position].list.empty())
    throw no_template{
      fmt::format("operator '{}' has no list as its argument {}", node.op, position)};
  const auto& list = node.inputs[position].list;
  if (list.size() != 1 && list.size() != count)
    throw no_template{fmt::format("operator '{}' has a list of unexpected length", node.op)};
  return list.size() == count ? list : std::vector<int64_t>(count, list.front());
}

/// Where each element of a space lies: the stride of each atom, then the digits that have none.
using atom_strides = std::vector<size_product>;

/// As few segments as possible for the atoms of a group.
std::vector<index_segment> segments_of(const std::vector<int>& atoms,
  const std::vector<index_atom>& table, const atom_strides& strides) {
  std::vector<index_segment> segments;
  for (int id : atoms) {
    const size_product& size = table[static_cast<size_t>(id)].size;
    const size_product& stride = strides[static_cast<size_t>(id)];
    if (size.is(1))
      continue;
    // The outer digit steps over all of the inner one: they are one number.
    if (!segments.empty() && segments.back().stride == stride * size) {
      segments.back().size = segments.back().size * size;
      segments.back().stride = stride;
    } else {
      segments.push_back({size, stride});
    }
  }
  const bool matters = std::any_of(
    segments.begin(), segments.end(), [](const index_segment& one) { return !one.stride.is(0); });
  return matters ? segments : std::vector<index_segment>{};
}

/// Reads one sub-graph. Made anew after each split of an atom.
class contraction_attempt {
public:
  contraction_attempt(const problem& target, const op_graph& graph, const size_names& names,
    const graph_node& core, std::vector<index_atom>& atoms, std::vector<std::vector<int>>& space,
    std::vector<std::vector<int>>& depth)
    : def_(target.def), graph_(graph), names_(names), core_(core), atoms_(atoms), space_(space),
      depth_(depth), reader_(target, graph, names, core, atoms, out_) {}

  contraction run() {
    read_epilogue();
    set_groups();
    reader_.leave_epilogue();
    if (core_.op == "convolution")
      read_convolution();
    else
      read_product();
    finish_operand(out_.left);
    finish_operand(out_.right);
    add_layouts();
    return std::move(out_);
  }

private:
  void read_epilogue() {
    if (space_.empty()) {
      const graph_value& first = reader_.value(graph_.outputs.front());
      for (size_t i = 0; i < first.shape.size(); ++i)
        space_.push_back(new_atoms(first, i));
    }
    std::vector<int> digits;
    for (const auto& dim : space_)
      digits.insert(digits.end(), dim.begin(), dim.end());
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const graph_value& what = reader_.value(graph_.outputs[i]);
      const tensor_spec& spec = def_.outputs[i];
      if (spec.is_scalar || spec.shape.size() != what.shape.size() || what.dtype != name(spec.type))
        throw no_template{
          fmt::format("output '{}' differs from its declaration in the trace", spec.name)};
      if (spec.type != dtype::float32 && spec.type != dtype::bfloat16
        && spec.type != dtype::float16)
        throw no_template{
          fmt::format("output of type {} belongs to no template family yet", name(spec.type))};
      int node = reader_.read(what.id, index_of(what, digits));
      const ir_node& last = out_.values.nodes[static_cast<size_t>(node)];
      // Storing rounds: once is enough.
      if ((last.op == ir_op::round_bf16 && spec.type == dtype::bfloat16)
        || (last.op == ir_op::round_fp16 && spec.type == dtype::float16))
        node = last.args[0];
      out_.values.outputs.push_back({static_cast<int>(i), spec.type, node, false});
    }
    if (!reader_.has_core_index())
      throw no_template{"the outputs do not depend on the product"};
  }

  std::vector<int> new_atoms(const graph_value& what, size_t dim) {
    if (what.shape.at(dim) == 1) {
      if (!reader_.dim_size(what, dim).is(1) || reader_.atom_of(what, dim).again > 1)
        throw no_template{"a dimension that may change had the size 1 in the trace"};
      return {};
    }
    atoms_.push_back(reader_.atom_of(what, dim));
    return {static_cast<int>(atoms_.size()) - 1};
  }

  /// The index of an output whose elements lie in the order of the space.
  composite_index index_of(const graph_value& what, const std::vector<int>& digits) const {
    composite_index index(what.shape.size());
    size_t next = 0;
    for (size_t i = 0; i < what.shape.size(); ++i) {
      int64_t product = 1;
      while (product < what.shape[i]) {
        if (next >= digits.size())
          throw no_template{"outputs of different sizes belong to no template family yet"};
        const int64_t size = atoms_[static_cast<size_t>(digits[next])].traced;
        const int64_t wanted = what.shape[i] / product;
        if (size > wanted && wanted > 0 && what.shape[i] % product == 0 && size % wanted == 0)
          reader_.ask_split(
            digits[next], wanted, i < what.shape_again.size() ? what.shape_again[i] : 0);
        product *= size;
        index[i].atoms.push_back(digits[next++]);
      }
      if (product != what.shape[i])
        throw no_template{"outputs of different shapes belong to no template family yet"};
    }
    if (next != digits.size())
      throw no_template{"outputs of different sizes belong to no template family yet"};
    return index;
  }

  std::vector<int>& group(index_group which) { return groups_[static_cast<size_t>(which)]; }

  static void append(std::vector<int>& to, const std::vector<int>& from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  /// Each element of the space must have an element of the result to itself; a part of the result
  /// may be left out.
  void set_groups() {
    const composite_index& index = reader_.core_index();
    std::vector<int> uses(atoms_.size(), 0);
    for (const dim_index& dim : index) {
      for (int atom : dim.atoms)
        ++uses[static_cast<size_t>(atom)];
      if (dim.is_window() || (!dim.offset.empty() && core_.op == "convolution"))
        throw no_template{"a part of a convolution's result belongs to no template family yet"};
    }
    for (const auto& dim : space_) {
      for (int atom : dim) {
        if (uses[static_cast<size_t>(atom)] != 1)
          throw no_template{"the product's result is broadcast, which no template does yet"};
      }
    }
    const size_t dimensions = index.size();
    if (core_.op == "convolution")
      return;
    const bool has_columns = core_.op != "mv" && core_.op != "addmv" && core_.op != "dot";
    const size_t inner = core_.op == "dot" ? 0 : has_columns ? 2 : 1;
    if (dimensions < inner)
      throw no_template{"the product's result has too few dimensions"};
    for (size_t i = 0; i < dimensions; ++i) {
      const size_t from_end = dimensions - i;
      // The leading dimensions of `linear` are all rows.
      const bool is_batch = from_end > inner && core_.op != "linear";
      append(group(is_batch                     ? index_group::batch
                 : has_columns && from_end == 1 ? index_group::column
                                                : index_group::row),
        index[i].atoms);
    }
  }

  std::vector<int>& depth_atoms(size_t which, const graph_value& what, size_t dim) {
    while (depth_.size() <= which)
      depth_.push_back(new_atoms(what, dim));
    return depth_[which];
  }

  const graph_value& operand(size_t position) const {
    if (position >= core_.inputs.size() || core_.inputs[position].kind != operand_kind::value)
      throw no_template{fmt::format("operator '{}' lacks an operand", core_.op)};
    return reader_.value(core_.inputs[position].value);
  }

  void read_product() {
    const size_t first = core_.op.starts_with("add") || core_.op == "baddbmm" ? 1 : 0;
    const graph_value& left = operand(first);
    const graph_value& right = operand(first + 1);
    const composite_index& result = reader_.core_index();
    if (left.shape.empty() || right.shape.empty())
      throw no_template{"a product of numbers belongs to no template family"};
    // The side whose size is known by a label names the depth.
    const bool right_is_vector = right.shape.size() == 1;
    const bool is_linear = core_.op == "linear";
    const size_t right_depth = right_is_vector ? 0 : right.shape.size() - (is_linear ? 1 : 2);
    const bool by_right = right.source == graph_source::input && left.source != graph_source::input;
    const auto& depth =
      by_right ? depth_atoms(0, right, right_depth) : depth_atoms(0, left, left.shape.size() - 1);
    append(group(index_group::depth), depth);
    const dim_index along{.atoms = depth, .offset = {}, .taps = {}};
    composite_index left_index;
    composite_index right_index;
    if (core_.op == "dot") {
      left_index = {along};
      right_index = {along};
    } else if (right_is_vector) {
      left_index = {result.at(0), along};
      right_index = {along};
    } else {
      left_index = result;
      left_index.back() = along;
      right_index = is_linear ? composite_index{result.back(), along} : result;
      if (!is_linear)
        right_index.at(right_index.size() - 2) = along;
    }
    if (left_index.size() != left.shape.size() || right_index.size() != right.shape.size())
      throw no_template{fmt::format("operator '{}' has operands of unexpected shapes", core_.op)};
    out_.left.node = reader_.read(left.id, left_index);
    out_.right.node = reader_.read(right.id, right_index);
  }

  void read_convolution() {
    const graph_value& input = operand(0);
    const graph_value& weight = operand(1);
    const graph_value& result = reader_.value(core_.outputs.front());
    const size_t spatial = input.shape.size() < 2 ? 0 : input.shape.size() - 2;
    if ((spatial != 1 && spatial != 2) || weight.shape.size() != spatial + 2
      || result.shape.size() != spatial + 2 || core_.inputs.size() < 9)
      throw no_template{"only convolutions of one and two dimensions belong to a template family"};
    if (core_.inputs[6].integer != 0)
      throw no_template{"a transposed convolution belongs to no template family yet"};
    const auto steps = list_at(core_, 3, spatial);
    const auto paddings = list_at(core_, 4, spatial);
    const auto dilations = list_at(core_, 5, spatial);
    const composite_index& index = reader_.core_index();
    // Groups by the channels of one weight: a number in the graph may follow the shape.
    const index_atom channels = reader_.atom_of(input, 1);
    const index_atom channels_each = reader_.atom_of(weight, 1);
    const auto groups = divided(channels.size, channels_each.size);
    if (!groups || channels_each.traced == 0 || channels.traced % channels_each.traced != 0)
      throw no_template{"the groups of a convolution cannot be told from its shapes"};
    const int64_t traced_groups = channels.traced / channels_each.traced;
    std::vector<int> outer;
    std::vector<int> inner;
    int64_t seen = 1;
    for (int atom : index[1].atoms) {
      const index_atom& one = atoms_[static_cast<size_t>(atom)];
      if (seen < traced_groups && seen * one.traced > traced_groups)
        reader_.ask_split(atom,
          {*groups, traced_groups / seen,
            channels.again == 0 ? 0 : channels.again / std::max<int64_t>(channels_each.again, 1)});
      (seen < traced_groups ? outer : inner).push_back(atom);
      seen *= one.traced;
    }
    group(index_group::batch) = outer;
    group(index_group::row) = inner;
    append(group(index_group::column), index[0].atoms);
    composite_index left{index[1], {}};
    composite_index right{index[0], {}};
    for (size_t i = 1; i < weight.shape.size(); ++i) {
      const auto& atoms = depth_atoms(i - 1, weight, i);
      append(group(index_group::depth), atoms);
      const dim_index along{.atoms = atoms, .offset = {}, .taps = {}};
      if (i == 1) {
        left[1] = along;
        right[1].atoms = outer;
        append(right[1].atoms, atoms);
        continue;
      }
      append(group(index_group::column), index[i].atoms);
      left.push_back(along);
      dim_index window{.atoms = index[i].atoms,
        .offset = {},
        .taps = atoms,
        .step = steps[i - 2],
        .dilation = dilations[i - 2],
        .padding = paddings[i - 2]};
      if (window.step < 1 || window.dilation < 1 || window.padding < 0 || window.step > 1024
        || window.dilation > 1024 || window.padding > 4096)
        throw no_template{"a convolution with such steps belongs to no template family"};
      // With one tap in every place it is no window but an index as any other.
      right.push_back(window);
      if (window.padding > 0)
        windows_.push_back({window, reader_.dim_size(input, i)});
    }
    out_.left.node = reader_.read(weight.id, left);
    out_.right.node = reader_.read(input.id, right);
  }

  void finish_operand(contraction_operand& which) const {
    int node = which.node;
    const auto at = [&](int i) -> const ir_node& {
      return out_.values.nodes[static_cast<size_t>(i)];
    };
    if (at(node).is_bool)
      throw no_template{"a product of truth values belongs to no template family"};
    if (at(node).op == ir_op::load) {
      which.plain_load = at(node).load;
      which.type = out_.values.loads[static_cast<size_t>(at(node).load)].type;
    } else if (at(node).op == ir_op::round_bf16) {
      which.type = dtype::bfloat16;
    } else if (at(node).op == ir_op::round_fp16) {
      which.type = dtype::float16;
    }
  }

  /// Adds what a dimension's index means for the strides.
  void add_strides(const dim_index& dim, const size_product& stride, atom_strides& strides,
    index_layout& layout) const {
    size_product inner = stride * size_product{dim.step, {}};
    const auto add = [&](const std::vector<int>& digits, size_product unit) {
      for (size_t i = digits.size(); i-- > 0;) {
        size_product& place = strides[static_cast<size_t>(digits[i])];
        if (!place.is(0))
          throw no_template{"a diagonal of a tensor belongs to no template family yet"};
        place = unit;
        unit = unit * atoms_[static_cast<size_t>(digits[i])].size;
      }
    };
    add(dim.atoms, inner);
    add(dim.taps, stride * size_product{dim.dilation, {}});
    for (const auto& part : dim.offset)
      layout.base.push_back(part * stride);
    if (dim.padding > 0)
      layout.before.push_back(stride * size_product{dim.padding, {}});
  }

  void set_segments(index_layout& layout, const atom_strides& strides) const {
    for (size_t g = 0; g < index_groups; ++g)
      layout.groups[g] = segments_of(groups_[g], atoms_, strides);
  }

  atom_strides no_strides() const { return atom_strides(atoms_.size(), size_product{0, {}}); }

  void add_layouts() {
    for (size_t g = 0; g < index_groups; ++g) {
      for (int atom : groups_[g])
        out_.sizes[g] = out_.sizes[g] * atoms_[static_cast<size_t>(atom)].size;
    }
    for (size_t i = 0; i < out_.values.loads.size(); ++i) {
      const composite_index& index = reader_.load_indices()[i];
      const tensor_spec& spec = def_.inputs[static_cast<size_t>(out_.values.loads[i].input)];
      index_layout layout;
      atom_strides strides = no_strides();
      size_product stride;
      for (size_t d = index.size(); d-- > 0;) {
        add_strides(index[d], stride, strides, layout);
        stride = stride * names_.of_label(spec.shape[d]);
      }
      set_segments(layout, strides);
      out_.layouts.push_back(std::move(layout));
    }
    index_layout output;
    atom_strides strides = no_strides();
    size_product stride;
    for (size_t d = space_.size(); d-- > 0;) {
      for (size_t i = space_[d].size(); i-- > 0;) {
        strides[static_cast<size_t>(space_[d][i])] = stride;
        stride = stride * atoms_[static_cast<size_t>(space_[d][i])].size;
      }
    }
    set_segments(output, strides);
    out_.output_layouts.assign(out_.values.outputs.size(), output);
    for (const auto& [window, length] : windows_) {
      index_window one{{}, length};
      atom_strides steps = no_strides();
      add_strides(window, {}, steps, one.place);
      set_segments(one.place, steps);
      out_.right.windows.push_back(std::move(one));
    }
  }

  const definition& def_;
  const op_graph& graph_;
  const size_names& names_;
  const graph_node& core_;
  std::vector<index_atom>& atoms_;
  std::vector<std::vector<int>>& space_;
  std::vector<std::vector<int>>& depth_;
  contraction out_;
  contraction_reader reader_;
  std::array<std::vector<int>, index_groups> groups_;
  std::vector<std::pair<dim_index, size_product>> windows_;
};

void replace(std::vector<std::vector<int>>& lists, int atom, int outer, int inner) {
  for (auto& list : lists) {
    const auto found = std::find(list.begin(), list.end(), atom);
    if (found == list.end())
      continue;
    *found = outer;
    list.insert(found + 1, inner);
  }
}

/// Products of traced sizes must be numbers, however strange a graph is.
void check_sizes(const op_graph& graph) {
  for (const graph_value& value : graph.values) {
    for (const auto* shape : {&value.shape, &value.shape_again}) {
      int64_t elements = 1;
      for (int64_t size : *shape) {
        if (size < 1)
          throw no_template{"a tensor without elements in the trace belongs to no template family"};
        if (__builtin_mul_overflow(elements, size, &elements) || elements > elements_max)
          throw no_template{"a tensor is larger than any memory"};
      }
    }
  }
}

contraction read(const problem& target, const op_graph& graph, contraction_kind kind) {
  if (graph.outputs.empty() || graph.outputs.size() != target.def.outputs.size())
    throw no_template{fmt::format("the graph has {} outputs and the definition {}",
      graph.outputs.size(), target.def.outputs.size())};
  const graph_node& core = find_core(graph, kind);
  check_sizes(graph);
  const size_names names(target, graph);
  std::vector<index_atom> atoms;
  std::vector<std::vector<int>> space;
  std::vector<std::vector<int>> depth;
  for (int round = 0; round < restarts_max; ++round) {
    try {
      return contraction_attempt(target, graph, names, core, atoms, space, depth).run();
    } catch (const atom_split& split) {
      const int outer = static_cast<int>(atoms.size());
      atoms.push_back(split.outer);
      atoms.push_back(split.inner);
      replace(space, split.atom, outer, outer + 1);
      replace(depth, split.atom, outer, outer + 1);
    }
  }
  throw no_template{"the views around the product are too many"};
}

} // namespace

result<contraction> read_contraction(
  const problem& target, const op_graph& graph, contraction_kind kind) {
  if (auto checked = validate(graph); !checked)
    return pass(checked);
  try {
    return read(target, graph, kind);
  } catch (const no_template& refused) {
    return fail(errc::unsupported, refused.reason);
  } catch (const std::out_of_range&) {
    // An operator of another form than torch would give it.
    return fail(errc::unsupported, "the shapes around the product contradict each other");
  }
}

} // namespace gristmill
