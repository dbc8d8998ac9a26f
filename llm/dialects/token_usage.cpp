#include "llm/dialects/token_usage.hpp"

#include <algorithm>

namespace gristmill {

namespace {

/// Larger counts are no counts; sums of these cannot overflow.
constexpr uint64_t tokens_max = uint64_t{1} << 40;

std::optional<uint64_t> count_at(const ordered_json* value, std::string_view key) {
  const auto read = natural_at(value, key);
  return read && *read <= tokens_max ? read : std::nullopt;
}

/// Input and output, one of them from the total if need be.
bool complete(counted_tokens& counted) {
  if (!counted.input && counted.output && counted.total && *counted.total >= *counted.output)
    counted.input = *counted.total - *counted.output;
  if (!counted.output && counted.input && counted.total && *counted.total >= *counted.input)
    counted.output = *counted.total - *counted.input;
  return counted.input.has_value() && counted.output.has_value();
}

/// What is known of a usage that is not whole: a lower bound, and `unknown`.
llm_usage partial(const counted_tokens& counted) {
  llm_usage usage;
  usage.uncached_input = counted.input.value_or(0);
  usage.visible_output = counted.output.value_or(0);
  return usage;
}

void split_output(const counted_tokens& counted, llm_usage& usage) {
  const auto output = *counted.output;
  const auto reasoning = counted.reasoning.value_or(0);
  usage.reasoning = reasoning;
  const bool beside =
    counted.total && reasoning > 0 && *counted.total == *counted.input + output + reasoning;
  if (beside) {
    usage.visible_output = output;
  } else if (reasoning <= output) {
    usage.visible_output = output - reasoning;
  } else {
    usage.visible_output = output;
    usage.state = usage_state::estimated;
  }
}

} // namespace

counted_tokens read_openai_usage(const ordered_json* usage) {
  counted_tokens counted;
  const auto either = [&](std::string_view chat, std::string_view responses) {
    const auto read = count_at(usage, chat);
    return read ? read : count_at(usage, responses);
  };
  counted.input = either("prompt_tokens", "input_tokens");
  counted.output = either("completion_tokens", "output_tokens");
  counted.total = count_at(usage, "total_tokens");
  for (const auto* key : {"prompt_tokens_details", "input_tokens_details"}) {
    const auto* details = member(usage, key);
    if (!counted.cache_read)
      counted.cache_read = count_at(details, "cached_tokens");
    if (!counted.cache_write)
      counted.cache_write = count_at(details, "cache_write_tokens");
  }
  if (!counted.cache_read)
    counted.cache_read = count_at(usage, "prompt_cache_hit_tokens");
  for (const auto* key : {"completion_tokens_details", "output_tokens_details"})
    if (!counted.reasoning)
      counted.reasoning = count_at(member(usage, key), "reasoning_tokens");
  return counted;
}

llm_usage normalised_inclusive(const counted_tokens& read) {
  auto counted = read;
  if (!complete(counted))
    return partial(counted);
  llm_usage usage;
  usage.state = usage_state::exact;
  usage.cache_read = counted.cache_read.value_or(0);
  usage.cache_write = counted.cache_write.value_or(0);
  const auto cached = usage.cache_read + usage.cache_write;
  if (cached <= *counted.input) {
    usage.uncached_input = *counted.input - cached;
  } else {
    usage.uncached_input = *counted.input;
    usage.state = usage_state::estimated;
  }
  split_output(counted, usage);
  return usage;
}

llm_usage normalised_exclusive(const counted_tokens& counted) {
  if (!counted.input || !counted.output)
    return partial(counted);
  llm_usage usage;
  usage.state = usage_state::exact;
  usage.uncached_input = *counted.input;
  usage.cache_read = counted.cache_read.value_or(0);
  usage.cache_write = counted.cache_write.value_or(0);
  split_output(counted, usage);
  return usage;
}

llm_usage believed(llm_usage usage, size_t text_bytes) {
  if (usage.input() == 0 || (text_bytes > 0 && usage.output() == 0))
    usage.state = usage_state::unknown;
  return usage;
}

} // namespace gristmill
