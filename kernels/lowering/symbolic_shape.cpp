#include "kernels/lowering/symbolic_shape.hpp"

#include "kernels/lowering/size_rules.hpp"
#include "protocol/definition.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <utility>

namespace gristmill {

namespace {

/// Largest factor and largest difference that a guessed formula may have.
constexpr int64_t factor_max = 256;
constexpr int64_t difference_max = 64;

class shape_inference {
public:
  shape_inference(const op_graph& graph, const problem& target) : graph_(graph), target_(target) {}

  result<symbolic_shapes> run() {
    if (auto read = read_axes(); !read)
      return pass(read);
    for (const auto& value : graph_.values)
      values_[value.id] = &value;
    for (const auto& value : graph_.values) {
      if (value.source == graph_source::computed)
        continue;
      if (auto added = add_leaf(value); !added)
        return pass(added);
    }
    for (const auto& node : graph_.nodes) {
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (auto added = add_output(node, i); !added)
          return pass(added);
      }
    }
    if (auto checked = check_outputs(); !checked)
      return pass(checked);
    symbolic_shapes out;
    for (auto& [id, sized] : sized_)
      out.of[id] = std::move(sized.sizes);
    out.conditions = std::move(conditions_);
    return out;
  }

private:
  result<void> read_axes() {
    first_ = graph_.axes;
    again_ = graph_.axes_again.empty() ? graph_.axes : graph_.axes_again;
    for (const axis& one : target_.def.axes) {
      const int64_t* a = find_axis_value(first_, one.name);
      const int64_t* b = find_axis_value(again_, one.name);
      if (a != nullptr && b != nullptr)
        axes_.push_back({one.name, {*a, *b}, one.kind == axis_kind::constant});
    }
    for (const workload& work : target_.workloads) {
      auto resolved = resolve_axes(target_.def, work.axes);
      if (!resolved)
        return pass(resolved);
      workloads_.push_back(std::move(*resolved));
    }
    for (const auto& one : axes_)
      if (const auto at = numbers_of(symbolic_size::axis(one.name)))
        known_.emplace(*at, symbolic_size::axis(one.name));
    return {};
  }

  std::vector<traced_size> traced(const graph_value& value) const {
    std::vector<traced_size> out;
    const bool has_second = value.shape_again.size() == value.shape.size();
    for (size_t i = 0; i < value.shape.size(); ++i)
      out.push_back({value.shape[i], has_second ? value.shape_again[i] : value.shape[i]});
    return out;
  }

  result<void> add_leaf(const graph_value& value) {
    sized_value sized;
    sized.traced = traced(value);
    if (value.source == graph_source::input) {
      const tensor_spec* spec = target_.def.find_input(value.name);
      if (spec == nullptr || spec->is_scalar || spec->shape.size() != value.shape.size())
        return fail(errc::invalid_input,
          fmt::format("the graph's input '{}' is no such tensor of the definition", value.name));
      sized.sizes = declared(*spec);
    } else {
      for (int64_t size : value.shape)
        sized.sizes.push_back(symbolic_size::number(size));
    }
    sized_[value.id] = std::move(sized);
    return {};
  }

  static std::vector<symbolic_size> declared(const tensor_spec& spec) {
    std::vector<symbolic_size> out;
    for (const std::string& label : spec.shape) {
      const bool is_literal = label.find_first_not_of("0123456789") == std::string::npos;
      // What does not fit is refused where the shape is resolved.
      out.push_back(is_literal && label.size() < 19 ? symbolic_size::number(std::stoll(label))
                                                    : symbolic_size::axis(label));
    }
    return out;
  }

  result<void> add_output(const graph_node& node, size_t output) {
    const graph_value& value = *values_.at(node.outputs[output]);
    sized_value sized;
    sized.traced = traced(value);
    size_question question{node, output, sized.traced,
      [this](int64_t id) -> const sized_value* {
        const auto found = sized_.find(id);
        return found == sized_.end() ? nullptr : &found->second;
      },
      [this](traced_size size) { return guess(size); }};
    std::vector<std::optional<symbolic_size>> claims;
    try {
      claims = sizes_by_rule(question);
    } catch (const no_template& refused) {
      return fail(errc::unsupported, fmt::format("operator '{}': {}", node.op, refused.reason));
    }
    claims.resize(sized.traced.size());
    for (size_t i = 0; i < claims.size(); ++i) {
      auto& claim = claims[i];
      if (claim && !explains(*claim, sized.traced[i]))
        claim.reset();
      if (!claim)
        claim = from_operands(node, sized.traced, i);
      if (!claim)
        claim = guess(sized.traced[i]);
      if (!claim)
        return fail(errc::unsupported,
          fmt::format("no formula over the axes explains dimension {} of value {} (size {} in the "
                      "trace), which operator '{}' makes",
            i, value.id, sized.traced[i].first, node.op));
      sized.sizes.push_back(canonical(*claim));
    }
    sized_[value.id] = std::move(sized);
    return {};
  }

