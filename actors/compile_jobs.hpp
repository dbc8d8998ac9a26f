#pragma once

#include "actors/candidate.hpp"
#include "gpu/toolchain/device_compiler.hpp"
#include "messages/child.hpp"
#include "messages/compile.hpp"
#include "protocol/job.hpp"

#include <map>
#include <string>
#include <vector>

namespace gristmill {

/// Units that were compiled in this run, by `cache_key`: what they became, or why not.
struct cached_unit {
  verdict_status status = verdict_status::compile_error;
  compiled_unit unit;
  std::string log;
  std::vector<finding> findings;
};

/// The units of a candidate, with the key of each in the cache.
struct keyed_unit {
  compile_unit what;
  std::string cache_key;
};

std::vector<keyed_unit> keyed_units(
  const run_context& context, const resolved_candidate& candidate, const device_compiler& compiler);

/// One job for the units that the cache lacks. `source_file` is written to the job's folder.
compile_job build_compile_job(const run_context& context, const resolved_candidate& candidate,
  const device_compiler& compiler, const std::vector<compile_unit>& units);

/// What the child made of the units, by unit key; the code goes into the blob store.
result<std::map<std::string, cached_unit>> read_compile_result(const run_context& context,
  const child_result& ended, const std::string& nonce, const std::string& job_folder);

/// The answer for a whole candidate, from the state of its units: the first unit that was refused
/// decides. The log of one that passed is that of all its units, at most 8 KiB.
compiled_candidate assemble(
  const std::string& candidate_hash, const std::vector<cached_unit>& units, bool all_cached);

} // namespace gristmill
