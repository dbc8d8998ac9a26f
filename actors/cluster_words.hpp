#pragma once

#include <string_view>

namespace gristmill {

/// Texts in the messages of hub and agent that the other side acts on; all others are for people.

/// How the reason of a `node_farewell` begins with which a hub ends for good, and that of the
/// `node_welcome` which turns away who comes while it ends. Any other farewell ends a stay: the
/// node may offer itself anew.
inline constexpr std::string_view run_is_over = "the run is over";

/// How the reason of a `node_welcome` begins that will not be another one the next time: the node
/// ends. After any other refusal it offers itself again later.
inline constexpr std::string_view refused_for_good = "turned away for good: ";

/// In `node_answer::what` of a measurement that the node held since before it was asked for.
inline constexpr std::string_view handed_in_answer = "held";

} // namespace gristmill