  bool explains(const symbolic_size& size, const traced_size& seen) const {
    const auto a = size.value_at(first_);
    if (!a || *a != seen.first)
      return false;
    const auto b = size.value_at(again_);
    return b && *b == seen.again;
  }

  /// The same dimension of an operand, counted from the end as broadcasting does, else any.
  std::optional<symbolic_size> from_operands(
    const graph_node& node, const std::vector<traced_size>& traced, size_t dim) const {
    std::vector<const sized_value*> operands;
    const auto add = [&](int64_t id) {
      if (const auto found = sized_.find(id); found != sized_.end())
        operands.push_back(&found->second);
    };
    for (const auto& operand : node.inputs) {
      if (operand.kind == operand_kind::value)
        add(operand.value);
      for (int64_t id :
        operand.kind == operand_kind::values ? operand.list : std::vector<int64_t>{})
        add(id);
    }
    if (traced[dim] == traced_size{1, 1})
      return symbolic_size::number(1);
    const size_t from_end = traced.size() - dim;
    for (const sized_value* operand : operands) {
      const size_t count = operand->sizes.size();
      if (count >= from_end && operand->traced[count - from_end] == traced[dim])
        return operand->sizes[count - from_end];
    }
    for (const sized_value* operand : operands) {
      for (size_t i = 0; i < operand->sizes.size(); ++i) {
        if (operand->traced[i] == traced[dim])
          return operand->sizes[i];
      }
    }
    return std::nullopt;
  }

  /// The simplest formula that gives the traced size: an axis, a number, a multiple of an axis, a
  /// product of axes, an axis and a few more or less, half an axis.
  std::optional<symbolic_size> guess(traced_size size) {
    const auto key = std::make_pair(size.first, size.again);
    if (const auto found = guesses_.find(key); found != guesses_.end())
      return found->second;
    auto& out = guesses_[key];
    try {
      out = searched(size);
    } catch (const no_template&) {
      out = std::nullopt;
    }
    return out;
  }

  std::optional<symbolic_size> searched(const traced_size& size) const {
    using formula = symbolic_size;
    if (size.first <= 1 && size.first == size.again)
      return formula::number(size.first);
    for (const bool constants : {false, true}) {
      for (const auto& one : axes_) {
        if (one.is_constant == constants && one.traced == size)
          return formula::axis(one.name);
      }
    }
    const bool has_second = !graph_.axes_again.empty();
    if (has_second && size.first == size.again)
      return formula::number(size.first);
    // Without a second trace a number may stand for itself; it does where no variable axis has a
    // part in it.
    for (const auto& one : axes_) {
      for (const auto& other : axes_) {
        if (is_product(size, one.traced, other.traced) && !(one.is_constant && other.is_constant))
          return formula::axis(one.name) * formula::axis(other.name);
      }
    }
    for (const auto& one : axes_) {
      if (one.is_constant || one.traced.first <= 1 || size.first % one.traced.first != 0)
        continue;
      const int64_t factor = size.first / one.traced.first;
      if (factor <= factor_max && one.traced.again * factor == size.again)
        return formula::axis(one.name) * formula::number(factor);
    }
    for (const auto& one : axes_) {
      for (const auto& other : axes_) {
        for (const auto& third : axes_) {
          const traced_size part{
            one.traced.first * other.traced.first, one.traced.again * other.traced.again};
          if (is_product(size, part, third.traced)
            && !(one.is_constant && other.is_constant && third.is_constant))
            return formula::axis(one.name) * formula::axis(other.name) * formula::axis(third.name);
        }
      }
    }
    if (!has_second)
      return formula::number(size.first);
    for (const auto& one : axes_) {
      const int64_t more = size.first - one.traced.first;
      if (!one.is_constant && more == size.again - one.traced.again && more >= -difference_max
        && more <= difference_max)
        return formula::axis(one.name) + formula::number(more);
    }
    for (const auto& one : axes_) {
      for (int64_t by : {2, 4, 8, 16, 32, 64, 128, 3, 5, 6, 7}) {
        for (int64_t up : {int64_t{0}, by - 1}) {
          if (!one.is_constant && (one.traced.first + up) / by == size.first
            && (one.traced.again + up) / by == size.again)
            return (formula::axis(one.name) + formula::number(up)).quotient(by);
        }
      }
    }
    for (const auto& one : axes_) {
      for (const auto& other : axes_) {
        if (one.traced.first + other.traced.first == size.first
          && one.traced.again + other.traced.again == size.again)
          return formula::axis(one.name) + formula::axis(other.name);
        if (one.traced.first - other.traced.first == size.first
          && one.traced.again - other.traced.again == size.again)
          return formula::axis(one.name) - formula::axis(other.name);
      }
    }
    return std::nullopt;
  }

