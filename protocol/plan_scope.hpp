#pragma once

#include "protocol/expression.hpp"
#include "protocol/resolve.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// All names of one plan bound to one workload: axes, scalars, `let`, defines, device names and the
/// tensors. A bare name that means two things is an error; a qualified one never is.
class plan_scope : public expression_scope {
public:
  /// `kind` is "axis", "in" (a scalar input) or empty. The caller has checked that a name of the
  /// plan itself is new.
  void add_value(std::string kind, std::string name, expression_value value);
  /// For the variable of a repeat.
  void set_value(std::string_view name, expression_value value);
  void remove_value(std::string_view name);
  void add_buffer(const resolved_buffer& buffer, uint32_t index);
  /// Answers `occupancy(step)`.
  void set_occupancy(std::function<result<int64_t>(const std::string&)> occupancy) {
    occupancy_ = std::move(occupancy);
  }

  /// True when a value or a tensor has that bare name.
  bool knows(std::string_view name) const;
  /// The value of a plain name of the plan or an axis, for comparing a define with it.
  std::optional<expression_value> value_of(std::string_view name) const;
  /// The buffer that a name stands for; nothing when it stands for a value; a failure when it
  /// stands for nothing or for more than one thing.
  result<std::optional<uint32_t>> find_buffer(const expression_name& name) const;
  /// Like `find_buffer`, but a value is a failure too.
  result<uint32_t> buffer(const expression_name& name) const;
  /// True when the name is a scalar input.
  bool is_scalar_input(const expression_name& name) const;

  result<expression_value> lookup(const expression_name& name) const override;
  result<expression_value> call(std::string_view function, const expression_name& subject,
    std::optional<int64_t> index) const override;

private:
  struct entry {
    std::string kind;
    std::string name;
    /// Of a value.
    expression_value value;
    /// Of a tensor.
    std::optional<uint32_t> buffer;
  };

  /// The one entry that matches.
  result<const entry*> find(const expression_name& name) const;

  std::vector<entry> entries_;
  /// Shape, bytes and type of the tensors, by index.
  std::vector<resolved_buffer> buffers_;
  std::function<result<int64_t>(const std::string&)> occupancy_;
};

} // namespace gristmill
