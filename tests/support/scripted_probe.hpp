#pragma once

#include "gpu/probe.hpp"

#include <string>
#include <vector>

namespace gristmill::test {

/// A probe of one command, "canary", on suspicion only: exit status 0 passes, another one fails,
/// and none could not be made. `says`, when it is not "passed", comes instead of a pass.
class scripted_probe final : public gpu_probe {
public:
  std::vector<std::vector<std::string>> commands(
    const std::string&, probe_occasion why) const override {
    occasions.push_back(why);
    if (why == probe_occasion::after_lease)
      return {};
    return {{"canary"}};
  }

  probe_report judge(const std::string&, const std::vector<probe_answer>& answers) override {
    judged = answers;
    if (answers.size() != 1 || !answers[0].status)
      return {probe_outcome::could_not, "no answer"};
    if (*answers[0].status != 0)
      return {probe_outcome::failed, "status " + std::to_string(*answers[0].status)};
    return says;
  }

  mutable std::vector<probe_occasion> occasions;
  std::vector<probe_answer> judged;
  probe_report says;
};

} // namespace gristmill::test
