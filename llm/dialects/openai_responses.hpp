#pragma once

#include "llm/dialects/dialect.hpp"

namespace gristmill {

/// "openai-responses": OpenAI's Responses, also of llama.cpp, vLLM and LM Studio. An answer is
/// whole with `response.completed` or `response.incomplete`, whose full response goes before the
/// deltas.
const dialect& openai_responses();

} // namespace gristmill
