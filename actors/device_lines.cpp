#include "actors/device_lines.hpp"

#include <fmt/format.h>

namespace gristmill {

std::vector<std::string> device_lines(const run_context& context) {
  const auto& facts = context.facts;
  auto terabytes = static_cast<double>(context.floor_bytes_per_second) / 1e12;
  auto teraflops = static_cast<double>(context.floor_flops_per_second) / 1e12;
  std::vector<std::string> out{fmt::format("device: {} ({})", context.device_model, context.arch),
    fmt::format("SMs: {}", facts.sm_count),
    fmt::format("shared memory per block: {} bytes", facts.smem_per_block),
    fmt::format("shared memory per SM: {} bytes", facts.smem_per_sm),
    fmt::format("L2: {} bytes", facts.l2_bytes),
    fmt::format("device memory: {:.2f} TB/s", terabytes),
    fmt::format("float32 without matrix units: {:.1f} TFLOP/s", teraflops)};
  const auto& macs = context.floor_macs_per_second;
  for (auto what : {mac_class::f16, mac_class::f8})
    if (auto rate = macs[static_cast<size_t>(what)]; rate > 0)
      out.push_back(fmt::format("matrix units, {}: {:.0f} TFLOP/s",
        mac_class_names[static_cast<size_t>(what)], 2 * static_cast<double>(rate) / 1e12));
  return out;
}

} // namespace gristmill
