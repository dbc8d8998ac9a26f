// Event streams of anthropic-messages: read, and never more made of them than they are.

#include "fuzz/dialect_stream.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gristmill::fuzz;
  read_stream("anthropic-messages", text_of(data, size));
  return 0;
}
