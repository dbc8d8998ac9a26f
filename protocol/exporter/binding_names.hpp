#pragma once

#include "protocol/exporter/expression_code.hpp"
#include "tensors/dtype.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// What a name of the plan is called in the generated binding, by the rules of `plan_scope`.
class binding_names : public code_names {
public:
  struct entry {
    /// "axis", "in", "out", "scratch", or empty.
    std::string kind;
    std::string name;
    /// A `gm::value`, or for a tensor a `gm::buffer`.
    std::string code;
    bool is_tensor = false;
    dtype type = dtype::float32;
  };

  void add(entry what) { entries_.push_back(std::move(what)); }
  /// For names that end with their block: `reset(mark())` forgets what was added since.
  size_t mark() const { return entries_.size(); }
  void reset(size_t mark) { entries_.resize(mark); }
  bool knows(std::string_view name) const;

  /// The one entry that a name stands for; a failure when there is none or more than one.
  result<const entry*> find(const expression_name& name) const;
  /// The same, and it must be a tensor.
  result<const entry*> tensor(const expression_name& name) const;

  /// Gives the code of `occupancy(step)`.
  std::function<result<std::string>(const std::string&)> occupancy;

  result<std::string> value_code(const expression_name& name) const override;
  result<std::string> call_code(std::string_view function, const expression_name& subject,
    const std::string& index) const override;

private:
  std::vector<entry> entries_;
};

/// A text as a C++ string literal, quotes included.
std::string c_string(std::string_view text);

} // namespace gristmill
