#pragma once

#include "actors/interfaces.hpp"
#include "actors/run_context.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace gristmill {

struct judge_config {
  run_context_ptr context;
  child_front_actor child_front;
  std::chrono::nanoseconds deadline = std::chrono::minutes{5};
};

/// Has outputs compared with references by a `gristmill-judge` child, on the machine where both
/// lie. The outputs are removed when it answers, however that is. A folder that no runner of this
/// run has made is neither read nor removed: `invalid_input`.
class judge final : public judge_actor::base {
public:
  judge(caf::actor_config& actor, judge_config config);

  const char* name() const override { return "judge"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  using promise = caf::typed_response_promise<evaluation>;

  caf::result<evaluation> compare(const judge_request& request);
  promise take(uint64_t child);

  judge_config config_;
  /// By the number of the child.
  std::map<uint64_t, promise> open_;
};

/// Removes the outputs of a measurement; nothing where no runner of this run made the folder, such
/// as that of another machine.
void remove_outputs(const run_context& context, const measurement& measured);

} // namespace gristmill
