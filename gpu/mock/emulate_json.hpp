#pragma once

#include "gpu/mock/emulate.hpp"
#include "protocol/json_document.hpp"
#include "protocol/workload.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// What was asked for, for the head of the document.
struct emulate_request {
  std::string kernel;
  std::string plan;
  std::string toolchain;
  std::string device;
  std::string problem;
  std::string workload;
  axis_values axes;
  ptx::check_set checks = 0;
  uint64_t order_seed = 1;
};

/// Where an output was written; `file` is empty when it was not.
struct emulated_output {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  std::string file;
};

/// "gristmill.emulate/1", as docs/emulate.md has it.
ordered_json to_json(
  const emulate_request& asked, const emulation& seen, const std::vector<emulated_output>& outputs);
/// The same for a kernel that was not run.
ordered_json refused_to_json(const emulate_request& asked, const std::string& why);

/// The report for people, at most a few screens.
std::string to_text(const emulate_request& asked, const emulation& seen);

} // namespace gristmill
