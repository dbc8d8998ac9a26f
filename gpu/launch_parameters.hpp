#pragma once

#include "gpu/device.hpp"
#include "messages/result.hpp"
#include "protocol/resolve.hpp"

#include <cstdint>
#include <vector>

namespace gristmill {

/// The parameters of a launch as an entry expects them: each argument where `takes` says, or, on a
/// device that does not tell, at the next multiple of its size (128 for tensor maps). `addresses`
/// are those of the buffers, 0 for an empty one. Fails as `device::encode_tensor_map` does.
inline result<std::vector<uint8_t>> lay_out(const std::vector<resolved_argument>& args,
  const std::vector<device_pointer>& addresses, const function_properties& takes, device& gpu) {
  std::vector<uint8_t> parameters;
  const bool told = takes.parameters.size() == args.size();
  for (size_t i = 0; i < args.size(); ++i) {
    const resolved_argument& argument = args[i];
    std::vector<uint8_t> value = argument.bytes;
    size_t align = argument.bytes.size();
    // An empty buffer has no address; the kernel gets null.
    const device_pointer base =
      argument.what == resolved_argument::kind::bytes ? 0 : addresses[argument.buffer];
    if (argument.what == resolved_argument::kind::buffer) {
      const device_pointer address = base == 0 ? 0 : base + argument.offset;
      const auto* first = reinterpret_cast<const uint8_t*>(&address);
      value.assign(first, first + sizeof address);
      align = sizeof address;
    } else if (argument.what == resolved_argument::kind::maps) {
      for (const resolved_map& map : argument.maps) {
        const auto encoded = gpu.encode_tensor_map(base + map.offset, map.spec);
        if (!encoded)
          return pass(encoded);
        value.insert(value.end(), encoded->begin(), encoded->end());
      }
      align = tensor_map_bytes;
    }
    size_t at = align == 0 ? parameters.size() : (parameters.size() + align - 1) / align * align;
    if (told && takes.parameters[i].offset >= parameters.size())
      at = takes.parameters[i].offset;
    parameters.resize(at);
    parameters.insert(parameters.end(), value.begin(), value.end());
  }
  return parameters;
}

} // namespace gristmill
