#include "actors/candidate.hpp"

#include "actors/input_numbers.hpp"
#include "journal/hash.hpp"
#include "protocol/shrink.hpp"

#include <fmt/format.h>
#include <map>

namespace gristmill {

namespace {

/// More device code than this is no kernel of a person or an agent.
constexpr size_t source_bytes_max = size_t{1} << 20;

/// A failure that is the author's, whatever code the part gave that found it.
tl::unexpected<failure> blame_plan(const std::string& where, const failure& why) {
  return fail(errc::invalid_input, where + ": " + why.what);
}

result<candidate_workload> resolve_workload(
  const run_context& context, const problem& of, const workload& work, const plan& parsed) {
  candidate_workload out;
  out.uuid = work.uuid;
  auto full_numbers = all_numbers(context, of, work, input_set::clock);
  if (!full_numbers)
    return pass(full_numbers);
  auto check_numbers = all_numbers(context, of, work, input_set::check);
  if (!check_numbers)
    return pass(check_numbers);
  auto full = resolve_axes(of.def, work.axes);
  if (!full)
    return pass(full);
  auto check = shrink_axes(of.def, work, context.check_elements_max);
  if (!check)
    return pass(check);
  out.shrunken = *check != *full;
  out.check_axes = *check;
  auto where = fmt::format("launch plan, workload {}", work.uuid);
  auto at_true_size = resolve(parsed, of.def, *full, *full_numbers, context.facts);
  if (!at_true_size)
    return blame_plan(where, at_true_size.error());
  out.full = std::move(*at_true_size);
  auto at_check_size = resolve(parsed, of.def, *check, *check_numbers, context.facts);
  if (!at_check_size)
    return blame_plan(where + " (shrunken for the correctness run)", at_check_size.error());
  out.check = std::move(*at_check_size);
  if (out.check.unit.key != out.full.unit.key)
    return fail(errc::refused,
      fmt::format("{}: its shrunken twin would run unit '{}' instead of '{}', so the code that is "
                  "timed would not be checked; let no define depend on an axis that varies",
        where, out.check.unit.key, out.full.unit.key));
  return out;
}

} // namespace

result<resolved_candidate> resolve_candidate(
  const run_context& context, const std::string& problem_name, const candidate_ref& candidate) {
  auto found = context.problems.find(problem_name);
  if (found == context.problems.end())
    return fail(errc::not_found, fmt::format("no problem is called '{}'", problem_name));
  const auto& of = found->second;
  resolved_candidate out;
  auto source = context.blobs->get(candidate.source);
  if (!source)
    return pass(source);
  out.source = std::move(*source);
  auto text = context.blobs->get(candidate.plan);
  if (!text)
    return pass(text);
  auto parsed = parse_plan(*text);
  if (!parsed)
    return blame_plan("launch plan", parsed.error());
  out.parsed = std::move(*parsed);
  std::map<std::string, compile_unit> units;
  for (const auto& work : of.workloads) {
    auto resolved = resolve_workload(context, of, work, out.parsed);
    if (!resolved)
      return pass(resolved);
    units.emplace(resolved->full.unit.key, resolved->full.unit);
    out.workloads.push_back(std::move(*resolved));
  }
  if (units.size() > plan_limits::units)
    return fail(errc::invalid_input,
      fmt::format("launch plan: the workloads of {} need {} different units, and {} are allowed",
        problem_name, units.size(), plan_limits::units));
  for (auto& [key, unit] : units)
    out.units.push_back(std::move(unit));
  return out;
}

result<candidate_ref> store_candidate(blob_store& blobs, const std::string& source,
  const std::string& plan_text, std::string key, std::string parent, std::string hypothesis) {
  if (source.size() > source_bytes_max)
    return fail(errc::invalid_input,
      fmt::format("the source has {} bytes, and {} are allowed", source.size(), source_bytes_max));
  if (plan_text.size() > plan_limits::text_bytes)
    return fail(errc::invalid_input,
      fmt::format("the launch plan has {} bytes, and {} are allowed", plan_text.size(),
        plan_limits::text_bytes));
  auto source_ref = blobs.put(source);
  if (!source_ref)
    return pass(source_ref);
  auto plan_ref = blobs.put(plan_text);
  if (!plan_ref)
    return pass(plan_ref);
  candidate_ref out;
  out.hash = sha256_hex(source_ref->sha256 + plan_ref->sha256);
  out.source = *source_ref;
  out.plan = *plan_ref;
  out.key = std::move(key);
  out.parent = std::move(parent);
  out.hypothesis = std::move(hypothesis);
  return out;
}

} // namespace gristmill
