#include "simulation/presets/files.hpp"
#include "simulation/scenario_file.hpp"

#include <algorithm>

namespace gristmill {

const std::vector<preset>& presets() {
  static const std::vector<preset> all = [] {
    std::vector<preset> out;
    for (const auto& file : preset_files()) {
      preset p;
      p.toml = std::string(file.content);
      p.name = std::string(file.path.substr(0, file.path.rfind('.')));
      // The first line is a comment that says what it is.
      const auto end = p.toml.find('\n');
      p.what = p.toml.substr(2, end - 2);
      out.push_back(std::move(p));
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return out;
  }();
  return all;
}

} // namespace gristmill
