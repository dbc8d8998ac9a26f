#include "llm/mind/turn_plan.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace gristmill {

namespace {

/// How often in a row a failed candidate is mended before it is given up.
constexpr size_t mends_max = 2;
/// A diverse parent is at most this much slower than the best.
constexpr double diverse_slower_max = 2.0;

/// Numbers from a seed: splitmix64.
class chance {
public:
  explicit chance(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// 0 up to 1.
  double share() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  size_t below(size_t n) { return static_cast<size_t>(next() % n); }

private:
  uint64_t state_;
};

bool is_passed(const trial& t) {
  return t.status == verdict_status::passed && t.effort == attempt_effort::full
    && t.objective_ns > 0 && !t.candidate.hash.empty();
}

bool can_be_mended(const trial& t) {
  switch (t.status) { // no default: the compiler reports a missing case
  case verdict_status::compile_error:
  case verdict_status::incorrect_numerical:
  case verdict_status::incorrect_shape:
  case verdict_status::incorrect_dtype:
  case verdict_status::runtime_error:
  case verdict_status::timeout:
    return !t.candidate.hash.empty();
  case verdict_status::passed:
  case verdict_status::invalid_reference:
  case verdict_status::reward_hack:
  case verdict_status::not_checked:
  case verdict_status::infrastructure:
    return false;
  }
  return false;
}

/// The fastest; the earlier of equals.
std::optional<size_t> best_of(const trial_history& history) {
  std::optional<size_t> out;
  for (size_t i = 0; i < history.size(); ++i)
    if (is_passed(history[i]) && (!out || history[i].objective_ns < history[*out].objective_ns))
      out = i;
  return out;
}

const trial* find(const trial_history& history, const std::string& hash) {
  for (const auto& t : history)
    if (!hash.empty() && t.candidate.hash == hash)
      return &t;
  return nullptr;
}

/// Failures in a row that led to this one, itself included.
size_t failures_behind(const trial_history& history, const trial& last) {
  size_t n = 0;
  for (const auto* t = &last; t != nullptr && !is_passed(*t) && n <= history.size();
       t = find(history, t->candidate.parent))
    ++n;
  return n;
}

/// The worker's own newest candidate when it failed and is worth mending. A worker without a memory
/// of this problem takes the newest trial of all.
std::optional<size_t> to_mend(const trial_history& history, const own_work& own) {
  if (history.empty())
    return std::nullopt;
  size_t place = history.size() - 1;
  if (!own.proposed.empty()) {
    const auto found = std::find_if(history.begin(), history.end(),
      [&](const trial& t) { return t.candidate.hash == own.proposed.back(); });
    if (found == history.end())
      return std::nullopt;
    place = static_cast<size_t>(found - history.begin());
  }
  const auto& last = history[place];
  if (!can_be_mended(last) || failures_behind(history, last) > mends_max)
    return std::nullopt;
  const bool taken = std::any_of(history.begin(), history.end(),
    [&](const trial& t) { return t.candidate.parent == last.candidate.hash; });
  return taken ? std::nullopt : std::optional(place);
}

/// Passed ones that are not much slower than the best and were made in another way.
std::vector<size_t> diverse(const trial_history& history, size_t best) {
  std::vector<size_t> out;
  const auto limit = static_cast<double>(history[best].objective_ns) * diverse_slower_max;
  const auto strategy = strategy_of(history[best].key);
  for (size_t i = 0; i < history.size(); ++i)
    if (i != best && is_passed(history[i]) && static_cast<double>(history[i].objective_ns) <= limit
      && strategy_of(history[i].key) != strategy)
      out.push_back(i);
  return out;
}

/// The cards in an order that belongs to the problem.
std::vector<const strategy_card*> shuffled_cards(
  const protocol_program& program, const assignment& work) {
  std::vector<const strategy_card*> cards;
  for (const auto& card : program.cards)
    if (card.language == work.id.language)
      cards.push_back(&card);
  uint64_t seed = 0xcbf29ce484222325ull;
  for (const char c : work.id.problem)
    seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  chance order{seed};
  for (size_t i = cards.size(); i > 1; --i)
    std::swap(cards[i - 1], cards[order.below(i)]);
  return cards;
}

std::string choose_card(const protocol_program& program, const assignment& work,
  const std::vector<finished_turn>& turns, const own_work& own, bool only_new) {
  const auto cards = shuffled_cards(program, work);
  auto usable = [&](const strategy_card& card) {
    return check_strategy(program.rules, card.id, turns).has_value()
      && std::find(own.cards_refused.begin(), own.cards_refused.end(), card.id)
      == own.cards_refused.end();
  };
  auto is_new = [&](const strategy_card& card) {
    return std::none_of(
      turns.begin(), turns.end(), [&](const finished_turn& t) { return t.strategy == card.id; });
  };
  for (const bool fresh : {true, false})
    for (size_t i = 0; i < cards.size(); ++i) {
      const auto& card = *cards[(work.id.ordinal + i) % cards.size()];
      if (usable(card) && (!fresh || !only_new || is_new(card)))
        return card.id;
    }
  return {};
}

} // namespace

std::string model_key(std::string_view strategy, std::string_view hash) {
  return fmt::format("llm/{}/{}", strategy.empty() ? "free" : strategy, hash.substr(0, 16));
}

std::string strategy_of(std::string_view key) {
  constexpr std::string_view prefix = "llm/";
  if (!key.starts_with(prefix))
    return std::string(key.substr(0, key.find('/')));
  const auto rest = key.substr(prefix.size());
  const auto strategy = rest.substr(0, rest.rfind('/'));
  return strategy == "free" ? std::string{} : std::string(strategy);
}

std::vector<finished_turn> turns_of(const trial_history& history) {
  std::vector<finished_turn> out;
  for (const auto& t : history)
    if (t.status != verdict_status::infrastructure)
      out.push_back({strategy_of(t.key), is_passed(t), t.objective_ns});
  return out;
}

turn_plan plan_turn(const protocol_program& program, const assignment& work, const own_work& own) {
  turn_plan out;
  chance draw{work.seed};
  const auto& history = work.history;
  const auto turns = turns_of(history);
  out.best = best_of(history);
  if (out.best)
    out.enough = good_enough(program.rules, double(history[*out.best].floor_share));
  out.plateau = at_plateau(program.rules, turns);
  out.heat = draw.share();
  const bool diverge = draw.share() < (out.plateau ? 0.5 : 0.25);
  const bool free_choice = draw.share() < 1.0 / 3;
  const auto others = out.best ? diverse(history, *out.best) : std::vector<size_t>{};
  // After a refusal something else is asked for.
  if (auto broken = own.cards_refused.empty() ? to_mend(history, own) : std::nullopt;
      broken && check_strategy(program.rules, strategy_of(history[*broken].key), turns)) {
    out.parent = broken;
    out.repair = true;
    out.task = "Mend the fault of the parent that the feedback shows, and change nothing else. "
               "State in the hypothesis what caused it.";
    return out;
  }
  out.parent =
    diverge && !others.empty() ? std::optional(others[draw.below(others.size())]) : out.best;
  for (auto place : others)
    if (place != out.parent && out.inspirations.size() < program.rules.inspirations)
      out.inspirations.push_back(place);
  if (out.plateau) {
    out.card = choose_card(program, work, turns, own, true);
    out.task = fmt::format("The last {} attempts brought no gain worth having. Leave the present "
                           "structure: rebuild the kernel around another idea{}, and state what "
                           "it should change.",
      program.rules.plateau_attempts, out.card.empty() ? "" : ", the strategy shown here");
  } else if (!free_choice || !own.cards_refused.empty()) {
    out.card = choose_card(program, work, turns, own, false);
  }
  return out;
}

} // namespace gristmill
