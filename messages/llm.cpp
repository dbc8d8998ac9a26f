#include "messages/llm.hpp"

namespace gristmill {

std::string to_string(finish_kind kind) {
  switch (kind) {
  case finish_kind::stop:
    return "stop";
  case finish_kind::length:
    return "length";
  case finish_kind::refusal:
    return "refusal";
  case finish_kind::content_filter:
    return "content filter";
  case finish_kind::context_exceeded:
    return "context exceeded";
  case finish_kind::unknown:
    return "unknown";
  }
  return "unknown";
}

std::string to_string(usage_state state) {
  switch (state) {
  case usage_state::unknown:
    return "unknown";
  case usage_state::estimated:
    return "estimated";
  case usage_state::exact:
    return "exact";
  }
  return "unknown";
}

} // namespace gristmill
