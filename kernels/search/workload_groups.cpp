#include "kernels/search/workload_groups.hpp"

#include "kernels/plan_text.hpp"
#include "protocol/shrink.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace gristmill {

namespace {

/// More workloads than this are not separated by products of two axes: too many to try each time.
constexpr size_t workloads_for_pairs_max = 48;
/// A group more must bring 0.2 %, in logarithms.
constexpr double price_of_group = 0.002;
/// Beyond it a plan's condition would become long and the choice arbitrary.
constexpr size_t axes_max = 8;

/// A value that conditions can ask for: an axis or a product of axes.
struct feature {
  std::string text;
  std::vector<int64_t> values;
  std::vector<int64_t> twin_values;
};

std::vector<std::string> differing_axes(
  const problem& target, const std::vector<axis_values>& resolved) {
  std::vector<std::string> names;
  for (const axis& each : target.def.axes) {
    std::set<int64_t> values;
    for (const axis_values& axes : resolved) {
      if (const int64_t* value = find_axis_value(axes, each.name))
        values.insert(*value);
    }
    // Axes with other values are separated as well by those that they are computed from.
    if (values.size() > 1 && each.kind != axis_kind::expression)
      names.push_back(each.name);
  }
  return names;
}

axis_values only(const axis_values& axes, const std::vector<std::string>& names) {
  axis_values out;
  for (const std::string& name : names) {
    if (const int64_t* value = find_axis_value(axes, name))
      out.emplace_back(name, *value);
  }
  return out;
}

/// The product of some axes, for every workload; nothing when one lacks an axis or is too large.
std::optional<feature> product_of(
  const std::vector<search_workload>& workloads, const std::vector<std::string>& names) {
  feature out;
  for (const std::string& name : names)
    out.text += (out.text.empty() ? "" : " * ") + qualified_name("axis", name);
  const auto value_at = [&](const axis_values& axes) -> std::optional<int64_t> {
    int64_t product = 1;
    for (const std::string& name : names) {
      const int64_t* value = find_axis_value(axes, name);
      if (value == nullptr || __builtin_mul_overflow(product, *value, &product))
        return std::nullopt;
    }
    return product;
  };
  for (const search_workload& one : workloads) {
    const auto full = value_at(one.axes);
    const auto twin = value_at(one.twin_axes);
    if (!full || !twin)
      return std::nullopt;
    out.values.push_back(*full);
    out.twin_values.push_back(*twin);
  }
  return out;
}

std::vector<feature> features_of(const std::vector<search_workload>& workloads) {
  std::vector<std::string> names;
  for (const auto& [name, value] : workloads.front().axes)
    names.push_back(name);
  names.resize(std::min(names.size(), axes_max));
  std::vector<std::vector<std::string>> choices;
  for (const std::string& name : names)
    choices.push_back({name});
  if (names.size() > 1)
    choices.push_back(names);
  if (names.size() > 2 && workloads.size() <= workloads_for_pairs_max) {
    for (size_t a = 0; a < names.size(); ++a) {
      for (size_t b = a + 1; b < names.size(); ++b)
        choices.push_back({names[a], names[b]});
    }
  }
  std::vector<feature> out;
  for (const auto& choice : choices) {
    if (auto one = product_of(workloads, choice))
      out.push_back(std::move(*one));
  }
  return out;
}

/// Sums of logarithms of the times, choice by choice, over workloads in an order.
class cost_table {
public:
  cost_table(const std::vector<std::vector<double>>& logs, const std::vector<size_t>& order) {
    for (const auto& row : logs) {
      std::vector<double> sums{0};
      for (size_t place : order)
        sums.push_back(sums.back() + row[place]);
      sums_.push_back(std::move(sums));
    }
  }

