#include "kernels/lowering/partition.hpp"

#include "kernels/graph_reader.hpp"
#include "kernels/lowering/stage_groups.hpp"
#include "kernels/pointwise_operators.hpp"
#include "protocol/plan.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace gristmill {

namespace {

/// Bounds on the work for one program.
constexpr size_t operators_max = 1024;
constexpr size_t questions_max = 6000;
constexpr size_t between_max = 64;
/// A cheap value may be computed again where it is used, if that reads at most so many elements for
/// each of its own.
constexpr int64_t again_elements = 2;
constexpr size_t again_operators = 8;

int64_t elements(const graph_value& value) {
  int64_t count = 1;
  for (int64_t size : value.shape)
    count *= size;
  return count;
}

class partitioner {
public:
  partitioner(const program_graph& program, stage_library& library)
    : program_(program), library_(library) {}

  /// A stage for each operator. `unread_` says why some operator has no kernel of its own.
  result<stage_groups> plain() {
    stage_groups groups = stage_groups::one_an_operator(program_);
    if (groups.groups().size() > operators_max)
      return fail(errc::unsupported,
        fmt::format("the graph has {} operators; at most {} are cut into stages",
          groups.groups().size(), operators_max));
    std::vector<stage_groups::group> open = groups.groups();
    while (!open.empty()) {
      const stage_groups::group one = open.back();
      open.pop_back();
      const stage_cut cut = groups.cut(program_, one);
      const auto stage = library_.full(cut);
      if (stage->is_readable())
        continue;
      const auto views = inner_views(cut);
      if (views.empty()) {
        // A family that reads it together with its neighbours may still be found.
        if (unread_.empty())
          unread_ = stage->reason;
        continue;
      }
      // No kernel reads through these views: they become tensors of their own.
      for (int64_t id : views) {
        groups.add(id);
        open.push_back({id});
      }
      open.push_back(one);
    }
    return groups;
  }

  const std::string& unread() const { return unread_; }

  stage_groups fused(const stage_groups& plain) {
    groups_ = plain;
    refresh();
    bool has_changed = true;
    for (int round = 0; round < 4 && has_changed && may_ask(); ++round) {
      has_changed = remove_singly();
      has_changed = remove_between() || has_changed;
      has_changed = remove_cones() || has_changed;
    }
    merge_stages();
    return groups_;
  }

  /// `from` with one value written that is not: those first that expensive operators make.
  std::vector<stage_groups> with_one_more(
    const stage_groups& from, const stage_groups& plain, size_t count) {
    std::vector<int64_t> expensive;
    std::vector<int64_t> others;
    for (int64_t id : plain.materialised()) {
      if (from.materialised().contains(id))
        continue;
      const auto maker = program_.producer(id);
      (maker && !is_cheap_operator(program_.node(*maker).op) ? expensive : others).push_back(id);
    }
    expensive.insert(expensive.end(), others.begin(), others.end());
    std::vector<stage_groups> out;
    for (int64_t id : expensive) {
      if (out.size() >= count || !may_ask())
        break;
      stage_groups next = from;
      next.add(id);
      if (next.in_order(program_) && is_readable(next))
        out.push_back(std::move(next));
    }
    return out;
  }

  bool is_readable(const stage_groups& groups) {
    return std::all_of(groups.groups().begin(), groups.groups().end(),
      [&](const auto& one) { return library_.full(groups.cut(program_, one))->is_readable(); });
  }

  result<partition> finished(const stage_groups& groups) {
    const auto order = groups.in_order(program_);
    if (!order)
      return fail(errc::unsupported, "the stages of the graph wait for each other");
    partition out;
    for (const auto& one : *order) {
      auto stage = library_.full(groups.cut(program_, one));
      if (!stage->is_readable())
        return fail(errc::unsupported, stage->reason);
      out.stages.push_back(std::move(stage));
    }
    return out;
  }

private:
  static bool is_cheap_operator(const std::string& op) {
    return is_pointwise(op) || is_view_operator(op) || is_reshape_operator(op);
  }

  bool may_ask() const { return library_.questions() < questions_max; }

