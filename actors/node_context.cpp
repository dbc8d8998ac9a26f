#include "actors/node_context.hpp"

#include "actors/problem_blobs.hpp"
#include "kernels/builtin.hpp"
#include "messages/cluster.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

/// In the smallest schema: nodes need the bounds alone.
std::string bounds_text(const bounds_table& table) {
  ordered_json out{{"schema", "gristmill.bounds/1"}, {"source", table.source}, {"date", table.date},
    {"device", table.device}};
  auto& problems = out["problems"] = ordered_json::object();
  for (const auto& [name, workloads] : table.problems)
    for (const auto& [uuid, bound] : workloads)
      problems[name][uuid] = {{"t_sol_ns", bound.t_sol_ns}, {"t_b_ns", bound.t_b_ns}};
  return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

result<problem> problem_of(
  const problem_listing& listing, const blob_store& blobs, const std::filesystem::path& root) {
  if (!listing.files.empty())
    return restore_problem(blobs, root, listing);
  auto built_in = builtin_problem(listing.name);
  if (!built_in)
    return fail(errc::invalid_input,
      fmt::format(
        "the run has a built-in problem that this program has not: {}", built_in.error().what));
  return built_in;
}

} // namespace

result<run_terms> make_run_terms(const run_context& context, const run_terms_rest& rest) {
  run_terms out;
  static_cast<run_rules&>(out) = context;
  out.run = rest.run;
  out.rehearsal = rest.rehearsal;
  out.proposer = rest.proposer;
  out.estimated_hold = rest.estimated_hold;
  out.run_end = rest.run_end;
  if (context.bounds) {
    auto stored = context.blobs->put(bounds_text(*context.bounds));
    if (!stored)
      return pass(stored);
    out.bounds = *stored;
  }
  // A rehearsal has nothing to prepare, compile or compare: only the names of its problems count.
  if (!rest.rehearsal)
    for (const auto& [name, one] : context.problems) {
      auto listing = store_problem(*context.blobs, one);
      if (!listing)
        return pass(listing);
      out.problems.push_back(std::move(*listing));
    }
  if (auto bytes = to_json(out).size(); bytes > cluster_text_max)
    return fail(errc::invalid_input,
      fmt::format("the terms of the run are {} bytes for {} problems; a cluster takes {}: give "
                  "fewer problems a run",
        bytes, out.problems.size(), cluster_text_max));
  return out;
}

std::vector<blob_ref> blobs_of(const run_terms& terms) {
  std::vector<blob_ref> out;
  if (!terms.bounds.sha256.empty())
    out.push_back(terms.bounds);
  for (const auto& listing : terms.problems)
    for (const auto& ref : blobs_of(listing))
      out.push_back(ref);
  return out;
}

result<run_context> make_node_context(const run_terms& terms, const node_folders& own) {
  run_context out;
  static_cast<run_rules&>(out) = terms;
  out.directory = own.directory;
  out.programs = own.programs;
  out.blobs = own.blobs;
  out.python = own.python;
  out.blob_roots = own.blob_roots;
  if (terms.oracle == "torch" && own.python.empty() && !terms.rehearsal)
    return fail(errc::unsupported,
      "the run asks for --oracle torch, and this machine has no Python with torch; give --python");
  if (!terms.bounds.sha256.empty()) {
    auto text = own.blobs->get(terms.bounds);
    if (!text)
      return pass(text);
    auto table = parse_bounds(*text, "bounds");
    if (!table)
      return pass(table);
    out.bounds = std::move(*table);
  }
  for (const auto& listing : terms.problems) {
    auto one = problem_of(listing, *own.blobs, own.directory / "problems");
    if (!one)
      return pass(one);
    out.problems.emplace(listing.name, std::move(*one));
  }
  return out;
}

bool same_context(const run_terms& a, const run_terms& b) {
  auto other = b;
  other.proposer = a.proposer;
  other.estimated_hold = a.estimated_hold;
  other.run_end = a.run_end;
  return a == other;
}

} // namespace gristmill
