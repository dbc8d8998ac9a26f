#include "actors/search_library.hpp"

#include "actors/input_numbers.hpp"
#include "protocol/shrink.hpp"

namespace gristmill {

namespace {

/// Everything a plan needs to know; nothing when some of it cannot be told yet. Then plans are
/// proposed unchecked, and the compiler's verdict says what is wrong with them.
plan_check check_for(const run_context& context, const problem& target) {
  std::vector<plan_binding> bindings;
  for (const workload& work : target.workloads) {
    auto full_axes = resolve_axes(target.def, work.axes);
    auto check_axes = shrink_axes(target.def, work, context.check_elements_max);
    auto full_numbers = all_numbers(context, target, work, input_set::clock);
    auto check_numbers = all_numbers(context, target, work, input_set::check);
    if (!full_axes || !check_axes || !full_numbers || !check_numbers)
      return {};
    bindings.push_back({work.uuid, std::move(*full_axes), std::move(*check_axes),
      std::move(*full_numbers), std::move(*check_numbers)});
  }
  return make_plan_check(target.def, std::move(bindings), context.facts);
}

} // namespace

result<std::shared_ptr<const searchable_problem>> search_library::find(
  const run_context& context, const problem& target, const blob_ref& graph) {
  const std::pair key{target.name, graph.sha256};
  {
    const std::lock_guard lock(guard_);
    if (const auto found = known_.find(key); found != known_.end())
      return found->second;
  }
  // Not under the lock: two proposers may make the same space, and one of them is thrown away.
  auto text = context.blobs->get(graph);
  if (!text)
    return pass(text);
  const auto parsed = parse_op_graph(*text);
  if (!parsed)
    return pass(parsed);
  auto programs = program_space::make(target, *parsed);
  if (!programs) // Whatever the reason: there is no kernel of ours for it.
    return fail(errc::unsupported, programs.error().what);
  auto made = std::make_shared<searchable_problem>(std::move(*programs));
  made->workloads = search_workloads(target, context.check_elements_max);
  made->check = check_for(context, target);
  made->structure = structure_of(*parsed);
  const std::lock_guard lock(guard_);
  return known_.emplace(key, std::move(made)).first->second;
}

std::vector<std::string> search_library::exchange(
  const searchable_problem& of, const std::string& problem_name, const trial_history& history) {
  const std::lock_guard lock(guard_);
  memory_.learn(of.structure, problem_name, history);
  return memory_.relatives(of.structure, problem_name);
}

} // namespace gristmill
