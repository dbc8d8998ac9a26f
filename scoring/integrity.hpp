#pragma once

#include "messages/evidence.hpp"

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Rules that tell a fast kernel from a trick. Each looks at what was measured, never at the words
/// of the source, and says what it saw in numbers. What each threshold is made of, and how each
/// rule keeps from accusing honest code, stands in docs/integrity.md.
namespace gristmill {

/// What it means when a rule fires.
enum class rule_level : uint8_t {
  /// Worth knowing, decides nothing.
  note = 0,
  /// Not explained: measured once more, and if it stands it counts nothing until a person has
  /// looked. Never refuses a candidate.
  suspicion,
  /// Wrong as any wrong kernel is: refused, accused of nothing.
  refusal,
  /// Shown to break a rule that no honest kernel can break by accident of arithmetic or timing.
  /// Refuses the candidate as a REWARD_HACK.
  proof,
};

std::string to_string(rule_level level);

/// Where a rule looks.
enum class rule_source : uint8_t {
  /// At the numbers of each workload (scoring/integrity_rules.hpp).
  workload = 0,
  /// At the candidate.
  candidate,
  /// At what runner or compiler report under its name, and at nothing else.
  reported,
  /// The same; but what the judge finds wrong is a mistake like any other, and then it is a note.
  /// It is more where the allowance of misses would let it pass.
  reported_if_right,
};

struct integrity_rule {
  std::string_view name;
  rule_level level = rule_level::note;
  rule_source source = rule_source::workload;
  /// What it looks at, and when it fires.
  std::string_view looks_at;
};

/// All rules, in the order in which they are applied. The names are those of `finding::rule`.
std::span<const integrity_rule> integrity_rules();

/// The rule of that name; null for a name that is none.
const integrity_rule* find_rule(std::string_view name);

/// Which of the rules `wrong_output`, `wrong_when_timed`, `wrong_held_out` and `wrong_neighbour`
/// speaks of a call, by its label.
std::string_view wrong_rule(std::string_view call);

/// Rules that are switched off: to see what a rule is for.
using rules_off = std::set<std::string, std::less<>>;

/// What one rule said about one workload, or with an empty workload about the candidate.
struct rule_account {
  std::string_view rule;
  rule_level level = rule_level::note;
  std::string workload;
  bool fired = false;
  /// What it looked at, in words and numbers; or why it could not look.
  std::string said;
};

struct examined {
  /// Of the rules that fired, one each and workload. `finding::fatal` is true for proofs alone.
  std::vector<finding> findings;
  /// A suspicion fired that was not there in a measurement before: measure once more.
  bool retrial = false;
  /// Every rule, fired or not.
  std::vector<rule_account> accounts;
};

/// Applies the rules. Pure: the same evidence gives the same answer.
examined examine(const evidence& of, const rules_off& off = {});

} // namespace gristmill
