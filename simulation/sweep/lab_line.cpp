#include "simulation/sweep/lab_line.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

std::string clock_text(double seconds) {
  const auto whole = static_cast<uint64_t>(std::clamp(seconds, 0.0, 1e9));
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

} // namespace

std::string lab_line(double done, uint64_t total, std::chrono::seconds elapsed, size_t width) {
  const auto all = static_cast<double>(total);
  const auto gone = static_cast<double>(elapsed.count());
  std::string line =
    fmt::format("{} of {} runs | {:.0f} % | {}", static_cast<uint64_t>(std::clamp(done, 0.0, all)),
      total, all > 0 ? 100 * done / all : 100, clock_text(gone));
  if (done > 0 && gone >= 1)
    line += fmt::format(" | {} left", clock_text(gone * (all - done) / done));
  return line.substr(0, width);
}

} // namespace gristmill