  /// Values that views inside a stage make and that could have a buffer.
  std::vector<int64_t> inner_views(const stage_cut& cut) const {
    std::set<int64_t> out;
    for (size_t index : cut.nodes) {
      for (int64_t id : program_.node(index).outputs) {
        const int64_t base = program_.base(id);
        const auto maker = program_.producer(base);
        const bool is_root = std::find(cut.roots.begin(), cut.roots.end(), base) != cut.roots.end();
        if (maker && !is_root && is_view_operator(program_.node(*maker).op) && is_read_by(cut, id))
          out.insert(base);
      }
    }
    return {out.begin(), out.end()};
  }

  bool is_read_by(const stage_cut& cut, int64_t id) const {
    return std::any_of(cut.nodes.begin(), cut.nodes.end(), [&](size_t index) {
      const auto operands = operands_of(program_.node(index));
      return std::find(operands.begin(), operands.end(), id) != operands.end();
    });
  }

  // ---- what the present cut looks like

  struct stage_view {
    stage_cut cut;
    /// Materialised values that it reads.
    std::set<int64_t> reads;
    bool is_cheap = true;
  };

  void refresh() {
    stages_.clear();
    writer_.clear();
    readers_.clear();
    for (size_t i = 0; i < groups_.groups().size(); ++i) {
      stage_view view;
      view.cut = groups_.cut(program_, groups_.groups()[i]);
      for (int64_t leaf : view.cut.leaves) {
        const int64_t base = program_.base(leaf);
        if (groups_.materialised().contains(base)) {
          view.reads.insert(base);
          readers_[base].insert(i);
        }
      }
      for (size_t node : view.cut.nodes)
        view.is_cheap = view.is_cheap && is_cheap_operator(program_.node(node).op);
      for (int64_t id : groups_.groups()[i])
        writer_[id] = i;
      stages_.push_back(std::move(view));
    }
  }

  /// Takes a change if a good family reads every stage that it touches.
  bool accept(stage_groups next, const std::set<int64_t>& touched) {
    for (const auto& one : next.groups()) {
      const bool is_touched =
        std::any_of(one.begin(), one.end(), [&](int64_t id) { return touched.contains(id); });
      if (is_touched && !library_.is_good(next.cut(program_, one)))
        return false;
    }
    if (!next.in_order(program_))
      return false;
    groups_ = std::move(next);
    refresh();
    return true;
  }

  /// Values written by the stages that read one of `values`.
  std::set<int64_t> written_by_readers(const std::vector<int64_t>& values) const {
    std::set<int64_t> out;
    for (int64_t id : values) {
      const auto found = readers_.find(id);
      if (found == readers_.end())
        continue;
      for (size_t reader : found->second)
        out.insert(groups_.groups()[reader].begin(), groups_.groups()[reader].end());
    }
    for (int64_t id : values)
      out.erase(id);
    return out;
  }

  bool try_remove(const std::vector<int64_t>& values) {
    stage_groups next = groups_;
    next.remove(values);
    return accept(std::move(next), written_by_readers(values));
  }

  // ---- one value at a time

  bool may_remove(int64_t id) const {
    if (program_.output_of(id))
      return false;
    const auto readers = readers_.find(id);
    if (readers == readers_.end())
      return false;
    const stage_view& stage = stages_[writer_.at(id)];
    const bool is_alone = groups_.groups()[writer_.at(id)].size() == 1;
    if (readers->second.size() == 1 && is_alone)
      return true;
    if (!stage.is_cheap || stage.cut.nodes.size() > again_operators)
      return false;
    int64_t read = 0;
    for (int64_t leaf : stage.cut.leaves)
      read += elements(program_.value(leaf));
    return read <= again_elements * elements(program_.value(id));
  }

  bool remove_singly() {
    bool has_changed = false;
    for (const auto& node : program_.graph().nodes) {
      for (int64_t id : node.outputs) {
        if (groups_.materialised().contains(id) && may_remove(id) && may_ask())
          has_changed = try_remove({id}) || has_changed;
      }
    }
    return has_changed;
  }

  // ---- several at once

