#pragma once

#include "gpu/mock/ptx/warp.hpp"

/// Moves of values of 8 and of 128 bits, which no arithmetic has, and what no call may reach.
namespace gristmill::ptx {

/// Registers of `list`, of which only the low byte counts, side by side into d, and back.
void pack_bytes(lane_state& s, const operation& o);
void unpack_bytes(lane_state& s, const operation& o);
/// 16 bytes.
void move_quad(lane_state& s, const operation& o);
/// The address in a is that of no function that the call could mean.
void call_of_nothing(lane_state& s, const operation& o);

} // namespace gristmill::ptx
