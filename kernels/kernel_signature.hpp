#pragma once

#include "kernels/addressing.hpp"
#include "kernels/kernel_ir.hpp"
#include "protocol/definition.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// The parameters of a generated kernel together with the arguments that its plan passes, and the
/// names that are taken in the source.
class kernel_signature {
public:
  /// Pointers to the inputs that the kernel reads, in order of the definition, then to all outputs,
  /// then the scalar inputs that it uses.
  kernel_signature(const fused_kernel& kernel, const definition& def);

  /// An integer parameter with the value of that plan expression; the same expression gives the
  /// same parameter, and a literal is no parameter at all. Returns its C++ text.
  std::string integer(std::string_view wanted_name, const std::string& plan_expression,
    std::string_view type = "int64_t");

  /// A parameter for a buffer of the plan; returns its name, which is `wanted` or like it.
  std::string buffer(std::string wanted, std::string_view type, std::string argument);

  /// A name that nothing in the source has yet.
  std::string fresh(std::string wanted);

  /// Element index of an access as C++ text, given the text of each group's index; "0" when nothing
  /// matters. Adds parameters for strides and the base; `cast` is put before each of them.
  std::string address(const tensor_access& access, std::string_view tensor,
    const std::vector<std::string>& group_indices, std::string_view cast);

  const std::string& input_name(int input) const {
    return identifiers_[static_cast<size_t>(input)];
  }
  const std::string& output_name(int output) const {
    return identifiers_[input_count_ + static_cast<size_t>(output)];
  }
  /// Parameters of the scalar inputs, by index of the input; empty text for the others.
  const std::vector<std::string>& scalar_names() const { return scalars_; }

  /// "const float* __restrict__ x, float* __restrict__ y, int64_t total"
  std::string declarations() const;
  /// "x, y, total"
  std::string names() const;
  const std::vector<std::string>& plan_arguments() const { return arguments_; }

private:
  void add(std::string declaration, std::string name, std::string argument);

  std::vector<std::string> identifiers_;
  size_t input_count_ = 0;
  std::vector<std::string> scalars_;
  std::vector<std::string> declarations_;
  std::vector<std::string> names_;
  std::vector<std::string> arguments_;
  std::map<std::pair<std::string, std::string>, std::string> integers_;
  std::set<std::string> taken_;
};

} // namespace gristmill