  static bool is_product(const traced_size& size, const traced_size& a, const traced_size& b) {
    return a.first > 1 && b.first > 1 && a.first * b.first == size.first
      && a.again * b.again == size.again;
  }

  /// The values of a formula in both traces and in every workload; nothing when it has none there,
  /// or when that is too little to call two formulas equal.
  std::optional<std::vector<int64_t>> numbers_of(const symbolic_size& size) const {
    if (graph_.axes_again.empty() && workloads_.empty())
      return std::nullopt;
    std::vector<int64_t> out;
    const auto add = [&](const axis_values& axes) {
      const auto value = size.value_at(axes);
      if (value)
        out.push_back(*value);
      return value.has_value();
    };
    if (!add(first_) || !add(again_))
      return std::nullopt;
    for (const auto& axes : workloads_) {
      if (!add(axes))
        return std::nullopt;
    }
    return out;
  }

  /// One formula for all that come to the same numbers everywhere.
  symbolic_size canonical(const symbolic_size& size) {
    if (size.as_number() || size.as_axis())
      return size;
    const auto text = size.plan_text();
    if (const auto found = canonical_.find(text); found != canonical_.end())
      return found->second;
    symbolic_size out = size;
    if (const auto numbers = numbers_of(size)) {
      const auto [same, is_new] = known_.emplace(*numbers, size);
      if (!is_new) {
        out = same->second;
        conditions_.push_back(fmt::format("{} == {}", text, out.plan_text()));
      }
    }
    canonical_.emplace(text, out);
    return out;
  }

  result<void> check_outputs() const {
    if (graph_.outputs.size() != target_.def.outputs.size())
      return fail(errc::invalid_input,
        fmt::format("the graph has {} outputs and the definition {}", graph_.outputs.size(),
          target_.def.outputs.size()));
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const tensor_spec& spec = target_.def.outputs[i];
      const auto& sizes = sized_.at(graph_.outputs[i]).sizes;
      const auto wanted = spec.is_scalar ? std::vector<symbolic_size>{} : declared(spec);
      bool is_same = wanted.size() == sizes.size();
      for (size_t d = 0; is_same && d < sizes.size(); ++d) {
        for (const auto& axes : workloads_) {
          const auto a = sizes[d].value_at(axes);
          const auto b = wanted[d].value_at(axes);
          is_same = is_same && a && b && *a == *b;
        }
      }
      if (!is_same)
        return fail(errc::invalid_input,
          fmt::format("output '{}' comes from operators with another shape than it is declared: {}",
            spec.name, shape_words(sizes)));
    }
    return {};
  }

  static std::string shape_words(const std::vector<symbolic_size>& sizes) {
    std::string text;
    for (const auto& size : sizes)
      text += (text.empty() ? "" : ", ") + size.plan_text();
    return "[" + text + "]";
  }

  struct traced_axis {
    std::string name;
    traced_size traced;
    bool is_constant = false;
  };

  const op_graph& graph_;
  const problem& target_;
  axis_values first_;
  axis_values again_;
  std::vector<traced_axis> axes_;
  std::vector<axis_values> workloads_;
  std::unordered_map<int64_t, const graph_value*> values_;
  std::unordered_map<int64_t, sized_value> sized_;
  std::map<std::pair<int64_t, int64_t>, std::optional<symbolic_size>> guesses_;
  std::map<std::vector<int64_t>, symbolic_size> known_;
  std::map<std::string, symbolic_size> canonical_;
  std::vector<std::string> conditions_;
};

} // namespace

result<symbolic_shapes> infer_shapes(const op_graph& graph, const problem& target) {
  try {
    return shape_inference(graph, target).run();
  } catch (const no_template& refused) {
    return fail(errc::unsupported, refused.reason);
  }
}

} // namespace gristmill
