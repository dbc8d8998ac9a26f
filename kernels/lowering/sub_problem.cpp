#include "kernels/lowering/sub_problem.hpp"

#include "kernels/plan_text.hpp"
#include "tensors/dtype.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <unordered_set>

namespace gristmill {

namespace {

class cutter {
public:
  cutter(
    const program_graph& program, const std::vector<int64_t>& roots, const value_set& materialised)
    : program_(program), materialised_(materialised), roots_(roots.begin(), roots.end()) {
    cut_.roots = roots;
  }

  stage_cut run() {
    // A stack of our own: a hostile graph may be deep.
    std::vector<int64_t> open(cut_.roots.begin(), cut_.roots.end());
    std::unordered_set<int64_t> seen(open.begin(), open.end());
    std::set<size_t> nodes;
    std::set<int64_t> leaves;
    while (!open.empty()) {
      const int64_t id = open.back();
      open.pop_back();
      if (!roots_.contains(id) && is_available(id)) {
        leaves.insert(id);
        continue;
      }
      const auto maker = program_.producer(id);
      if (!maker || !nodes.insert(*maker).second)
        continue;
      for (int64_t operand : operands_of(program_.node(*maker))) {
        if (seen.insert(operand).second)
          open.push_back(operand);
      }
    }
    cut_.nodes.assign(nodes.begin(), nodes.end());
    for (const auto& value : program_.graph().values) {
      if (leaves.contains(value.id))
        cut_.leaves.push_back(value.id);
    }
    return std::move(cut_);
  }

private:
  bool is_available(int64_t id) const {
    const int64_t base = program_.base(id);
    return program_.value(base).source == graph_source::input
      || (materialised_.contains(base) && !roots_.contains(base));
  }

  const program_graph& program_;
  const value_set& materialised_;
  std::unordered_set<int64_t> roots_;
  stage_cut cut_;
};

class sub_problem_writer {
public:
  sub_problem_writer(const program_graph& program, const stage_cut& cut)
    : program_(program), cut_(cut) {}

  result<sub_problem> run() {
    const problem& whole = program_.target();
    out_.nodes = cut_.nodes;
    out_.target.name = whole.name;
    out_.target.def.name = whole.def.name;
    out_.target.def.axes = whole.def.axes;
    out_.graph.axes = program_.graph().axes;
    out_.graph.axes_again = program_.graph().axes_again;
    for (const auto& spec : whole.def.inputs)
      taken_.insert(spec.name);
    for (const auto& spec : whole.def.outputs)
      taken_.insert(spec.name);
    for (const auto& one : whole.def.axes)
      taken_.insert(one.name);
    for (const auto step : {&sub_problem_writer::add_inputs, &sub_problem_writer::add_outputs}) {
      if (auto done = (this->*step)(); !done)
        return pass(done);
    }
    add_nodes();
    add_inner_axes();
    add_workloads();
    return std::move(out_);
  }

private:
  std::string fresh(const std::string& stem, size_t number) {
    std::string wanted = fmt::format("{}{}", stem, number);
    while (!taken_.insert(wanted).second)
      wanted += '_';
    return wanted;
  }

  result<void> add_inputs() {
    // Those of the whole problem in its order, then the others.
    std::vector<int64_t> order;
    for (const auto& spec : program_.target().def.inputs) {
      for (int64_t id : cut_.leaves) {
        const graph_value& from = program_.value(program_.base(id));
        if (from.source == graph_source::input && from.name == spec.name)
          order.push_back(id);
      }
      if (spec.is_scalar && is_scalar_used(spec.name))
        scalars_.push_back(spec);
    }
    for (int64_t id : cut_.leaves) {
      if (std::find(order.begin(), order.end(), id) == order.end())
        order.push_back(id);
    }
    std::set<std::string> used;
    for (int64_t id : order) {
      const int64_t base = program_.base(id);
      const graph_value& from = program_.value(base);
      const auto output = program_.output_of(base);
      std::string name = from.source == graph_source::input ? from.name
        : output ? program_.target().def.outputs[*output].name
                 : std::string{};
      if (name.empty() || !used.insert(name).second)
        name = fresh("t", out_.inputs.size());
      auto spec = spec_of(name, id);
      if (!spec)
        return pass(spec);
      graph_value value = program_.value(id);
      value.source = graph_source::input;
      value.name = name;
      out_.graph.values.push_back(std::move(value));
      known_.insert(id);
      out_.target.def.inputs.push_back(std::move(*spec));
      out_.inputs.push_back({name, base, program_.sizes(id)});
    }
    for (const auto& spec : scalars_)
      out_.target.def.inputs.push_back(spec);
    return {};
  }

  bool is_scalar_used(const std::string& name) const {
    for (size_t index : cut_.nodes) {
      const graph_node& node = program_.node(index);
      const auto uses = [&](const graph_operand& operand) {
        return (operand.kind == operand_kind::scalar_input && operand.text == name)
          || (operand.kind == operand_kind::value
            && program_.value(operand.value).source == graph_source::scalar_input
            && program_.value(operand.value).name == name);
      };
      if (std::any_of(node.inputs.begin(), node.inputs.end(), uses)
        || std::any_of(node.attrs.begin(), node.attrs.end(),
          [&](const auto& attr) { return uses(attr.second); }))
        return true;
    }
    return false;
  }

