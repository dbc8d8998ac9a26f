#pragma once

#include "protocol/definition.hpp"
#include "tensors/dtype.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// How a kernel of a family sees the elements of a type: "float", "__nv_bfloat16", "int64_t", …
/// Throws `no_template` for types that no family computes with.
std::string_view storage_type(dtype type);

/// The parameters of a generated kernel together with the arguments that its plan passes. Names in
/// the source: `in_…` and `out_…` for tensors, `s_…` for scalars, `n0`, `n1`, … for sizes, so that
/// nothing else in a source may begin like that.
class kernel_parameters {
public:
  explicit kernel_parameters(const definition& def);

  /// The pointer to an input or an output of the definition.
  std::string input(size_t index);
  std::string output(size_t index);
  /// A null-shape input as a float.
  std::string scalar(size_t index);
  /// A size of type `index_t`; digits are no parameter.
  std::string size(const std::string& formula);
  /// A plan expression that is a float.
  std::string number(const std::string& formula);
  /// A buffer of the plan.
  std::string scratch(const std::string& name, std::string_view type);

  /// "const float* __restrict__ in_x, int64_t n0_", in order of their first use.
  std::string declarations() const;
  /// Lines for the top of the body: the sizes as `index_t`.
  std::string size_lines() const;
  const std::vector<std::string>& arguments() const { return arguments_; }
  /// `numel(…)` of every tensor among them, for the choice of `index_t`.
  const std::vector<std::string>& element_counts() const { return counts_; }

private:
  std::string add(const std::string& key, const std::string& declaration, const std::string& name);

  const definition& def_;
  std::vector<std::string> identifiers_;
  std::vector<std::string> declarations_;
  std::vector<std::string> arguments_;
  std::vector<std::string> size_lines_;
  std::vector<std::string> counts_;
  std::map<std::string, std::string> known_;
};

} // namespace gristmill
