#pragma once

#include "simulation/core/engine.hpp"

#include <string>
#include <string_view>

namespace gristmill {

enum class lab_engine : uint8_t { core = 0, actors };

/// "core" or "actors", as flags and files write it.
std::string_view to_string(lab_engine engine);

/// Runs a scenario in an engine, with the planner that the scenario names (also "oracle"). The
/// other engine is the production broker actor with agents and devices as actors, in virtual time
/// (simulation/actors/engine.hpp). `wall_s` of the result is measured. Errors: as `run_core`, and
/// `invalid_input` for an unknown policy or planner.
result<lab_result> run_lab(const scenario& what, lab_engine engine, lab_options options);

/// What a result's header shows: SHA-256 of the canonical scenario (with policy and planner), seed
/// not included.
std::string config_hash(const scenario& what);

} // namespace gristmill
