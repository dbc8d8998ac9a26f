// The header of a safetensors file: read or refused, and every tensor of it lies within the file.

#include "fuzz/require.hpp"
#include "tensors/safetensors.hpp"

#include <algorithm>

using namespace gristmill;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> file{reinterpret_cast<const std::byte*>(data), size};
  const auto tensors = parse_safetensors(file);
  if (!tensors) {
    fuzz::require(!tensors.error().what.empty(), "a refusal says why");
    return 0;
  }
  std::vector<safetensor_source> sources;
  for (const auto& each : *tensors) {
    fuzz::require(
      each.offset <= size && each.bytes <= size - each.offset, "a tensor lies within its file");
    if (!each.type)
      continue;
    const auto content = find_safetensor(*tensors, file, each.name, *each.type, each.shape, "f");
    // Both fp4 types have one name, and an empty tensor of a packed type may be odd.
    fuzz::require(!content || content->size() == each.bytes, "the content has its size");
    sources.push_back({each.name, *each.type, each.shape, file.subspan(each.offset, each.bytes)});
  }
  const auto made = make_safetensors(sources);
  if (!made)
    return 0;
  const auto again = parse_safetensors(*made);
  fuzz::require(again && again->size() == sources.size(), "a file that was written can be read");
  return 0;
}
