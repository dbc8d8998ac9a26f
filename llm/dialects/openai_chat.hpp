#pragma once

#include "llm/dialects/dialect.hpp"

namespace gristmill {

/// "openai-chat": Chat Completions, as OpenAI, vLLM, SGLang, llama.cpp, Ollama, LM Studio, LiteLLM,
/// OpenRouter and Gemini's compatible endpoint speak it. An answer is whole with `[DONE]`.
const dialect& openai_chat();

} // namespace gristmill
