#include "kernels/lowering/program_space.hpp"

#include "kernels/graph_work.hpp"
#include "kernels/lowering/linker.hpp"
#include "kernels/lowering/partition.hpp"
#include "kernels/lowering/program_graph.hpp"
#include "kernels/lowering/stage_library.hpp"
#include "kernels/splitmix64.hpp"
#include "tensors/dtype.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <numeric>
#include <set>

namespace gristmill {

namespace {

constexpr uint64_t too_many = std::numeric_limits<uint64_t>::max();

uint64_t saturating_product(uint64_t a, uint64_t b) {
  uint64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? too_many : out;
}

uint64_t saturating_sum(uint64_t a, uint64_t b) {
  uint64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? too_many : out;
}

/// Point of one stage as family and point of that family.
struct located_point {
  size_t space = 0;
  size_t point = 0;
};

located_point locate(const read_stage& stage, size_t point) {
  located_point out{0, point};
  while (out.space + 1 < stage.spaces.size() && out.point >= stage.spaces[out.space]->size())
    out.point -= stage.spaces[out.space++]->size();
  return out;
}

size_t number_of(const read_stage& stage, size_t space, size_t point) {
  for (size_t i = 0; i < space; ++i)
    point += stage.spaces[i]->size();
  return point;
}

std::string stage_key(const read_stage& stage, size_t point) {
  const auto at = locate(stage, point);
  return stage.spaces[at.space]->key(at.point);
}

} // namespace

struct program_space::parts {
  problem target;
  op_graph graph;
  std::unique_ptr<const program_graph> program;
  std::vector<partition> partitions;
  std::vector<std::vector<double>> shares;

  const read_stage& stage(size_t partition_index, size_t stage_index) const {
    return *partitions[partition_index].stages[stage_index];
  }

  uint64_t size(size_t partition_index) const {
    uint64_t count = 1;
    for (const auto& one : partitions[partition_index].stages)
      count = saturating_product(count, one->points());
    return count;
  }

  /// The one stage is the problem itself: its candidate is the program's.
  bool is_whole(size_t partition_index) const {
    const auto& stages = partitions[partition_index].stages;
    return stages.size() == 1 && stages.front()->sub.graph == graph;
  }

  program_code code_of(const program_point& point, std::string when) const {
    program_code out;
    out.when = std::move(when);
    for (size_t i = 0; i < point.stages.size(); ++i) {
      const read_stage& one = stage(point.partition, i);
      const auto at = locate(one, point.stages[i]);
      out.stages.push_back({&one.sub, one.spaces[at.space]->generate(at.point)});
    }
    return out;
  }