  result<tensor_spec> spec_of(const std::string& name, int64_t id) {
    const graph_value& value = program_.value(id);
    tensor_spec spec;
    spec.name = name;
    const auto type = parse_dtype(value.dtype);
    if (!type)
      return fail(errc::unsupported,
        fmt::format(
          "value {} has the dtype {}, which no launch plan knows{}", id, value.dtype, made_by(id)));
    spec.type = *type;
    for (const auto& size : program_.sizes(id)) {
      auto label = program_.label(size);
      if (!label)
        return fail(
          label.error().code, fmt::format("value {}{}: {}", id, made_by(id), label.error().what));
      need(size);
      spec.shape.push_back(std::move(*label));
    }
    return spec;
  }

  std::string made_by(int64_t id) const {
    const auto maker = program_.producer(id);
    return maker ? fmt::format(" (made by operator '{}')", program_.node(*maker).op)
                 : std::string{};
  }

  void need(const symbolic_size& size) {
    const auto found = program_.extra_axes().find(size.plan_text());
    if (found == program_.extra_axes().end())
      return;
    const auto& extra = found->second;
    if (std::any_of(out_.sizes.begin(), out_.sizes.end(),
          [&](const auto& one) { return one.first == extra.name; }))
      return;
    out_.sizes.emplace_back(extra.name, extra.size);
    axis added;
    added.name = extra.name;
    added.kind = axis_kind::expression;
    added.expression = extra.expression;
    out_.target.def.axes.push_back(std::move(added));
    out_.graph.axes.emplace_back(extra.name, extra.traced);
    if (!out_.graph.axes_again.empty())
      out_.graph.axes_again.emplace_back(extra.name, extra.traced_again);
  }

  result<void> add_outputs() {
    std::vector<int64_t> roots = cut_.roots;
    // Outputs of the whole problem in its order, then the others.
    std::stable_sort(roots.begin(), roots.end(), [&](int64_t a, int64_t b) {
      return program_.output_of(a).value_or(SIZE_MAX) < program_.output_of(b).value_or(SIZE_MAX);
    });
    for (int64_t id : roots) {
      const auto output = program_.output_of(id);
      const std::string name =
        output ? program_.target().def.outputs[*output].name : fresh("r", out_.outputs.size());
      auto spec = spec_of(name, id);
      if (!spec)
        return pass(spec);
      if (output && program_.target().def.outputs[*output].type != spec->type)
        return fail(errc::unsupported,
          fmt::format("output '{}' is declared {} but traced as {}", name,
            gristmill::name(program_.target().def.outputs[*output].type),
            program_.value(id).dtype));
      out_.target.def.outputs.push_back(std::move(*spec));
      out_.outputs.push_back({name, id, program_.sizes(id)});
      out_.graph.outputs.push_back(id);
    }
    return {};
  }

  void add_nodes() {
    // Constants and scalars first, then the results; an output of a node that nothing reads is
    // still listed.
    const auto add = [&](int64_t id) {
      if (known_.insert(id).second)
        out_.graph.values.push_back(program_.value(id));
    };
    for (size_t index : cut_.nodes) {
      for (int64_t id : operands_of(program_.node(index))) {
        if (!program_.producer(id))
          add(id);
      }
    }
    for (size_t index : cut_.nodes) {
      for (int64_t id : program_.node(index).outputs)
        add(id);
      out_.graph.nodes.push_back(program_.node(index));
    }
  }

  /// Sizes that only stand inside become axes where their traced number means nothing else yet.
  void add_inner_axes() {
    for (const auto& value : out_.graph.values) {
      for (const auto& size : program_.sizes(value.id)) {
        const auto found = program_.extra_axes().find(size.plan_text());
        if (found == program_.extra_axes().end())
          continue;
        const bool is_taken = std::any_of(out_.graph.axes.begin(), out_.graph.axes.end(),
          [&](const auto& one) { return one.second == found->second.traced; });
        if (!is_taken)
          need(size);
      }
    }
  }

  void add_workloads() {
    for (workload work : program_.target().workloads) {
      std::erase_if(work.inputs, [&](const input_spec& input) {
        return input.kind != input_kind::scalar
          || std::none_of(scalars_.begin(), scalars_.end(),
            [&](const tensor_spec& spec) { return spec.name == input.name; });
      });
      out_.target.workloads.push_back(std::move(work));
    }
  }

  const program_graph& program_;
  const stage_cut& cut_;
  std::set<std::string> taken_;
  std::set<int64_t> known_;
  std::vector<tensor_spec> scalars_;
  sub_problem out_;
};

} // namespace

stage_cut cut_stage(
  const program_graph& program, const std::vector<int64_t>& roots, const value_set& materialised) {
  return cutter(program, roots, materialised).run();
}

result<sub_problem> make_sub_problem(const program_graph& program, const stage_cut& cut) {
  return sub_problem_writer(program, cut).run();
}

} // namespace gristmill
