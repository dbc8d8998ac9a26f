#pragma once

#include "kernels/search/search_space.hpp"
#include "kernels/search/workload_groups.hpp"
#include "messages/attempt.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gristmill::test {

/// A family of a made-up space: parameters with their values.
struct synthetic_family {
  std::string name;
  std::vector<std::pair<std::string, std::vector<int64_t>>> parameters;
  /// Times of its points are multiplied by it.
  double factor = 1;
};

struct synthetic_stage {
  /// Best first.
  std::vector<synthetic_family> families;
  /// Share of the work of its partition.
  double work = 1;
};

/// How a made-up space looks, and the seed of its cost surface.
struct synthetic_shape {
  std::vector<std::vector<synthetic_stage>> partitions;
  /// Values of the only axis, M, of the workloads; the work grows with it.
  std::vector<int64_t> sizes{4096};
  uint64_t seed = 1;
  /// How far the best values move between a small and a large workload, in steps.
  double drift = 0;
  /// Largest random factor of a single point, such as 0.03; the surface is rough by it.
  double rough = 0.02;
};

/// Programs that are never generated, with times that a formula gives: each parameter has a best
/// value, the time rises with the square of the distance from it, pairs of parameters lean on each
/// other. So the optimum is known, and a search can be measured in milliseconds.
class synthetic_space final : public search_space {
public:
  explicit synthetic_space(synthetic_shape shape);

  size_t partitions() const override { return shape_.partitions.size(); }
  size_t stages(size_t partition) const override { return shape_.partitions[partition].size(); }
  size_t points(size_t partition, size_t stage) const override;
  uint64_t size() const override;
  program_point at(uint64_t index) const override;
  program_point first(size_t partition) const override;
  std::string key(const program_point& point) const override;
  std::optional<program_point> find(std::string_view key) const override;
  std::vector<program_point> neighbours(const program_point& point) const override;
  std::string describe(const program_point& point) const override;
  std::string difference(const program_point& from, const program_point& to) const override;
  result<generated_kernel> generate(const program_point& point) const override;
  result<generated_kernel> generate(
    const std::vector<std::pair<std::string, program_point>>& groups) const override;
  std::vector<double> work_shares(size_t partition) const override;

  const std::vector<search_workload>& workloads() const { return workloads_; }
  /// Nanoseconds at each workload.
  std::vector<uint64_t> times(const program_point& point) const;
  /// The verdict on a key of the search, as the run would have it in its history: for a probe of
  /// these workloads only. Every point passes. Keys with several configurations must be readable.
  trial judge(const std::string& key, const std::vector<std::string>& probed = {}) const;

private:
  struct place {
    const synthetic_family* family = nullptr;
    size_t family_number = 0;
    /// Place of each parameter's value.
    std::vector<size_t> values;
  };

  place place_of(size_t partition, size_t stage, size_t point) const;
  size_t number_of(size_t partition, size_t stage, const place& where) const;
  std::string stage_key(const place& where) const;
  double log_factor(size_t partition, size_t stage, const place& where, double size) const;

  synthetic_shape shape_;
  std::vector<search_workload> workloads_;
};

/// One stage, one family "f", some parameters of five values each.
synthetic_shape one_family(size_t parameters, uint64_t seed);

/// Two cuts into stages, several families; some thousands to millions of points.
synthetic_shape several_stages(uint64_t seed);

} // namespace gristmill::test
