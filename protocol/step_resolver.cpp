#include "protocol/step_resolver.hpp"

#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace gristmill {

namespace {

constexpr int64_t threads_max = 1024;
constexpr int64_t cluster_max = 8;
/// `cluster` needs this architecture.
constexpr uint32_t cluster_arch = 90;
/// And so do copies by tensor maps.
constexpr uint32_t tensor_map_arch = 90;

tl::unexpected<failure> at(const std::string& place, const failure& inner) {
  return fail(inner.code, fmt::format("{}: {}", place, inner.what));
}

const plan_step* find_step(
  const std::vector<plan_step>& steps, const std::string& id, std::vector<std::string>& known) {
  for (const auto& each : steps) {
    if (each.what == plan_step::op::launch && !each.id.empty()) {
      if (each.id == id)
        return &each;
      known.push_back(each.id);
    }
    if (const auto* inner = find_step(each.steps, id, known))
      return inner;
  }
  return nullptr;
}

void join(std::vector<uint32_t>& into, const std::vector<uint32_t>& more) {
  into.insert(into.end(), more.begin(), more.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

} // namespace

step_resolver::step_resolver(const plan& source, const plan_variant& variant, plan_scope& scope,
  const named_scalars& scalars, const device_facts& device, const occupancy_function& occupancy,
  resolved_workload& out)
  : source_(source), variant_(variant), scope_(scope), scalars_(scalars), device_(device),
    occupancy_(occupancy), out_(out) {
  scope_.set_occupancy([this](const std::string& step) { return occupancy_of(step); });
}

step_resolver::~step_resolver() {
  scope_.set_occupancy(nullptr);
}

result<void> step_resolver::run() {
  add_zero_scratch();
  step_set entry;
  for (uint32_t i = 0; i < out_.steps.size(); ++i)
    entry.push_back(i);
  auto end = run_block(variant_.steps, "", entry);
  if (!end)
    return fail(end.error().code,
      fmt::format("plan: variant {}: {}", excerpt(variant_.name), end.error().what));
  // Workloads that skip a step need fewer kernels: the entries are part of the unit's identity.
  for (const auto& each : out_.unit.entries)
    out_.unit.key += "|" + each.expression;
  return {};
}

void step_resolver::add_zero_scratch() {
  for (size_t i = 0; i < out_.buffers.size(); ++i) {
    if (out_.buffers[i].init != name(scratch_init::zero) || out_.buffers[i].bytes == 0)
      continue;
    resolved_step step;
    step.what = resolved_step::op::memset;
    step.buffer = static_cast<uint32_t>(i);
    step.bytes = out_.buffers[i].bytes;
    out_.steps.push_back(std::move(step));
  }
}

result<step_resolver::step_set> step_resolver::run_block(
  const std::vector<plan_step>& steps, const std::string& path, const step_set& entry) {
  step_set previous = entry;
  const auto first = static_cast<uint32_t>(out_.steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto& step = steps[i];
    const auto place =
      fmt::format("{}step {}{}", path, i, step.id.empty() ? "" : fmt::format(" (`{}`)", step.id));
    auto runs = evaluate_bool(step.when, scope_);
    if (!runs)
      return at(place + ", when", runs.error());
    step_set before = previous;
    if (step.after) {
      before = entry;
      for (const auto& id : *step.after)
        join(before, ends_[id]);
    }
    // A step that does not run ends when what it waits for has ended.
    step_set end = before;
    if (*runs) {
      auto done = run_step(step, place, before);
      if (!done)
        return done;
      end = std::move(*done);
    }
    if (!step.id.empty())
      ends_[step.id] = end;
    previous = std::move(end);
  }
  // The block ends with everything in it that nothing in it waits for.
  step_set end = previous;
  std::set<uint32_t> awaited;
  for (uint32_t i = first; i < out_.steps.size(); ++i)
    awaited.insert(out_.steps[i].after.begin(), out_.steps[i].after.end());
  for (uint32_t i = first; i < out_.steps.size(); ++i)
    if (awaited.count(i) == 0)
      join(end, {i});
  return end;
}

result<step_resolver::step_set> step_resolver::run_step(
  const plan_step& step, const std::string& place, const step_set& before) {
  if (step.what == plan_step::op::repeat)
    return run_repeat(step, place, before);
  resolved_step bound;
  bound.id = step.id;
  result<bool> needed = false;
  switch (step.what) {
  case plan_step::op::launch:
    needed = bind_launch(step, bound);
    break;
  case plan_step::op::memset:
    needed = bind_memset(step, bound);
    break;
  case plan_step::op::copy:
    needed = bind_copy(step, bound);
    break;
  case plan_step::op::read:
    return fail(
      errc::unsupported, place + ": `read` steps are not supported by the devices of this build");
  case plan_step::op::repeat:
    break;
  }
  if (!needed)
    return at(place, needed.error());
  if (!*needed)
    return before;
  auto index = emit(std::move(bound), before);
  if (!index)
    return pass(index);
  return step_set{*index};
}

result<step_resolver::step_set> step_resolver::run_repeat(
  const plan_step& step, const std::string& place, const step_set& before) {
  auto count = evaluate_int(step.count, scope_);
  if (!count)
    return at(place + ", count", count.error());
  // Also bounds the rounds of a repeat in which nothing runs.
  if (*count < 0 || *count > static_cast<int64_t>(plan_limits::steps))
    return fail(errc::refused,
      fmt::format("{}, count: {} rounds; 0 to {} are possible", place, *count, plan_limits::steps));
  if (scope_.knows(step.variable))
    return fail(errc::invalid_input,
      fmt::format("{}, var: the name {} is taken; choose another", place, excerpt(step.variable)));
  scope_.add_value("", step.variable, int64_t{0});
  step_set end = before;
  for (int64_t round = 0; round < *count; ++round) {
    scope_.set_value(step.variable, round);
    auto done = run_block(step.steps, fmt::format("{}, round {}, ", place, round), end);
    if (!done)
      return done;
    end = std::move(*done);
  }
  scope_.remove_value(step.variable);
  return end;
}

result<uint32_t> step_resolver::emit(resolved_step step, const step_set& before) {
  if (out_.steps.size() >= plan_limits::steps)
    return fail(errc::refused, fmt::format("more than {} steps in one call", plan_limits::steps));
  step.after = before;
  out_.steps.push_back(std::move(step));
  return static_cast<uint32_t>(out_.steps.size() - 1);
}

// ---- launch

result<std::array<uint32_t, 3>> step_resolver::bind_triple(const std::array<expression, 3>& from,
  const char* field, const std::array<int64_t, 3>& highest, int64_t lowest) const {
  std::array<uint32_t, 3> out{};
  for (size_t i = 0; i < 3; ++i) {
    auto value = evaluate_int(from[i], scope_);
    if (!value)
      return fail(value.error().code, fmt::format("{}.{}: {}", field, i, value.error().what));
    if (*value < lowest || *value > highest[i])
      return fail(errc::invalid_input,
        fmt::format("{}.{}: {} is not from {} to {}", field, i, *value, lowest, highest[i]));
    out[i] = static_cast<uint32_t>(*value);
  }
  return out;
}

result<std::array<uint32_t, 3>> step_resolver::bind_block(const plan_step& step) const {
  auto out = bind_triple(step.block, "block", {threads_max, threads_max, 64}, 1);
  if (out && int64_t{(*out)[0]} * (*out)[1] * (*out)[2] > threads_max)
    return fail(errc::invalid_input,
      fmt::format("block: {} x {} x {} is more than {} threads", (*out)[0], (*out)[1], (*out)[2],
        threads_max));
  return out;
}

result<uint32_t> step_resolver::bind_shared(const plan_step& step) const {
  auto value = evaluate_int(step.shared, scope_);
  if (!value)
    return at("shared", value.error());
  if (*value < 0 || *value > int64_t{device_.smem_per_block})
    return fail(errc::invalid_input,
      fmt::format(
        "shared: {} bytes; a block of this device has 0 to {}", *value, device_.smem_per_block));
  return static_cast<uint32_t>(*value);
}

result<void> step_resolver::bind_cluster(const plan_step& step, resolved_step& out) const {
  if (!step.cluster)
    return {};
  auto cluster = bind_triple(*step.cluster, "cluster", {cluster_max, cluster_max, cluster_max}, 1);
  if (!cluster)
    return pass(cluster);
  const int64_t blocks = int64_t{(*cluster)[0]} * (*cluster)[1] * (*cluster)[2];
  if (blocks > cluster_max)
    return fail(errc::invalid_input,
      fmt::format("cluster: {} blocks; at most {} are portable", blocks, cluster_max));
  if (blocks > 1 && device_.arch < cluster_arch)
    return fail(errc::unsupported,
      fmt::format(
        "cluster: needs architecture {}; this device has {}", cluster_arch, device_.arch));
  for (size_t i = 0; i < 3; ++i)
    if (out.grid[i] % (*cluster)[i] != 0)
      return fail(errc::invalid_input,
        fmt::format(
          "cluster.{}: the grid of {} is not a multiple of {}", i, out.grid[i], (*cluster)[i]));
  out.cluster = *cluster;
  return {};
}

result<bool> step_resolver::bind_launch(const plan_step& step, resolved_step& out) {
  out.what = resolved_step::op::launch;
  out.entry = step.entry;
  auto grid = bind_triple(step.grid, "grid", {INT32_MAX, 65535, 65535}, 0);
  if (!grid)
    return pass(grid);
  if ((*grid)[0] == 0 || (*grid)[1] == 0 || (*grid)[2] == 0)
    return false; // Axes may be 0.
  out.grid = *grid;
  auto block = bind_block(step);
  if (!block)
    return pass(block);
  out.block = *block;
  auto shared = bind_shared(step);
  if (!shared)
    return pass(shared);
  out.shared_bytes = *shared;
  if (auto cluster = bind_cluster(step, out); !cluster)
    return pass(cluster);
  if (step.pdl && !launched_)
    return fail(errc::invalid_input, "pdl: the first launch of a call has none before it");
  out.cooperative = step.cooperative;
  out.pdl = step.pdl;
  out.carveout = step.carveout;
  std::vector<bound_argument> bound;
  for (size_t i = 0; i < step.args.size(); ++i) {
    auto argument =
      bind_argument(step.args[i], scope_, out_.buffers, scalars_, source_.tensor_maps);
    if (!argument)
      return fail(argument.error().code,
        fmt::format("args.{} ({}): {}", i, excerpt(step.args[i].text), argument.error().what));
    if (!argument->passed.maps.empty() && device_.arch < tensor_map_arch)
      return fail(errc::unsupported,
        fmt::format("args.{} ({}): a tensor map needs architecture {}; this device has {}", i,
          excerpt(step.args[i].text), tensor_map_arch, device_.arch));
    out.args.push_back(argument->passed);
    bound.push_back(std::move(*argument));
  }
  if (const auto bytes = parameter_bytes(out.args); bytes > plan_limits::parameter_bytes)
    return fail(errc::refused,
      fmt::format("args: {} bytes of parameters; at most {} are possible", bytes,
        plan_limits::parameter_bytes));
  if (auto used = use_entry(step.entry, bound); !used)
    return pass(used);
  launched_ = true;
  return true;
}

result<void> step_resolver::use_entry(
  const std::string& entry, const std::vector<bound_argument>& arguments) {
  entry_use use;
  use.expression = entry;
  for (const auto& each : arguments) {
    use.parameter_abi.push_back(each.parameter);
    use.argument_names.push_back(each.passed.name);
    use.parameter_const.push_back(each.is_const);
  }
  auto& entries = out_.unit.entries;
  const auto known = std::find_if(
    entries.begin(), entries.end(), [&](const entry_use& e) { return e.expression == entry; });
  if (known == entries.end()) {
    entries.push_back(std::move(use));
    return {};
  }
  if (known->parameter_abi.size() != use.parameter_abi.size())
    return fail(errc::invalid_input,
      fmt::format("entry: {} is launched with {} arguments here and {} before", excerpt(entry),
        use.parameter_abi.size(), known->parameter_abi.size()));
  for (size_t i = 0; i < use.parameter_abi.size(); ++i) {
    const bool pointers =
      use.parameter_abi[i].ends_with('*') && known->parameter_abi[i].ends_with('*');
    if (!pointers && use.parameter_abi[i] != known->parameter_abi[i])
      return fail(errc::invalid_input,
        fmt::format("entry: argument {} of {} is {} here and {} before", i, excerpt(entry),
          use.parameter_abi[i], known->parameter_abi[i]));
    // One input among them makes the parameter one that must not be written.
    if (pointers && use.parameter_const[i] && !known->parameter_const[i]) {
      known->parameter_const[i] = true;
      known->parameter_abi[i] = use.parameter_abi[i];
    }
  }
  return {};
}

result<int64_t> step_resolver::occupancy_of(const std::string& step_id) const {
  std::vector<std::string> known;
  const auto* step = find_step(variant_.steps, step_id, known);
  if (step == nullptr)
    return fail(errc::not_found,
      fmt::format("occupancy: there is no launch with the id {}{}", excerpt(step_id),
        suggestion(step_id, known)));
  if (!occupancy_)
    return fail(errc::unsupported, "`occupancy` is not supported by the devices of this build");
  occupancy_query query{step->id, step->entry, {1, 1, 1}, 0};
  auto block = bind_block(*step);
  if (!block)
    return pass(block);
  query.block = *block;
  auto shared = bind_shared(*step);
  if (!shared)
    return pass(shared);
  query.shared_bytes = *shared;
  return occupancy_(query);
}

// ---- memset and copy

result<void> step_resolver::bind_range(const expression_name& name, const expression& offset_text,
  uint64_t bytes, bool written, uint32_t& buffer, uint64_t& offset) const {
  auto index = scope_.buffer(name);
  if (!index)
    return pass(index);
  const auto& tensor = out_.buffers[*index];
  if (written && tensor.kind == resolved_buffer::role::input)
    return fail(errc::invalid_input, fmt::format("{} is an input: not to be written", tensor.name));
  auto begin = evaluate_int(offset_text, scope_);
  if (!begin)
    return pass(begin);
  if (*begin < 0 || static_cast<uint64_t>(*begin) > tensor.bytes
    || bytes > tensor.bytes - static_cast<uint64_t>(*begin))
    return fail(errc::invalid_input,
      fmt::format("{} bytes at {} are outside of {}, which has {}", bytes, *begin, tensor.name,
        tensor.bytes));
  buffer = *index;
  offset = static_cast<uint64_t>(*begin);
  return {};
}

result<bool> step_resolver::bind_memset(const plan_step& step, resolved_step& out) {
  out.what = resolved_step::op::memset;
  auto bytes = evaluate_int(step.bytes, scope_);
  if (!bytes)
    return at("bytes", bytes.error());
  if (*bytes < 0)
    return fail(errc::invalid_input, fmt::format("bytes: {} is negative", *bytes));
  out.bytes = static_cast<uint64_t>(*bytes);
  if (auto range = bind_range(step.dst, step.dst_offset, out.bytes, true, out.buffer, out.offset);
      !range)
    return at("dst", range.error());
  if (out.bytes % step.width != 0 || out.offset % step.width != 0)
    return fail(errc::invalid_input,
      fmt::format(
        "bytes {} and offset {} are not multiples of width {}", out.bytes, out.offset, step.width));
  out.width = step.width;
  out.value = step.value;
  return out.bytes > 0;
}

result<bool> step_resolver::bind_copy(const plan_step& step, resolved_step& out) {
  out.what = resolved_step::op::copy;
  auto bytes = evaluate_int(step.bytes, scope_);
  if (!bytes)
    return at("bytes", bytes.error());
  if (*bytes < 0)
    return fail(errc::invalid_input, fmt::format("bytes: {} is negative", *bytes));
  out.bytes = static_cast<uint64_t>(*bytes);
  if (auto range = bind_range(step.dst, step.dst_offset, out.bytes, true, out.buffer, out.offset);
      !range)
    return at("dst", range.error());
  if (auto range =
        bind_range(step.src, step.src_offset, out.bytes, false, out.src_buffer, out.src_offset);
      !range)
    return at("src", range.error());
  const bool overlap = out.buffer == out.src_buffer && out.offset < out.src_offset + out.bytes
    && out.src_offset < out.offset + out.bytes;
  if (overlap && out.bytes > 0)
    return fail(errc::invalid_input, "source and destination overlap");
  return out.bytes > 0;
}

} // namespace gristmill
