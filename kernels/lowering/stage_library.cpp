#include "kernels/lowering/stage_library.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gristmill {

namespace {

std::string key_of(const stage_cut& cut) {
  // Roots and leaves decide what lies between.
  return fmt::format("{}|{}", fmt::join(cut.roots, ","), fmt::join(cut.leaves, ","));
}

/// What `fuse` reads; the baseline has frozen kernels for that.
bool is_fused(const stage_family& family) {
  return family.name == "map" || family.name == "row";
}

} // namespace

size_t read_stage::points() const {
  size_t count = 0;
  for (const auto& space : spaces)
    count += space->size();
  return count;
}

void stage_library::read(read_stage& stage, asked which) {
  const auto& families = stage_families();
  for (size_t i = 0; i < families.size(); ++i) {
    if (families[i].is_good ? is_plain_ && !is_fused(families[i]) : which == asked::first_good)
      continue;
    ++questions_;
    auto space = families[i].read(stage.sub.target, stage.sub.graph);
    if (!space) {
      // The last family is the one that reads most: its reason says most.
      stage.reason = space.error().what;
      continue;
    }
    stage.families.push_back(i);
    stage.spaces.push_back(std::move(*space));
    if (which == asked::first_good)
      break;
  }
  if (!stage.spaces.empty())
    stage.reason.clear();
  else if (stage.reason.empty())
    stage.reason = "no template family reads it";
}

std::shared_ptr<const read_stage> stage_library::get(const stage_cut& cut, asked which) {
  auto& known = known_[key_of(cut) + (which == asked::first_good ? "?" : "")];
  if (known)
    return known;
  // The spaces may keep references to the sub-problem: it must not move after this.
  auto stage = std::make_shared<read_stage>();
  auto sub = make_sub_problem(program_, cut);
  if (!sub) {
    stage->reason = sub.error().what;
  } else {
    stage->sub = std::move(*sub);
    read(*stage, which);
  }
  known = std::move(stage);
  return known;
}

bool stage_library::is_good(const stage_cut& cut) {
  return get(cut, asked::first_good)->is_good();
}

std::shared_ptr<const read_stage> stage_library::full(const stage_cut& cut) {
  return get(cut, asked::all);
}

std::shared_ptr<const read_stage> stage_library::whole(
  const problem& target, const op_graph& graph) {
  auto& known = known_["whole"];
  if (known)
    return known;
  auto stage = std::make_shared<read_stage>();
  stage->sub.target = target;
  stage->sub.graph = graph;
  const auto& shapes = program_;
  for (const auto& spec : target.def.inputs) {
    for (const auto& value : shapes.graph().values) {
      if (!spec.is_scalar && value.source == graph_source::input && value.name == spec.name)
        stage->sub.inputs.push_back({spec.name, value.id, shapes.sizes(value.id)});
    }
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const int64_t id = shapes.graph().outputs[i];
    stage->sub.outputs.push_back({target.def.outputs[i].name, shapes.base(id), shapes.sizes(id)});
  }
  for (size_t i = 0; i < shapes.graph().nodes.size(); ++i)
    stage->sub.nodes.push_back(i);
  read(*stage, asked::all);
  known = std::move(stage);
  return known;
}

} // namespace gristmill
