#include "gpu/cuda/measured_call.hpp"

#include <fmt/format.h>

namespace gristmill {

std::string to_string(flush_kind kind) {
  switch (kind) {
  case flush_kind::official:
    return "official";
  case flush_kind::clean:
    return "clean";
  }
  return "unknown";
}

result<flush_kind> flush_kind_of(std::string_view word) {
  for (auto kind : {flush_kind::official, flush_kind::clean})
    if (word == to_string(kind))
      return kind;
  return fail(errc::invalid_input,
    fmt::format("`{}` is no way to flush; there are \"official\" and \"clean\"", word));
}

} // namespace gristmill
