// gristmill.toml: read or refused, and a refused file changes nothing.

#include "fuzz/require.hpp"
#include "protocol/run_settings.hpp"

using namespace gristmill;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  run_settings settings;
  const auto untouched = to_toml(settings);
  const auto applied = apply_toml(settings, fuzz::text_of(data, size), "gristmill.toml");
  if (!applied) {
    fuzz::require(to_toml(settings) == untouched, "a refused file changes nothing");
    return 0;
  }
  run_settings again;
  fuzz::require(apply_toml(again, to_toml(settings), "again").has_value(),
    "settings that were written are read");
  fuzz::require(to_toml(again) == to_toml(settings), "settings that were written read the same");
  return 0;
}
