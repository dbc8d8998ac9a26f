#pragma once

#include "gpu/mock/ptx/warp.hpp"

#include <cstdint>
#include <string>

/// Where in the program something happened, for faults and findings.
namespace gristmill::ptx {

/// The line of the program that an instruction was made from.
source_place source_of(const kernel& code, const source_line& line);

/// "PTX line 41", and "PTX line 41 (kernel.cu:23)" where the PTX says.
std::string place_text(int ptx_line, const source_place& source);

/// An operation as a thread of a block executed it; `block` is the linear number.
executed_place place_of(
  const kernel& code, const launch& what, uint64_t block, size_t operation, uint32_t thread);

/// A fault of the current operation of `w`, as a whole sentence around `what`.
fault describe_fault(
  const warp& w, size_t operation, fault_kind kind, const std::string& what, uint32_t lane);

} // namespace gristmill::ptx
