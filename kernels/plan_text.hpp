#pragma once

#include "protocol/definition.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// A tensor, axis or scalar as a launch plan names it without ambiguity: `in.x`, `axis("odd
/// name")`.
std::string qualified_name(std::string_view kind, std::string_view name);

/// Number of elements of dimension `index` of a tensor.
std::string dim_text(std::string_view kind, std::string_view tensor, size_t index);

/// Factors joined by `*`; "1" for none. Factors that are "1" are left out.
std::string product_text(const std::vector<std::string>& factors);

/// A name that neither an axis nor a tensor of the definition has: `wanted`, or that with
/// underscores.
std::string free_name(const definition& def, std::string wanted);

/// Lines for the top of a source whose plan defines those macros under their `free_name`: each gets
/// the name back that the source uses. Empty where nothing of the definition is in the way.
std::string macro_lines(const definition& def, const std::vector<std::string>& macros);

/// A valid, unreserved C++ identifier for each tensor and scalar of the definition, all different:
/// inputs first, then outputs. The name itself wherever it will do.
std::vector<std::string> cpp_identifiers(const definition& def);

} // namespace gristmill
