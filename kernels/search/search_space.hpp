#pragma once

#include "kernels/lowering/program_space.hpp"
#include "kernels/template_point.hpp"
#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// What a search walks over: the programs of a `program_space`, or a made-up space of a test or a
/// benchmark. The functions mean what they mean there; all are pure.
class search_space {
public:
  virtual ~search_space() = default;

  virtual size_t partitions() const = 0;
  virtual size_t stages(size_t partition) const = 0;
  virtual size_t points(size_t partition, size_t stage) const = 0;
  virtual uint64_t size() const = 0;
  virtual program_point at(uint64_t index) const = 0;
  virtual program_point first(size_t partition) const = 0;
  virtual std::string key(const program_point& point) const = 0;
  virtual std::optional<program_point> find(std::string_view key) const = 0;
  virtual std::vector<program_point> neighbours(const program_point& point) const = 0;
  /// Points to try right after the first, the best guess first; may be empty.
  virtual std::vector<program_point> promising() const { return {}; }
  virtual std::string describe(const program_point& point) const = 0;
  virtual std::string difference(const program_point& from, const program_point& to) const = 0;
  virtual result<generated_kernel> generate(const program_point& point) const = 0;
  virtual result<generated_kernel> generate(
    const std::vector<std::pair<std::string, program_point>>& groups) const = 0;
  virtual std::vector<double> work_shares(size_t partition) const = 0;
};

} // namespace gristmill
