#pragma once

#include "cli/run_setup.hpp"
#include "protocol/device_description.hpp"

namespace gristmill {

/// The devices of `setup.settings.gpus` into the setup: groups, facts, rates of the floor, notes.
/// Real ones are asked for by a child with a deadline, so that a driver in trouble hangs nobody.
/// `invalid_input` for devices of two kinds or models in one run; `not_found` for a real one that
/// is not there, naming those that are; `unsupported` without a driver.
result<void> load_devices(run_setup& setup);

/// What `gristmill-runner --describe cuda:all` tells. Errors: `unsupported` with its own words,
/// `timed_out`.
result<std::vector<device_description>> describe_real_devices(
  const std::filesystem::path& programs);

/// How a run checks and times, from its settings and the kind of its devices. `invalid_input` names
/// the flag.
result<void> apply_measure_settings(run_setup& setup);

} // namespace gristmill