  /// Stages from which one can get to `end`, by their distance, itself excluded.
  std::map<size_t, size_t> upstream(size_t end, size_t distance_max) const {
    std::map<size_t, size_t> out;
    std::vector<size_t> front{end};
    for (size_t distance = 1; distance <= distance_max && !front.empty(); ++distance) {
      std::vector<size_t> next;
      for (size_t stage : front) {
        for (int64_t id : stages_[stage].reads) {
          const size_t from = writer_.at(id);
          if (from != end && out.emplace(from, distance).second)
            next.push_back(from);
        }
      }
      front = std::move(next);
    }
    return out;
  }

  /// All values of these stages, if nobody else reads them and none is an output.
  std::vector<int64_t> private_values(const std::set<size_t>& stages, size_t reader) const {
    std::vector<int64_t> out;
    for (size_t stage : stages) {
      for (int64_t id : groups_.groups()[stage]) {
        const auto readers = readers_.find(id);
        const bool is_private = !program_.output_of(id)
          && (readers == readers_.end()
            || std::all_of(readers->second.begin(), readers->second.end(),
              [&](size_t r) { return r == reader || stages.contains(r); }));
        if (!is_private)
          return {};
        out.push_back(id);
      }
    }
    return out;
  }

  /// Everything between two expensive stages becomes part of the later one, with the earlier.
  bool remove_between() {
    bool has_changed = false;
    const std::vector<stage_groups::group> all = groups_.groups();
    for (const auto& one : all) {
      bool is_open = true;
      while (is_open && may_ask()) {
        is_open = false;
        const auto at = std::find(groups_.groups().begin(), groups_.groups().end(), one);
        if (at == groups_.groups().end())
          break;
        const auto end = static_cast<size_t>(at - groups_.groups().begin());
        for (const auto& values : candidates_between(end)) {
          if (may_ask() && try_remove(values)) {
            has_changed = is_open = true;
            break;
          }
        }
      }
    }
    return has_changed;
  }

