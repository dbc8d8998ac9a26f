#pragma once

#include "protocol/plan.hpp"
#include "protocol/plan_scope.hpp"
#include "protocol/resolve.hpp"
#include "protocol/resolve_argument.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gristmill {

/// Turns the steps of the chosen variant into resolved ones: unrolls repeats, drops what does not
/// run, and writes down who waits for whom.
class step_resolver {
public:
  /// `scope` holds all names but the variables of repeats; `out` has all buffers.
  step_resolver(const plan& source, const plan_variant& variant, plan_scope& scope,
    const named_scalars& scalars, const device_facts& device, const occupancy_function& occupancy,
    resolved_workload& out);
  ~step_resolver();
  step_resolver(const step_resolver&) = delete;
  step_resolver& operator=(const step_resolver&) = delete;

  result<void> run();

  /// What `occupancy(step)` comes to.
  result<int64_t> occupancy_of(const std::string& step_id) const;

private:
  /// Indices of resolved steps.
  using step_set = std::vector<uint32_t>;

  void add_zero_scratch();
  /// Gives the steps whose end is the end of the block.
  result<step_set> run_block(
    const std::vector<plan_step>& steps, const std::string& path, const step_set& entry);
  result<step_set> run_step(
    const plan_step& step, const std::string& place, const step_set& before);
  result<step_set> run_repeat(
    const plan_step& step, const std::string& place, const step_set& before);
  /// Each gives false when there is nothing to do.
  result<bool> bind_launch(const plan_step& step, resolved_step& out);
  result<bool> bind_memset(const plan_step& step, resolved_step& out);
  result<bool> bind_copy(const plan_step& step, resolved_step& out);
  /// Checks that [offset, offset + bytes) lies in the buffer, which must not be an input when
  /// `written`.
  result<void> bind_range(const expression_name& name, const expression& offset_text,
    uint64_t bytes, bool written, uint32_t& buffer, uint64_t& offset) const;
  result<std::array<uint32_t, 3>> bind_triple(const std::array<expression, 3>& from,
    const char* field, const std::array<int64_t, 3>& highest, int64_t lowest) const;
  result<std::array<uint32_t, 3>> bind_block(const plan_step& step) const;
  result<uint32_t> bind_shared(const plan_step& step) const;
  result<void> bind_cluster(const plan_step& step, resolved_step& out) const;
  result<void> use_entry(const std::string& entry, const std::vector<bound_argument>& arguments);
  result<uint32_t> emit(resolved_step step, const step_set& before);

  const plan& source_;
  const plan_variant& variant_;
  plan_scope& scope_;
  const named_scalars& scalars_;
  const device_facts& device_;
  const occupancy_function& occupancy_;
  resolved_workload& out_;
  /// The latest end of each step that has an id.
  std::map<std::string, step_set> ends_;
  bool launched_ = false;
};

} // namespace gristmill
