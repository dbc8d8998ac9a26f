#include "actors/measure_key.hpp"

#include "journal/hash.hpp"

#include <algorithm>

namespace gristmill {

namespace {

/// Texts with their lengths, so that no two lists of texts give the same bytes.
class key_writer {
public:
  void add(const std::string& text) {
    stream_.update(std::to_string(text.size()) + ":");
    stream_.update(text);
  }
  void add(size_t count) { stream_.update(std::to_string(count) + ";"); }
  std::string finish() { return stream_.finish_hex(); }

private:
  sha256_stream stream_;
};

void add(key_writer& key, const candidate_ref& candidate, const std::vector<compiled_unit>& units) {
  key.add(candidate.hash);
  key.add(candidate.source.sha256);
  key.add(candidate.plan.sha256);
  key.add(units.size());
  for (const auto& unit : units) {
    key.add(unit.key);
    key.add(unit.code.sha256);
    key.add(unit.entries.size());
    for (const auto& entry : unit.entries) {
      key.add(entry.expression);
      key.add(entry.symbol);
    }
  }
}

} // namespace

std::string measure_key(const measure_request& what) {
  key_writer key;
  key.add(what.attempt.problem);
  key.add(what.attempt.language);
  add(key, what.candidate, what.units);
  auto workloads = what.workloads; // In any order, the request says.
  std::sort(workloads.begin(), workloads.end());
  key.add(workloads.size());
  for (const auto& uuid : workloads)
    key.add(uuid);
  key.add(to_string(what.purpose));
  key.add(what.draw);
  key.add(size_t{what.against ? 1u : 0u});
  if (what.against)
    add(key, what.against->candidate, what.against->units);
  return key.finish();
}

} // namespace gristmill
