#pragma once

#include "kernels/search/search_space.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace gristmill {

/// The programs of a problem as a space to search. Remembers what keys mean and which neighbours
/// points have, because every proposal asks for the same ones again; that changes no answer. May be
/// asked by several threads at once.
class program_search_space final : public search_space {
public:
  explicit program_search_space(program_space programs);
  ~program_search_space() override;

  size_t partitions() const override;
  size_t stages(size_t partition) const override;
  size_t points(size_t partition, size_t stage) const override;
  uint64_t size() const override;
  program_point at(uint64_t index) const override;
  program_point first(size_t partition) const override;
  std::string key(const program_point& point) const override;
  std::optional<program_point> find(std::string_view key) const override;
  std::vector<program_point> neighbours(const program_point& point) const override;
  std::vector<program_point> promising() const override;
  std::string describe(const program_point& point) const override;
  std::string difference(const program_point& from, const program_point& to) const override;
  result<generated_kernel> generate(const program_point& point) const override;
  result<generated_kernel> generate(
    const std::vector<std::pair<std::string, program_point>>& groups) const override;
  std::vector<double> work_shares(size_t partition) const override;

private:
  program_space programs_;
  mutable std::mutex guard_;
  mutable std::unordered_map<std::string, std::optional<program_point>> found_;
  mutable std::unordered_map<std::string, std::vector<program_point>> neighbours_;
};

} // namespace gristmill
