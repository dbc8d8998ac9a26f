#include "cli/find_program.hpp"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

namespace gristmill {

namespace fs = std::filesystem;

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

std::string find_program(const std::string& name) {
  std::error_code error;
  if (name.find('/') != std::string::npos)
    return is_program(name) ? fs::absolute(name, error).string() : std::string{};
  const char* set = std::getenv("PATH");
  const std::string all = set == nullptr ? "" : set;
  for (size_t at = 0; at <= all.size();) {
    const auto end = std::min(all.find(':', at), all.size());
    if (end > at)
      if (const auto path = fs::path(all.substr(at, end - at)) / name; is_program(path))
        return fs::absolute(path, error).string();
    at = end + 1;
  }
  return {};
}

} // namespace gristmill
