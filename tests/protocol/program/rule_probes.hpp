#pragma once

#include "protocol/program/program.hpp"

#include <functional>
#include <string>
#include <vector>

namespace gristmill::test {

/// How to see that a rule is enforced: under the small program the probe has one outcome, after the
/// edit of this one rule another.
struct rule_probe {
  std::string rule;
  /// Another value, in TOML, that the small program accepts as it is.
  std::string value;
  /// Goes through the production code; what it answers is compared.
  std::function<std::string(const protocol_program&)> outcome;
};

/// One for each rule.
const std::vector<rule_probe>& rule_probes();

/// Outcomes of the probe of a rule before and after its edit; the test fails when there is none.
struct probed {
  std::string before;
  std::string after;
};
probed probe(const std::string& rule);

} // namespace gristmill::test
