#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace gristmill {

/// "12 of 60 runs | 1:10 | 4:40 left", no longer than `width`. `done` counts parts of runs.
std::string lab_line(double done, uint64_t total, std::chrono::seconds elapsed, size_t width);

} // namespace gristmill