  /// The best choice for the places [from, to) of the order, and what it costs.
  std::pair<size_t, double> best(size_t from, size_t to) const {
    std::pair<size_t, double> out{0, std::numeric_limits<double>::infinity()};
    for (size_t choice = 0; choice < sums_.size(); ++choice) {
      const double cost = sums_[choice][to] - sums_[choice][from];
      if (cost < out.second)
        out = {choice, cost};
    }
    return out;
  }

private:
  std::vector<std::vector<double>> sums_;
};

/// The choices that are best for some workload or over all: the others are in no grouping.
std::vector<size_t> worth_looking_at(const std::vector<std::vector<double>>& logs) {
  std::set<size_t> out;
  const size_t workloads = logs.front().size();
  const auto cheapest = [&](auto cost) {
    size_t best = 0;
    for (size_t choice = 1; choice < logs.size(); ++choice) {
      if (cost(choice) < cost(best))
        best = choice;
    }
    out.insert(best);
  };
  for (size_t w = 0; w < workloads; ++w)
    cheapest([&](size_t choice) { return logs[choice][w]; });
  std::vector<double> sums;
  for (const auto& row : logs) {
    double sum = 0;
    for (double value : row)
      sum += value;
    sums.push_back(sum);
  }
  // Those that are good everywhere serve groups for which nobody's favourite does.
  std::vector<size_t> by_sum(logs.size());
  for (size_t i = 0; i < by_sum.size(); ++i)
    by_sum[i] = i;
  std::stable_sort(
    by_sum.begin(), by_sum.end(), [&](size_t a, size_t b) { return sums[a] < sums[b]; });
  by_sum.resize(std::min<size_t>(by_sum.size(), 8));
  out.insert(by_sum.begin(), by_sum.end());
  return {out.begin(), out.end()};
}

struct segment {
  size_t from = 0;
  size_t to = 0;
  size_t choice = 0;
};

/// The cheapest segments of a feature's order; `price` is theirs, groups included.
struct segmentation {
  std::vector<segment> segments;
  double price = std::numeric_limits<double>::infinity();
};

segmentation cut(const feature& along, const std::vector<size_t>& order,
  const std::vector<std::vector<double>>& logs, size_t groups_max) {
  const size_t count = order.size();
  const cost_table costs(logs, order);
  const auto value = [&](size_t place) { return along.values[order[place]]; };
  // Places where a cut may be: between different values, with every workload on the same side as
  // its twin. The bound is the value before the cut, so that twins have most room above it.
  std::vector<size_t> cuts{0};
  for (size_t place = 1; place < count; ++place) {
    const int64_t bound = value(place - 1);
    const bool together = std::all_of(order.begin(), order.end(),
      [&](size_t w) { return (along.values[w] <= bound) == (along.twin_values[w] <= bound); });
    if (value(place) != bound && together)
      cuts.push_back(place);
  }
  cuts.push_back(count);
  // cheapest[g][i]: the first cuts[i] workloads in exactly g groups.
  const double never = std::numeric_limits<double>::infinity();
  const double weight = static_cast<double>(count);
  std::vector<std::vector<double>> cheapest(
    groups_max + 1, std::vector<double>(cuts.size(), never));
  std::vector<std::vector<size_t>> from(groups_max + 1, std::vector<size_t>(cuts.size(), 0));
  std::vector<std::vector<size_t>> with(groups_max + 1, std::vector<size_t>(cuts.size(), 0));
  cheapest[0][0] = 0;
  for (size_t end = 1; end < cuts.size(); ++end) {
    for (size_t begin = 0; begin < end; ++begin) {
      const auto [choice, cost] = costs.best(cuts[begin], cuts[end]);
      for (size_t g = 1; g <= groups_max; ++g) {
        const double total = cheapest[g - 1][begin] + cost + price_of_group * weight;
        if (total < cheapest[g][end]) {
          cheapest[g][end] = total;
          from[g][end] = begin;
          with[g][end] = choice;
        }
      }
    }
  }
  segmentation out;
  size_t groups = 1;
  for (size_t g = 1; g <= groups_max; ++g) {
    if (cheapest[g].back() < cheapest[groups].back())
      groups = g;
  }
  out.price = cheapest[groups].back();
  for (size_t g = groups, end = cuts.size() - 1; g > 0; --g) {
    const size_t begin = from[g][end];
    out.segments.push_back({cuts[begin], cuts[end], with[g][end]});
    end = begin;
  }
  std::reverse(out.segments.begin(), out.segments.end());
  return out;
}

} // namespace

