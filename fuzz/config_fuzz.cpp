// The config.json of a problem folder: read or refused; what was read can be written and read
// again.

#include "fuzz/require.hpp"
#include "protocol/config_file.hpp"

using namespace gristmill;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config = parse_config_file(fuzz::text_of(data, size), "config.json");
  if (!config) {
    fuzz::require(!config.error().what.empty(), "a refusal says why");
    return 0;
  }
  fuzz::require(config->warmup_runs >= 0 && config->iterations > 0, "the ranges hold");
  const auto again = parse_config_file(to_json(*config), "again");
  fuzz::require(again && *again == *config, "a configuration that was written reads the same");
  return 0;
}
