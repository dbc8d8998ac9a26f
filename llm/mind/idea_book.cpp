#include "llm/mind/idea_book.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr size_t handoffs_max = 4;
constexpr size_t failures_max = 6;
/// More than workers of one problem have in flight.
constexpr size_t proposals_max = 64;
constexpr size_t knowledge_max = 4;

/// The newest stay; a text that is there already moves to the end.
void push(std::vector<std::string>& list, std::string text, size_t most) {
  std::erase(list, text);
  list.push_back(std::move(text));
  if (list.size() > most)
    list.erase(list.begin());
}

bool share_one(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::any_of(a.begin(), a.end(),
    [&](const std::string& one) { return std::find(b.begin(), b.end(), one) != b.end(); });
}

} // namespace

void idea_book::set_insights(const std::string& problem, std::vector<std::string> lines) {
  const std::lock_guard lock(guard_);
  pages_[problem].insights = std::move(lines);
}

std::vector<std::string> idea_book::insights(const std::string& problem) const {
  const std::lock_guard lock(guard_);
  const auto found = pages_.find(problem);
  return found == pages_.end() ? std::vector<std::string>{} : found->second.insights;
}

bool idea_book::take_reflection(const std::string& problem, uint64_t attempts) {
  const std::lock_guard lock(guard_);
  auto& at = pages_[problem].reflected_at;
  if (attempts <= at)
    return false;
  at = attempts;
  return true;
}

void idea_book::note_handoff(const std::string& problem, std::string note) {
  const std::lock_guard lock(guard_);
  push(pages_[problem].handoffs, std::move(note), handoffs_max);
}

std::vector<std::string> idea_book::handoffs(const std::string& problem) const {
  const std::lock_guard lock(guard_);
  const auto found = pages_.find(problem);
  return found == pages_.end() ? std::vector<std::string>{} : found->second.handoffs;
}

void idea_book::note_failure(const std::string& problem, std::string line) {
  const std::lock_guard lock(guard_);
  push(pages_[problem].failures, std::move(line), failures_max);
}

std::vector<std::string> idea_book::failures(const std::string& problem) const {
  const std::lock_guard lock(guard_);
  const auto found = pages_.find(problem);
  return found == pages_.end() ? std::vector<std::string>{} : found->second.failures;
}

void idea_book::note_lesson(const std::string& problem, const std::string& structure,
  const std::vector<std::string>& operators, lesson what) {
  const std::lock_guard lock(guard_);
  auto& page = pages_[problem];
  page.structure = structure;
  page.operators = operators;
  page.best = std::move(what);
}

std::vector<std::string> idea_book::knowledge(const std::string& problem,
  const std::string& structure, const std::vector<std::string>& operators) const {
  struct related {
    bool same = false;
    double speedup = 0;
    std::string line;
  };
  std::vector<related> found;
  const std::lock_guard lock(guard_);
  for (const auto& [name, page] : pages_) {
    if (name == problem || page.best.speedup <= 0)
      continue;
    const bool same = !structure.empty() && page.structure == structure;
    if (!same && !share_one(page.operators, operators))
      continue;
    auto line = fmt::format("{} ({}): {:.2f}x by {}: {}", name,
      same ? "the same computation" : "shares an operator", page.best.speedup, page.best.strategy,
      page.best.hypothesis);
    if (!page.insights.empty())
      line += "; " + page.insights.front();
    found.push_back({same, page.best.speedup, std::move(line)});
  }
  std::stable_sort(found.begin(), found.end(), [](const related& a, const related& b) {
    return a.same != b.same ? a.same : a.speedup > b.speedup;
  });
  std::vector<std::string> out;
  for (auto& one : found)
    if (out.size() < knowledge_max)
      out.push_back(std::move(one.line));
  return out;
}

void idea_book::note_proposal(const std::string& problem, earlier_source what) {
  const std::lock_guard lock(guard_);
  auto& list = pages_[problem].proposals;
  list.push_back(std::move(what));
  if (list.size() > proposals_max)
    list.erase(list.begin());
}

std::vector<earlier_source> idea_book::proposals(const std::string& problem) const {
  const std::lock_guard lock(guard_);
  const auto found = pages_.find(problem);
  return found == pages_.end() ? std::vector<earlier_source>{} : found->second.proposals;
}

} // namespace gristmill
