#include "simulation/lab.hpp"

#include "journal/hash.hpp"
#include "simulation/actors/engine.hpp"
#include "simulation/scenario_file.hpp"

#include <chrono>
#include <utility>

namespace gristmill {

std::string_view to_string(lab_engine engine) {
  return engine == lab_engine::core ? "core" : "actors";
}

result<lab_result> run_lab(const scenario& what, lab_engine engine, lab_options options) {
  const auto began = std::chrono::steady_clock::now();
  auto out = engine == lab_engine::core ? run_core(what, std::move(options))
                                        : run_actors(what, std::move(options));
  if (out)
    out->wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return out;
}

std::string config_hash(const scenario& what) {
  return sha256_hex(canonical_toml(what));
}

} // namespace gristmill
