#include "kernels/addressing.hpp"

#include "kernels/plan_text.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

/// Whether a load keeps the dimensions d and d + 1 of the space together.
bool keeps_together(const ir_load& load, int d) {
  int previous = -1;
  bool uses_next = false;
  for (size_t i = 0; i < load.index.size(); ++i) {
    const index_term& term = load.index[i];
    if (term.dim == d + 1) {
      uses_next = true;
      if (previous != d || !load.is_full[i])
        return false;
    }
    // Dimensions of one element lie nowhere.
    if (term.dim >= 0 || !load.is_unit[i])
      previous = term.dim;
  }
  if (uses_next)
    return true;
  for (const index_term& term : load.index) {
    if (term.dim == d)
      return false;
  }
  return true;
}

} // namespace

std::vector<dim_group> group_dims(const fused_kernel& kernel, size_t first, size_t last) {
  std::vector<dim_group> groups;
  for (size_t d = first; d < last; ++d) {
    bool joins = !groups.empty();
    for (const ir_load& load : kernel.loads)
      joins = joins && keeps_together(load, static_cast<int>(d) - 1);
    if (joins) {
      groups.back().last = d;
      groups.back().size = product_text({groups.back().size, kernel.space[d].size});
    } else {
      groups.push_back({d, d, kernel.space[d].size});
    }
  }
  return groups;
}

tensor_access access_of(const ir_load& load, const fused_kernel& kernel, const definition& def,
  const std::vector<dim_group>& groups) {
  const tensor_spec& spec = def.inputs[static_cast<size_t>(load.input)];
  tensor_access access;
  access.strides.resize(groups.size());
  access.is_identity = load.index.size() == kernel.space.size();
  std::string base;
  for (size_t i = load.index.size(); i-- > 0;) {
    const index_term& term = load.index[i];
    std::vector<std::string> factors;
    for (size_t j = i + 1; j < load.index.size(); ++j) {
      // A dimension that is as long as the space's has one name, however many tensors have it.
      if (load.is_full[j])
        factors.push_back(kernel.space[static_cast<size_t>(load.index[j].dim)].size);
      else if (!load.is_unit[j])
        factors.push_back(dim_text("in", spec.name, j));
    }
    const std::string stride = product_text(factors);
    for (size_t g = 0; g < groups.size(); ++g) {
      // The stride of a group is that of its innermost dimension.
      if (term.dim == static_cast<int>(groups[g].last))
        access.strides[g] = stride;
    }
    if (!term.offset.empty()) {
      const std::string part = product_text(
        {term.offset.find(" + ") == std::string::npos ? term.offset : "(" + term.offset + ")",
          stride});
      base = base.empty() ? part : base + " + " + part;
    }
    const bool is_own = term.dim == static_cast<int>(i) && load.is_full[i];
    access.is_identity = access.is_identity && is_own;
  }
  access.base = std::move(base);
  return access;
}

std::vector<std::string> alignment_conditions(
  const tensor_access& access, const std::string& width) {
  std::vector<std::string> conditions;
  if (access.is_identity)
    return conditions;
  const auto add = [&](const std::string& amount) {
    // `%` binds as `*` does, from the left: only sums need brackets.
    const bool is_sum = amount.find(" + ") != std::string::npos;
    conditions.push_back((is_sum ? "(" + amount + ")" : amount) + " % " + width + " == 0");
  };
  for (size_t g = 0; g + 1 < access.strides.size(); ++g) {
    if (!access.strides[g].empty())
      add(access.strides[g]);
  }
  if (!access.base.empty())
    add(access.base);
  return conditions;
}

} // namespace gristmill
