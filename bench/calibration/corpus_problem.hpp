#pragma once

#include "messages/result.hpp"
#include "protocol/plan.hpp"
#include "protocol/resolve.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gristmill::calibration {

/// One plan of one folder of tests/corpus/device_kernels, bound to its small and its large size.
struct corpus_kernel {
  /// Folder, or folder.setting where a folder has several plans.
  std::string name;
  std::string folder;
  std::string source;
  plan_options options;
  /// A point of a template has no small size.
  result<resolved_workload> small = fail(errc::not_found, "not resolved");
  result<resolved_workload> large = fail(errc::not_found, "not resolved");
  /// The lines of corpus.txt.
  std::string lines;
};

/// Reads every folder of the corpus, sorted by name. A wrong file is a failure that names it.
result<std::vector<corpus_kernel>> load_corpus(const std::filesystem::path& folder);

/// The whole text of corpus.txt.
std::string corpus_text(const std::vector<corpus_kernel>& kernels);

/// How an input is drawn, as `case_buffer::fill` has it: "uniform 1".
using fill_of_input = std::function<result<std::string>(const std::string& input)>;

/// The lines of corpus.txt for one size ("small", "large") of a kernel. `unsupported` for a tensor
/// map that the harness does not encode.
result<std::string> size_lines(const std::string& which, const axis_values& axes,
  const resolved_workload& work, const fill_of_input& fill);

/// The facts of the GPU that the corpus is bound to: an H200.
device_facts corpus_device();

} // namespace gristmill::calibration
