#include "scoring/floor.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace gristmill {

namespace {

using wide = unsigned __int128;

// Whole nanoseconds that `amount` needs at `rate` a second, rounded up.
result<uint64_t> time_at(uint64_t amount, uint64_t rate, const char* what) {
  if (amount == 0)
    return uint64_t{0};
  if (rate == 0)
    return fail(errc::invalid_input,
      fmt::format("the floor needs a rate for {} {}, but the device states none", amount, what));
  wide ns = (wide{amount} * 1'000'000'000u + rate - 1) / rate;
  if (ns > std::numeric_limits<uint64_t>::max())
    return fail(errc::invalid_input,
      fmt::format(
        "{} {} at {} a second take more nanoseconds than 64 bits hold", amount, what, rate));
  return static_cast<uint64_t>(ns);
}

} // namespace

result<time_floor> stated_floor(const work_amount& work, const device_rates& rates) {
  auto memory = time_at(work.bytes, rates.bytes_per_second, "bytes");
  if (!memory)
    return pass(memory);
  auto compute = time_at(work.flops, rates.flops_per_second, "flops");
  if (!compute)
    return pass(compute);
  uint64_t matrix = 0;
  std::string matrix_text;
  for (size_t i = 0; i < mac_classes; ++i) {
    auto part = time_at(work.macs[i], rates.macs_per_second[i], "multiply-adds");
    if (!part)
      return pass(part);
    if (__builtin_add_overflow(matrix, *part, &matrix))
      return fail(errc::invalid_input, "the multiply-adds take more nanoseconds than 64 bits hold");
    if (work.macs[i] > 0)
      matrix_text +=
        fmt::format("{}{} {} multiply-adds / {} a second", matrix_text.empty() ? "" : " + ",
          work.macs[i], mac_class_names[i], rates.macs_per_second[i]);
  }
  time_floor out;
  out.ns = std::max({*memory, *compute, matrix, uint64_t{1}});
  out.method = fmt::format(
    "stated bytes-and-flops floor: max({} bytes / {} bytes/s", work.bytes, rates.bytes_per_second);
  if (work.flops > 0)
    out.method += fmt::format(", {} flops / {} flops/s", work.flops, rates.flops_per_second);
  else
    out.method += ", flops not stated";
  if (!matrix_text.empty())
    out.method += ", " + matrix_text;
  out.method += ')';
  return out;
}

uint64_t physical_floor(const physical_limits& limits, uint64_t output_bytes) {
  if (limits.write_bytes_per_second == 0)
    return limits.shortest_kernel_ns;
  const wide ns = wide{output_bytes} * 1'000'000'000u / limits.write_bytes_per_second;
  const wide most = std::numeric_limits<uint64_t>::max();
  return std::max(limits.shortest_kernel_ns, static_cast<uint64_t>(std::min(ns, most)));
}

} // namespace gristmill
