#pragma once

#include "llm/dialects/dialect.hpp"

namespace gristmill {

/// "anthropic-messages": Anthropic's Messages, also of llama.cpp and LM Studio. An answer is whole
/// with `message_stop`.
const dialect& anthropic_messages();

} // namespace gristmill
