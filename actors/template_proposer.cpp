#include "actors/template_proposer.hpp"

#include "actors/candidate.hpp"
#include "kernels/baseline.hpp"
#include "kernels/search.hpp"

namespace gristmill {

namespace {

proposal nothing(proposal_kind kind, std::string reason) {
  proposal out;
  out.kind = kind;
  out.reason = std::move(reason);
  return out;
}

result<proposal> stored(const run_context& context, const std::string& source,
  const std::string& plan_text, std::string key, std::string parent, std::string hypothesis) {
  auto candidate = store_candidate(
    *context.blobs, source, plan_text, std::move(key), std::move(parent), std::move(hypothesis));
  if (!candidate)
    return pass(candidate);
  proposal out;
  out.kind = proposal_kind::candidate;
  out.candidate = *candidate;
  return out;
}

result<op_graph> graph_of(const run_context& context, const assignment& work) {
  auto text = context.blobs->get(work.graph);
  if (!text)
    return pass(text);
  return parse_op_graph(*text);
}

result<proposal> propose_baseline(
  const run_context& context, const problem& target, const assignment& work) {
  auto graph = graph_of(context, work);
  if (!graph)
    return pass(graph);
  auto plain = plain_baseline(target, *graph);
  if (!plain)
    return nothing(proposal_kind::no_candidate, plain.error().what);
  return stored(context, plain->source, plain->plan, plain->version, "",
    "the frozen plain kernel: its time is T_b");
}

} // namespace

result<proposal> propose_for(const run_context& context, const assignment& work,
  search_library& library, search_strategy strategy) {
  if (work.given) {
    proposal out;
    out.kind = proposal_kind::candidate;
    out.candidate = *work.given;
    return out;
  }
  auto found = context.problems.find(work.id.problem);
  if (found == context.problems.end())
    return fail(errc::not_found, "no problem is called '" + work.id.problem + "'");
  const auto& target = found->second;
  if (work.graph.sha256.empty())
    return nothing(proposal_kind::no_candidate, "its reference could not be traced to operators");
  if (work.kind == attempt_kind::baseline)
    return propose_baseline(context, target, work);
  auto found_space = library.find(context, target, work.graph);
  if (!found_space && found_space.error().code == errc::unsupported)
    return nothing(proposal_kind::no_candidate, found_space.error().what);
  if (!found_space)
    return pass(found_space);
  const searchable_problem& of = **found_space;
  // The fixed searches are measures to compare with: they learn from nothing.
  std::vector<std::string> relatives;
  if (strategy == search_strategy::guided)
    relatives = library.exchange(of, work.id.problem, work.history);
  auto next = propose(of.space,
    {of.workloads, work.history, work.in_flight, work.seed, relatives, of.check, {}}, strategy);
  switch (next.outcome) { // no default: the compiler reports a missing case
  case search_outcome::exhausted:
    return nothing(proposal_kind::exhausted, next.reason);
  case search_outcome::no_candidate:
    return nothing(proposal_kind::no_candidate, next.reason);
  case search_outcome::candidate:
    break;
  }
  auto& c = next.candidate;
  auto out = stored(context, c.source, c.plan, c.key, c.parent, c.hypothesis);
  if (out) {
    out->effort = c.effort;
    out->workloads = std::move(c.workloads);
  }
  return out;
}

template_proposer::template_proposer(caf::actor_config& actor, run_context_ptr context,
  std::shared_ptr<search_library> library, search_strategy strategy)
  : proposer_actor::base(actor), context_(std::move(context)), library_(std::move(library)),
    strategy_(strategy) {}

proposer_actor::behavior_type template_proposer::make_behavior() {
  seam::end_on_exception(this);
  return {[this](const propose_request& request) -> caf::result<proposal> {
    auto out = propose_for(*context_, request.work, *library_, strategy_);
    if (!out)
      return to_error(out.error());
    return *out;
  }};
}

scripted_proposer::scripted_proposer(caf::actor_config& actor, run_context_ptr context)
  : proposer_actor::base(actor), context_(std::move(context)) {}

proposer_actor::behavior_type scripted_proposer::make_behavior() {
  seam::end_on_exception(this);
  return {[this](const propose_request& request) -> caf::result<proposal> {
    if (request.work.kind == attempt_kind::search)
      return nothing(proposal_kind::exhausted, "only the given candidates are tried");
    search_library nothing_known; // A baseline or a given candidate: no search.
    auto out = propose_for(*context_, request.work, nothing_known, search_strategy::guided);
    if (!out)
      return to_error(out.error());
    return *out;
  }};
}

} // namespace gristmill
