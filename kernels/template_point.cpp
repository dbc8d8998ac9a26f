#include "kernels/template_point.hpp"

#include <fmt/format.h>

namespace gristmill {

std::string key_of(const template_point& point) {
  std::string key;
  if (point.family == template_family::elementwise) {
    key = fmt::format("map/t{}/v{}/u{}", point.threads, point.width, point.unroll);
  } else {
    const char* keep = point.keep == row_keep::registers ? "reg"
      : point.keep == row_keep::shared                   ? "smem"
                                                         : "reread";
    key = fmt::format("row/t{}/r{}/v{}/{}/{}", point.threads, point.rows, point.width, keep,
      point.online ? "online" : "passes");
  }
  if (point.reuse)
    key += "/reuse";
  if (point.streaming)
    key += "/cs";
  if (point.fast)
    key += "/fast";
  return key;
}

} // namespace gristmill
