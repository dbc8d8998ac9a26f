#include "kernels/lowering/stage_groups.hpp"

#include "kernels/graph_reader.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace gristmill {

stage_groups stage_groups::one_an_operator(const program_graph& program) {
  stage_groups out;
  value_set used;
  for (int64_t id : program.graph().outputs)
    used.insert(program.base(id));
  for (const auto& node : program.graph().nodes) {
    for (int64_t id : operands_of(node))
      used.insert(id);
  }
  for (const auto& node : program.graph().nodes) {
    group values;
    for (int64_t id : node.outputs) {
      const bool is_view = is_view_operator(node.op) || is_reshape_operator(node.op);
      if (is_view ? program.base(id) == id && program.output_of(id) : used.contains(id))
        values.push_back(id);
    }
    if (values.empty())
      continue;
    std::sort(values.begin(), values.end());
    out.materialised_.insert(values.begin(), values.end());
    if (is_view_operator(node.op)) {
      // Views of one operator, such as the parts of a `split`, have nothing to do with each other.
      for (int64_t id : values)
        out.groups_.push_back({id});
    } else {
      out.groups_.push_back(std::move(values));
    }
  }
  std::sort(out.groups_.begin(), out.groups_.end());
  return out;
}

void stage_groups::add(int64_t value) {
  if (!materialised_.insert(value).second)
    return;
  groups_.push_back({value});
  std::sort(groups_.begin(), groups_.end());
}

void stage_groups::remove(const std::vector<int64_t>& values) {
  for (int64_t id : values) {
    materialised_.erase(id);
    for (group& one : groups_)
      std::erase(one, id);
  }
  std::erase_if(groups_, [](const group& one) { return one.empty(); });
  std::sort(groups_.begin(), groups_.end());
}

void stage_groups::merge(size_t a, size_t b) {
  group both = groups_[a];
  both.insert(both.end(), groups_[b].begin(), groups_[b].end());
  std::sort(both.begin(), both.end());
  groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(std::max(a, b)));
  groups_[std::min(a, b)] = std::move(both);
  std::sort(groups_.begin(), groups_.end());
}

std::optional<std::vector<stage_groups::group>> stage_groups::in_order(
  const program_graph& program) const {
  std::map<int64_t, size_t> writer;
  for (size_t i = 0; i < groups_.size(); ++i) {
    for (int64_t id : groups_[i])
      writer[id] = i;
  }
  std::vector<std::set<size_t>> waits(groups_.size());
  std::vector<std::vector<size_t>> wakes(groups_.size());
  std::vector<size_t> place(groups_.size(), 0);
  for (size_t i = 0; i < groups_.size(); ++i) {
    const stage_cut stage = cut(program, groups_[i]);
    place[i] = stage.nodes.empty() ? 0 : stage.nodes.back();
    for (int64_t leaf : stage.leaves) {
      const auto from = writer.find(program.base(leaf));
      if (from != writer.end() && waits[i].insert(from->second).second)
        wakes[from->second].push_back(i);
    }
  }
  std::set<std::pair<size_t, size_t>> ready;
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (waits[i].empty())
      ready.emplace(place[i], i);
  }
  std::vector<group> order;
  while (!ready.empty()) {
    const size_t next = ready.begin()->second;
    ready.erase(ready.begin());
    order.push_back(groups_[next]);
    for (size_t other : wakes[next]) {
      waits[other].erase(next);
      if (waits[other].empty())
        ready.emplace(place[other], other);
    }
  }
  if (order.size() != groups_.size())
    return std::nullopt;
  return order;
}

} // namespace gristmill
