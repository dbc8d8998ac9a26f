#pragma once

#include "protocol/program/program.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// One typed rule of a protocol file: what it says, who enforces it, which test violates it.
struct program_rule {
  /// As in the front matter: "candidate.source_bytes_max".
  std::string name;
  /// With the file's value; the instructions of every prompt have the same sentence.
  std::string says;
  /// "protocol/program/candidate_rules.cpp: check_candidate".
  std::string enforced_by;
  /// "tests/protocol/program/rules_test.cpp: …", the name of a test case.
  std::string violated_by;
};

/// The table of all rules, in the order of the front matter.
std::vector<program_rule> rule_table(const protocol_program& program);

} // namespace gristmill