  /// The largest first.
  std::vector<std::vector<int64_t>> candidates_between(size_t end) const {
    constexpr size_t distance_max = 12;
    const auto above = upstream(end, distance_max);
    std::vector<std::vector<int64_t>> out;
    for (const auto& [begin, distance] : above) {
      if (stages_[begin].is_cheap || distance < 2)
        continue;
      // Downstream of `begin` and upstream of `end`.
      std::set<size_t> between{begin};
      bool has_grown = true;
      while (has_grown && between.size() <= between_max) {
        has_grown = false;
        for (const auto& [stage, far] : above) {
          const bool follows = std::any_of(stages_[stage].reads.begin(), stages_[stage].reads.end(),
            [&](int64_t id) { return between.contains(writer_.at(id)); });
          if (follows && between.insert(stage).second)
            has_grown = true;
        }
      }
      auto values = private_values(between, end);
      if (values.size() > 1 && values.size() <= between_max)
        out.push_back(std::move(values));
    }
    std::stable_sort(
      out.begin(), out.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
    if (out.size() > 8)
      out.resize(8);
    return out;
  }

  /// What a stage reads becomes part of it together with all that only it depends on, such as a
  /// mask with everything that makes it.
  bool remove_cones() {
    bool has_changed = false;
    const std::vector<stage_groups::group> all = groups_.groups();
    for (const auto& one : all) {
      const auto at = std::find(groups_.groups().begin(), groups_.groups().end(), one);
      if (at == groups_.groups().end())
        continue;
      const auto end = static_cast<size_t>(at - groups_.groups().begin());
      const std::set<int64_t> reads = stages_[end].reads;
      for (int64_t id : reads) {
        if (!may_ask() || !writer_.contains(id))
          continue;
        std::set<size_t> cone{writer_.at(id)};
        if (private_values(cone, end).empty())
          continue;
        bool has_grown = true;
        while (has_grown && cone.size() <= between_max) {
          has_grown = false;
          for (size_t stage : std::set<size_t>(cone)) {
            for (int64_t read : stages_[stage].reads) {
              std::set<size_t> larger = cone;
              if (larger.insert(writer_.at(read)).second && !private_values(larger, end).empty()) {
                cone = std::move(larger);
                has_grown = true;
              }
            }
          }
        }
        if (cone.size() > 1 && try_remove(private_values(cone, end))) {
          has_changed = true;
          break; // The numbers of the stages are others now.
        }
      }
    }
    return has_changed;
  }

  // ---- two stages as one

  void merge_stages() {
    bool has_changed = true;
    while (has_changed && may_ask()) {
      has_changed = false;
      for (size_t a = 0; a < stages_.size() && !has_changed; ++a) {
        for (size_t b = a + 1; b < stages_.size() && !has_changed && may_ask(); ++b) {
          if (!have_much_in_common(a, b))
            continue;
          stage_groups next = groups_;
          next.merge(a, b);
          std::set<int64_t> touched(groups_.groups()[a].begin(), groups_.groups()[a].end());
          has_changed = accept(std::move(next), touched);
        }
      }
    }
  }

  /// One reads what the other writes, or both read the same tensor; and one kernel could write both
  /// because their results are alike.
  bool have_much_in_common(size_t a, size_t b) const {
    const auto& first = program_.value(groups_.groups()[a].front());
    const auto& second = program_.value(groups_.groups()[b].front());
    if (first.shape != second.shape)
      return false;
    const auto reads_from = [&](size_t reader, size_t from) {
      return std::any_of(stages_[reader].reads.begin(), stages_[reader].reads.end(),
        [&](int64_t id) { return writer_.at(id) == from; });
    };
    if (reads_from(a, b) || reads_from(b, a))
      return true;
    const auto& other = stages_[b].cut.leaves;
    return std::any_of(
      stages_[a].cut.leaves.begin(), stages_[a].cut.leaves.end(), [&](int64_t leaf) {
        return elements(program_.value(leaf)) >= elements(first)
          && std::any_of(other.begin(), other.end(),
            [&](int64_t id) { return program_.base(id) == program_.base(leaf); });
      });
  }

  const program_graph& program_;
  stage_library& library_;
  std::string unread_;
  stage_groups groups_;
  std::vector<stage_view> stages_;
  std::map<int64_t, size_t> writer_;
  std::map<int64_t, std::set<size_t>> readers_;
};

} // namespace

result<partition> plain_partition(const program_graph& program, stage_library& library) {
  partitioner cutting(program, library);
  auto plain = cutting.plain();
  if (!plain)
    return pass(plain);
  if (!cutting.unread().empty())
    return fail(errc::unsupported, cutting.unread());
  return cutting.finished(*plain);
}

result<std::vector<partition>> partitions_of(
  const program_graph& program, const op_graph& original, stage_library& library) {
  if (original.outputs.empty())
    return fail(errc::invalid_input, "the graph has no output");
  partitioner cutting(program, library);
  std::vector<partition> out;
  const auto whole = library.whole(program.target(), original);
  if (whole->is_good())
    out.push_back({{whole}});
  auto plain = cutting.plain();
  if (!plain) {
    if (!out.empty())
      return out;
    return pass(plain);
  }
  std::vector<stage_groups> cuts;
  const auto add = [&](stage_groups cut) {
    if (std::find(cuts.begin(), cuts.end(), cut) == cuts.end())
      cuts.push_back(std::move(cut));
  };
  if (out.empty()) {
    const stage_groups fused = cutting.fused(*plain);
    add(fused);
    for (auto& cut : cutting.with_one_more(fused, *plain, partitions_max - 2))
      add(std::move(cut));
  }
  std::erase(cuts, *plain);
  if (cutting.unread().empty())
    cuts.push_back(*plain);
  else
    std::erase_if(cuts, [&](const stage_groups& cut) { return !cutting.is_readable(cut); });
  if (cuts.empty() && out.empty())
    return fail(errc::unsupported, cutting.unread());
  // One that no launch plan can hold is none.
  const size_t kernels = cuts.empty() ? 0 : cuts.front().groups().size();
  std::erase_if(
    cuts, [](const stage_groups& cut) { return cut.groups().size() > plan_limits::steps; });
  if (cuts.empty() && out.empty())
    return fail(errc::unsupported,
      fmt::format("the graph needs {} kernels; a launch plan has at most {} steps", kernels,
        plan_limits::steps));
  for (const auto& cut : cuts) {
    // One operator and its views: that is the whole again.
    if (!out.empty() && out.front().stages.front() == whole && cut.groups().size() == 1)
      continue;
    auto made = cutting.finished(cut);
    if (!made)
      return pass(made);
    out.push_back(std::move(*made));
  }
  return out;
}

} // namespace gristmill
