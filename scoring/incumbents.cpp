#include "scoring/incumbents.hpp"

#include "scoring/comparison.hpp"

#include <fmt/format.h>

namespace gristmill {

void incumbents::best_one::take(const candidate_ref& what, uint64_t ns, bool promoted) {
  if (!promoted && objective_ns != 0 && ns >= objective_ns)
    return;
  candidate = what;
  objective_ns = ns;
}

const incumbents::best_one* incumbents::find(const attempt_id& id) const {
  auto found = all_.find({id.problem, id.language});
  return found == all_.end() || found->second.candidate.hash.empty() ? nullptr : &found->second;
}

std::string incumbents::weigh(const judge_request& request, bool promotes, verdict& v) {
  auto& best = of(request.attempt);
  const bool promoted = request.purpose == measure_purpose::promotion;
  std::string compared;
  if (promoted) {
    compared = compare(request, v);
  } else {
    ++best.tried;
    if (promotes && request.kind != attempt_kind::baseline)
      screen(request, v);
  }
  if (v.status == verdict_status::passed && !v.wants_promotion && !v.incumbent_stays)
    best.take(request.candidate, v.objective_ns, promoted);
  return compared;
}

void incumbents::screen(const judge_request& request, verdict& v) const {
  const auto* best = find(request.attempt);
  if (best != nullptr
    && (v.objective_ns >= best->objective_ns || best->candidate.hash == request.candidate.hash))
    return; // It leads nowhere anyway.
  v.wants_promotion = true;
  if (best != nullptr)
    v.incumbent = best->candidate;
}

std::string incumbents::compare(const judge_request& request, verdict& v) const {
  const auto* best = find(request.attempt);
  if (request.against)
    v.incumbent = request.against->candidate;
  const std::string was = request.against ? request.against->candidate.hash : std::string{};
  std::string compared;
  if (best != nullptr && best->candidate.hash != was) { // Somebody else was promoted meanwhile.
    v.wants_promotion = v.objective_ns < best->objective_ns;
    v.incumbent_stays = !v.wants_promotion;
    v.incumbent = best->candidate;
    compared = fmt::format(
      "{} has become the incumbent meanwhile, with {} ns", best->candidate.key, best->objective_ns);
  } else if (request.against) {
    const auto found =
      compare_paired(request.measured.workloads, best == nullptr ? 1 : best->tried);
    compared = found.reason;
    if (found.answer == gain_answer::cannot_say) {
      v.status = verdict_status::infrastructure;
      v.reason = "the comparison with the incumbent cannot be read: " + found.reason;
      return compared;
    }
    v.incumbent_stays = found.answer != gain_answer::improves;
  }
  if (v.incumbent_stays)
    v.reason = "the incumbent stays: " + compared;
  return compared;
}

} // namespace gristmill