std::vector<search_workload> search_workloads(const problem& target, uint64_t check_elements_max) {
  std::vector<axis_values> resolved;
  std::vector<axis_values> twins;
  std::vector<search_workload> out;
  bool all_resolve = true;
  for (const workload& work : target.workloads) {
    search_workload one;
    one.uuid = work.uuid;
    auto axes = resolve_axes(target.def, work.axes);
    auto twin = check_elements_max == 0 ? axes : shrink_axes(target.def, work, check_elements_max);
    if (axes) {
      if (auto elements = workload_elements(target.def, *axes))
        one.elements = *elements;
    }
    all_resolve = all_resolve && axes && twin;
    resolved.push_back(axes ? std::move(*axes) : axis_values{});
    twins.push_back(twin ? std::move(*twin) : axis_values{});
    out.push_back(std::move(one));
  }
  if (!all_resolve)
    return out; // Without axes nothing is separated, and the trials tell what is wrong.
  const auto names = differing_axes(target, resolved);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].axes = only(resolved[i], names);
    out[i].twin_axes = only(twins[i], names);
  }
  return out;
}

std::vector<size_t> probe_workloads(const std::vector<search_workload>& workloads) {
  constexpr size_t worth_a_probe = 8;
  constexpr size_t worth_three = 12;
  if (workloads.size() < worth_a_probe)
    return {};
  std::vector<size_t> order(workloads.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::stable_sort(order.begin(), order.end(),
    [&](size_t a, size_t b) { return workloads[a].elements < workloads[b].elements; });
  // Not the very smallest: those are often there for their odd shape alone.
  std::set<size_t> out{order[order.size() / 4], order.back()};
  if (workloads.size() >= worth_three)
    out.insert(order[order.size() * 5 / 8]);
  return {out.begin(), out.end()};
}

std::optional<workload_grouping> best_grouping(const std::vector<search_workload>& workloads,
  const std::vector<std::vector<double>>& times, size_t groups_max) {
  if (workloads.empty() || times.empty() || groups_max == 0)
    return std::nullopt;
  std::vector<std::vector<double>> all_logs;
  for (const auto& row : times) {
    std::vector<double> logs;
    for (double value : row)
      logs.push_back(std::log(value));
    all_logs.push_back(std::move(logs));
  }
  const std::vector<size_t> kept = worth_looking_at(all_logs);
  std::vector<std::vector<double>> logs;
  for (size_t choice : kept)
    logs.push_back(all_logs[choice]);
  // One group for all is always possible: a feature that is the same everywhere.
  std::vector<feature> features = features_of(workloads);
  features.insert(features.begin(),
    {"", std::vector<int64_t>(workloads.size(), 0), std::vector<int64_t>(workloads.size(), 0)});
  std::vector<size_t> order(workloads.size());
  segmentation best;
  const feature* along = nullptr;
  std::vector<size_t> best_order;
  for (const feature& one : features) {
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    std::stable_sort(order.begin(), order.end(),
      [&](size_t a, size_t b) { return one.values[a] < one.values[b]; });
    segmentation cuts = cut(one, order, logs, groups_max);
    // A simpler condition wins a tie, also one that only rounding makes.
    if (along == nullptr || cuts.price < best.price - 1e-9) {
      best = std::move(cuts);
      along = &one;
      best_order = order;
    }
  }
  workload_grouping out;
  for (const segment& part : best.segments) {
    workload_group group;
    const bool is_last = part.to == best_order.size();
    group.condition = is_last
      ? "true"
      : fmt::format("{} <= {}", along->text, along->values[best_order[part.to - 1]]);
    group.choice = kept[part.choice];
    for (size_t place = part.from; place < part.to; ++place) {
      group.workloads.push_back(best_order[place]);
      out.log_mean += logs[part.choice][best_order[place]];
    }
    std::sort(group.workloads.begin(), group.workloads.end());
    out.groups.push_back(std::move(group));
  }
  out.log_mean /= static_cast<double>(workloads.size());
  return out;
}

} // namespace gristmill