  void estimate_shares();
};

/// Bytes and multiplications at the largest workload, as bytes: a multiplication costs what a part
/// of a byte does on a GPU with tensor cores for its type.
void program_space::parts::estimate_shares() {
  axis_values largest;
  uint64_t largest_elements = 0;
  for (const workload& work : target.workloads) {
    const auto axes = resolve_axes(target.def, work.axes);
    if (!axes)
      continue;
    uint64_t elements = 1;
    for (const auto* list : {&target.def.inputs, &target.def.outputs}) {
      for (const auto& spec : *list) {
        const auto shape = resolve_shape(spec, *axes);
        const auto count = shape ? element_count(*shape) : result<uint64_t>{0};
        elements = saturating_sum(elements, count ? *count : 0);
      }
    }
    if (elements > largest_elements) {
      largest_elements = elements;
      largest = *axes;
    }
  }
  for (const partition& one : partitions) {
    std::vector<double> costs;
    for (const auto& stage : one.stages) {
      double cost = 1;
      const auto axes = resolve_axes(stage->sub.target.def, largest);
      if (axes) {
        for (const auto* list : {&stage->sub.target.def.inputs, &stage->sub.target.def.outputs}) {
          for (const auto& spec : *list) {
            const auto shape = resolve_shape(spec, *axes);
            const auto bytes = shape ? storage_bytes(spec.type, *shape) : result<uint64_t>{0};
            cost += bytes ? static_cast<double>(*bytes) : 0;
          }
        }
        if (const auto work = count_graph(stage->sub.graph, stage->sub.target.def, *axes)) {
          for (uint64_t macs : work->macs)
            cost += static_cast<double>(macs) / 64;
        }
      }
      costs.push_back(cost);
    }
    const double sum = std::accumulate(costs.begin(), costs.end(), 0.0);
    for (double& cost : costs)
      cost /= sum;
    shares.push_back(std::move(costs));
  }
}

program_space::program_space(std::unique_ptr<const parts> made) : parts_(std::move(made)) {}
program_space::program_space(program_space&&) noexcept = default;
program_space& program_space::operator=(program_space&&) noexcept = default;
program_space::~program_space() = default;

result<program_space> program_space::make(const problem& target, const op_graph& graph) {
  auto made = std::make_unique<parts>();
  made->target = target;
  made->graph = graph;
  auto program = program_graph::make(made->target, made->graph);
  if (!program)
    return pass(program);
  made->program = std::move(*program);
  stage_library library(*made->program);
  auto cuts = partitions_of(*made->program, made->graph, library);
  if (!cuts)
    return pass(cuts);
  made->partitions = std::move(*cuts);
  made->estimate_shares();
  return program_space{std::move(made)};
}

size_t program_space::partitions() const {
  return parts_->partitions.size();
}

size_t program_space::stages(size_t partition) const {
  return parts_->partitions[partition].stages.size();
}

size_t program_space::points(size_t partition, size_t stage) const {
  return parts_->stage(partition, stage).points();
}

uint64_t program_space::size() const {
  uint64_t sum = 0;
  for (size_t i = 0; i < partitions(); ++i)
    sum = saturating_sum(sum, parts_->size(i));
  return sum;
}

program_point program_space::at(uint64_t index) const {
  program_point out;
  const uint64_t count = size();
  if (count == too_many) {
    // More programs than numbers: a number picks a partition and each point for itself.
    out.partition = index % partitions();
    uint64_t state = index;
    for (size_t i = 0; i < stages(out.partition); ++i) {
      state = splitmix64{state}.next();
      out.stages.push_back(state % points(out.partition, i));
    }
    return out;
  }
  // A stride that has no factor in common with the count visits every number once.
  uint64_t stride = count / 5 * 3 + 1;
  while (std::gcd(stride, count) != 1)
    ++stride;
  auto at = static_cast<uint64_t>(static_cast<unsigned __int128>(index) * stride % count);
  while (at >= parts_->size(out.partition))
    at -= parts_->size(out.partition++);
  for (size_t i = 0; i < stages(out.partition); ++i) {
    const uint64_t here = points(out.partition, i);
    out.stages.push_back(at % here);
    at /= here;
  }
  return out;
}

program_point program_space::first(size_t partition) const {
  program_point out{partition, {}};
  for (const auto& stage : parts_->partitions[partition].stages)
    out.stages.push_back(stage->spaces.front()->first());
  return out;
}

std::string program_space::key(const program_point& point) const {
  std::string key = point.partition == 0 ? "" : fmt::format("p{}:", point.partition);
  for (size_t i = 0; i < point.stages.size(); ++i)
    key += (i == 0 ? "" : "+") + stage_key(parts_->stage(point.partition, i), point.stages[i]);
  return key;
}

std::optional<program_point> program_space::find(std::string_view key) const {
  program_point out;
  if (key.starts_with('p') && key.find(':') != std::string_view::npos) {
    const std::string_view number = key.substr(1, key.find(':') - 1);
    if (number.empty() || number.size() > 3
      || number.find_first_not_of("0123456789") != std::string_view::npos)
      return std::nullopt;
    out.partition = static_cast<size_t>(std::stoul(std::string{number}));
    key.remove_prefix(number.size() + 2);
    if (out.partition == 0)
      return std::nullopt;
  }
  if (out.partition >= partitions())
    return std::nullopt;
  for (size_t i = 0; i < stages(out.partition); ++i) {
    const size_t end = key.find('+');
    const std::string_view wanted = key.substr(0, end);
    const read_stage& stage = parts_->stage(out.partition, i);
    std::optional<size_t> found;
    for (size_t p = 0; p < stage.points() && !found; ++p) {
      if (stage_key(stage, p) == wanted)
        found = p;
    }
    const bool is_last = i + 1 == stages(out.partition);
    if (!found || (end == std::string_view::npos) != is_last)
      return std::nullopt;
    out.stages.push_back(*found);
    key.remove_prefix(is_last ? key.size() : end + 1);
  }
  return out;
}

std::vector<program_point> program_space::neighbours(const program_point& point) const {
  const auto shares = work_shares(point.partition);
  std::vector<size_t> order(point.stages.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(
    order.begin(), order.end(), [&](size_t a, size_t b) { return shares[a] > shares[b]; });
  std::vector<program_point> out;
  const auto add = [&](size_t stage, size_t number) {
    program_point next = point;
    next.stages[stage] = number;
    out.push_back(std::move(next));
  };
  for (size_t stage : order) {
    const read_stage& one = parts_->stage(point.partition, stage);
    const auto at = locate(one, point.stages[stage]);
    for (size_t p = 0; p < one.spaces[at.space]->size(); ++p) {
      if (p != at.point && one.spaces[at.space]->distance(at.point, p) == 1)
        add(stage, number_of(one, at.space, p));
    }
  }
  for (size_t stage : order) {
    const read_stage& one = parts_->stage(point.partition, stage);
    const auto at = locate(one, point.stages[stage]);
    for (size_t space = 0; space < one.spaces.size(); ++space) {
      if (space != at.space)
        add(stage, number_of(one, space, one.spaces[space]->first()));
    }
  }
  for (size_t other = 0; other < partitions(); ++other) {
    if (other == point.partition)
      continue;
    program_point next = first(other);
    for (size_t i = 0; i < next.stages.size(); ++i) {
      for (size_t mine = 0; mine < point.stages.size(); ++mine) {
        if (&parts_->stage(other, i) == &parts_->stage(point.partition, mine))
          next.stages[i] = point.stages[mine];
      }
    }
    out.push_back(std::move(next));
  }
  return out;
}

std::vector<program_point> program_space::promising() const {
  const program_point base = first(0);
  std::vector<std::vector<size_t>> promises;
  size_t most = 0;
  for (const auto& stage : parts_->partitions.front().stages) {
    // Families take turns, the one that the first point is of last.
    std::vector<size_t> own;
    std::vector<std::vector<size_t>> lists;
    size_t longest = 0;
    for (const auto& space : stage->spaces) {
      lists.push_back(space->promising());
      longest = std::max(longest, lists.back().size());
    }
    for (size_t turn = 0; turn < longest; ++turn) {
      for (size_t i = 1; i <= lists.size(); ++i) {
        const size_t space = i % lists.size();
        if (turn < lists[space].size())
          own.push_back(number_of(*stage, space, lists[space][turn]));
      }
    }
    most = std::max(most, own.size());
    promises.push_back(std::move(own));
  }
  std::vector<program_point> out;
  for (size_t i = 0; i < most; ++i) {
    program_point next = base;
    for (size_t stage = 0; stage < promises.size(); ++stage) {
      // A stage that has no more to promise takes its best guess.
      if (!promises[stage].empty())
        next.stages[stage] = promises[stage][i < promises[stage].size() ? i : 0];
    }
    if (!(next == base) && std::find(out.begin(), out.end(), next) == out.end())
      out.push_back(std::move(next));
  }
  return out;
}

std::string program_space::describe(const program_point& point) const {
  std::string text;
  for (size_t i = 0; i < point.stages.size(); ++i) {
    const read_stage& stage = parts_->stage(point.partition, i);
    const auto at = locate(stage, point.stages[i]);
    text += (i == 0 ? "" : "; then ") + stage.spaces[at.space]->describe(at.point);
  }
  return point.stages.size() == 1 ? text : fmt::format("{} kernels: {}", point.stages.size(), text);
}

std::string program_space::difference(const program_point& from, const program_point& to) const {
  if (from.partition != to.partition) {
    const size_t before = stages(from.partition);
    const size_t after = stages(to.partition);
    if (before == after)
      return fmt::format("the graph cut into other {} kernels", after);
    return fmt::format("{} kernel{} instead of {}: {}", after, after == 1 ? "" : "s", before,
      after < before ? "less traffic between them" : "each with less to hold at once");
  }
  for (size_t i = 0; i < from.stages.size(); ++i) {
    if (from.stages[i] == to.stages[i])
      continue;
    const read_stage& stage = parts_->stage(from.partition, i);
    const auto a = locate(stage, from.stages[i]);
    const auto b = locate(stage, to.stages[i]);
    const std::string change = a.space == b.space
      ? stage.spaces[a.space]->difference(a.point, b.point)
      : fmt::format(
        "{} instead of {}", stage_key(stage, to.stages[i]), stage_key(stage, from.stages[i]));
    return from.stages.size() == 1 ? change : fmt::format("in kernel {}, {}", i + 1, change);
  }
  return "the same program";
}

result<generated_kernel> program_space::generate(const program_point& point) const {
  auto code = parts_->code_of(point, "true");
  if (parts_->is_whole(point.partition))
    return std::move(code.stages.front().kernel);
  return link(*parts_->program, {std::move(code)});
}

result<generated_kernel> program_space::generate(
  const std::vector<std::pair<std::string, program_point>>& groups) const {
  if (groups.empty())
    return fail(errc::invalid_input, "a program for no group of workloads");
  if (groups.size() == 1)
    return generate(groups.front().second);
  if (groups.back().first != "true")
    return fail(errc::invalid_input,
      fmt::format("the last group's condition is `{}`, not `true`", groups.back().first));
  std::vector<program_code> programs;
  for (const auto& [when, point] : groups)
    programs.push_back(parts_->code_of(point, when));
  return link(*parts_->program, programs);
}

std::vector<double> program_space::work_shares(size_t partition) const {
  return parts_->shares[partition];
}

} // namespace gristmill
