#include "kernels/families/size_formulas.hpp"

#include "kernels/lowering/symbolic_shape.hpp"
#include "kernels/plan_text.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

namespace gristmill {

size_pair operator*(size_pair a, size_pair b) {
  return {a.first * b.first, a.second * b.second};
}

size_pair operator+(size_pair a, size_pair b) {
  return {a.first + b.first, a.second + b.second};
}

size_pair operator-(size_pair a, size_pair b) {
  return {a.first - b.first, a.second - b.second};
}

std::vector<size_pair> traced_shape(const graph_value& value) {
  std::vector<size_pair> sizes;
  for (size_t i = 0; i < value.shape.size(); ++i) {
    const bool has_second = value.shape_again.size() == value.shape.size();
    sizes.push_back({value.shape[i], has_second ? value.shape_again[i] : value.shape[i]});
  }
  return sizes;
}

result<size_formulas> size_formulas::make(const problem& target, const op_graph& graph) {
  size_formulas made;
  made.has_second_ = !graph.axes_again.empty();
  for (const auto& [name, first] : graph.axes) {
    const axis* known = target.def.find_axis(name);
    if (known == nullptr)
      continue;
    size_pair size{first, first};
    for (const auto& [other, second] : graph.axes_again) {
      if (other == name)
        size.second = second;
    }
    const bool is_constant = known->kind == axis_kind::constant;
    if (is_constant && size != size_pair{known->value, known->value})
      return fail(errc::unsupported,
        fmt::format("the trace has another size for the constant axis '{}'", name));
    for (const workload& work : target.workloads) {
      const int64_t* given = find_axis_value(work.axes, name);
      if (is_constant && given != nullptr && *given != known->value)
        return fail(errc::unsupported,
          fmt::format("workload {} gives the constant axis '{}' another value", work.uuid, name));
    }
    made.axes_.push_back({qualified_name("axis", name), size, is_constant});
  }
  // Axes that the user named come before those that are computed from them.
  std::stable_partition(made.axes_.begin(), made.axes_.end(), [&](const known_axis& one) {
    return std::any_of(target.def.axes.begin(), target.def.axes.end(), [&](const axis& of) {
      return of.kind == axis_kind::variable && qualified_name("axis", of.name) == one.text;
    });
  });
  const auto shapes = infer_shapes(graph, target);
  if (shapes) {
    for (const auto& value : graph.values) {
      const auto found = shapes->of.find(value.id);
      if (found == shapes->of.end())
        continue;
      const auto traced = traced_shape(value);
      for (size_t i = 0; i < traced.size() && i < found->second.size(); ++i) {
        std::string formula = found->second[i].plan_factor();
        if (const auto name = found->second[i].as_axis()) {
          const axis* of = target.def.find_axis(*name);
          if (of != nullptr && of->kind == axis_kind::constant)
            formula = fmt::format("{}", of->value);
        }
        const auto [known, is_new] = made.known_.try_emplace(traced[i], formula);
        if (!is_new && known->second != formula)
          known->second.clear();
      }
    }
  }
  return made;
}

std::optional<std::string> size_formulas::text(size_pair size) const {
  if (size.first < 0 || size.second < 0)
    return std::nullopt;
  if (has_second_ && size.first == size.second)
    return fmt::format("{}", size.first);
  if (size == size_pair{1, 1} || size == size_pair{0, 0})
    return fmt::format("{}", size.first);
  if (const auto found = known_.find(size); found != known_.end() && !found->second.empty())
    return found->second;
  return searched(size);
}

std::optional<std::string> size_formulas::searched(size_pair size) const {
  const auto varies = [](const known_axis& one) { return one.size.first != one.size.second; };
  for (const known_axis& one : axes_) {
    if (!one.is_constant && one.size == size)
      return one.text;
  }
  if (!has_second_) {
    // Without a second trace a number that no variable axis divides is a constant.
    for (const known_axis& one : axes_) {
      if (!one.is_constant && one.size.first >= 2 && size.first % one.size.first == 0)
        return fmt::format("({} * {})", one.text, size.first / one.size.first);
    }
    return fmt::format("{}", size.first);
  }
  const auto multiple = [&](size_pair of) -> std::optional<int64_t> {
    if (of.first < 1 || of.second < 1 || size.first % of.first != 0 || size.second % of.second != 0
      || size.first / of.first != size.second / of.second)
      return std::nullopt;
    return size.first / of.first;
  };
  // Products first; of sums only one that is alone counts, for small numbers are easily explained.
  for (const known_axis& one : axes_) {
    if (const auto factor = varies(one) ? multiple(one.size) : std::nullopt)
      return fmt::format("({} * {})", one.text, *factor);
  }
  for (size_t i = 0; i < axes_.size(); ++i) {
    for (size_t j = i; j < axes_.size(); ++j) {
      if (!varies(axes_[i]) || !varies(axes_[j]))
        continue;
      if (const auto factor = multiple(axes_[i].size * axes_[j].size))
        return fmt::format("({} * {} * {})", axes_[i].text, axes_[j].text, *factor);
      for (size_t k = j; k < axes_.size(); ++k) {
        if (!varies(axes_[k]))
          continue;
        if (const auto factor = multiple(axes_[i].size * axes_[j].size * axes_[k].size))
          return fmt::format(
            "({} * {} * {} * {})", axes_[i].text, axes_[j].text, axes_[k].text, *factor);
      }
    }
  }
  std::set<std::string> found;
  for (const known_axis& one : axes_) {
    if (!varies(one))
      continue;
    const size_pair more = size - one.size;
    if (more.first == more.second)
      found.insert(more.first > 0 ? fmt::format("({} + {})", one.text, more.first)
                                  : fmt::format("({} - {})", one.text, -more.first));
    for (int64_t divisor : {2, 3, 4, 8, 16}) {
      const size_pair half{one.size.first / divisor, one.size.second / divisor};
      if (half == size)
        found.insert(fmt::format("({} // {})", one.text, divisor));
      if (size_pair{one.size.first - half.first, one.size.second - half.second} == size
        && half != size)
        found.insert(fmt::format("({0} - {0} // {1})", one.text, divisor));
    }
    for (const known_axis& other : axes_) {
      if (!varies(other) || &other == &one)
        continue;
      if (&one < &other && one.size + other.size == size)
        found.insert(fmt::format("({} + {})", one.text, other.text));
      if (one.size - other.size == size)
        found.insert(fmt::format("({} - {})", one.text, other.text));
    }
  }
  if (found.size() != 1)
    return std::nullopt;
  return *found.begin();
}

std::optional<std::string> size_formulas::axis_of(int64_t first) const {
  std::optional<std::string> found;
  for (const known_axis& one : axes_) {
    if (one.size.first != first || one.is_constant)
      continue;
    if (found)
      return std::nullopt;
    found = one.text;
  }
  return found;
}

std::optional<std::string> size_formulas::number_of(
  double number, std::optional<double> again) const {
  struct form {
    double (*of)(double size);
    const char* text;
  };
  static constexpr form forms[] = {{[](double size) { return size; }, "float({})"},
    {[](double size) { return 1 / size; }, "1.0 / float({})"},
    {[](double size) { return std::sqrt(size); }, "sqrt(float({}))"},
    {[](double size) { return 1 / std::sqrt(size); }, "1.0 / sqrt(float({}))"},
    {[](double size) { return std::pow(size, -0.5); }, "1.0 / sqrt(float({}))"}};
  for (const known_axis& one : axes_) {
    if (one.is_constant || one.size.first < 2)
      continue;
    for (const form& way : forms) {
      if (way.of(static_cast<double>(one.size.first)) == number
        && (!again || way.of(static_cast<double>(one.size.second)) == *again))
        return fmt::format(fmt::runtime(way.text), one.text);
    }
  }
  return std::nullopt;
}

} // namespace gristmill
