#include "gpu/mock/ptx/lanes/lanes.hpp"
#include "gpu/mock/ptx/memory.hpp"

namespace gristmill::ptx {

handler load_handler(std::string_view type, uint32_t register_bytes) {
  const bool is_signed = type == "s8" || type == "s16" || type == "s32";
  return lanes().load(is_signed, type_bytes(type), register_bytes);
}

handler store_handler(std::string_view type, uint32_t register_bytes) {
  return lanes().store(type_bytes(type), register_bytes);
}

} // namespace gristmill::ptx
