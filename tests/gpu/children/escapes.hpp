#pragma once

#include "protocol/json_document.hpp"

namespace gristmill {

/// Tries to get out of a jail; `targets` says where to, and whether there is one: what could hurt
/// is tried inside only. For each try whether it worked: a bool, or a number of things in sight.
ordered_json try_escapes(const ordered_json& targets);

/// Starts processes until that is refused or there are `wanted`; they live on. Answers how many.
int fill_with_processes(int wanted);

/// Reserves files in the current folder until that is refused or they take `bytes` together.
/// Answers whether this file system can reserve at all.
bool fill_with_files(uint64_t bytes);

/// A process with a session of its own that nobody waits for.
void leave_daemon();

} // namespace gristmill
