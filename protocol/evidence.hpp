#pragma once

#include "messages/evidence.hpp"
#include "messages/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace gristmill {

/// No evidence is larger; the samples of a few hundred workloads fill a tenth of it.
inline constexpr size_t evidence_bytes_max = size_t{16} << 20;

/// The text, schema "gristmill.evidence/1": one line of strict JSON, keys in a fixed order, no
/// paths. Errors: `refused` when it would be larger than `evidence_bytes_max`.
result<std::string> to_json(const evidence& what);

/// The reverse. Strict: an unknown or a missing key, a wrong type, another schema is
/// `invalid_input` that names the field. `measurement::output_folder` is not kept: what lay there
/// is gone.
result<evidence> evidence_from_json(std::string_view text);

} // namespace gristmill
