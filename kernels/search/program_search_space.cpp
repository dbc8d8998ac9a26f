#include "kernels/search/program_search_space.hpp"

#include <utility>

namespace gristmill {

namespace {

/// Answers kept of each kind; a search asks for its trials and for its few best points.
constexpr size_t found_max = 16'384;
constexpr size_t neighbours_max = 64;

template <class Answer, class Ask>
Answer remembered(std::mutex& guard, std::unordered_map<std::string, Answer>& known, size_t limit,
  std::string key, Ask ask) {
  {
    const std::lock_guard lock(guard);
    if (const auto one = known.find(key); one != known.end())
      return one->second;
  }
  Answer answer = ask();
  const std::lock_guard lock(guard);
  if (known.size() >= limit)
    known.clear();
  known.emplace(std::move(key), answer);
  return answer;
}

} // namespace

program_search_space::program_search_space(program_space programs)
  : programs_(std::move(programs)) {}

program_search_space::~program_search_space() = default;

size_t program_search_space::partitions() const {
  return programs_.partitions();
}

size_t program_search_space::stages(size_t partition) const {
  return programs_.stages(partition);
}

size_t program_search_space::points(size_t partition, size_t stage) const {
  return programs_.points(partition, stage);
}

uint64_t program_search_space::size() const {
  return programs_.size();
}

program_point program_search_space::at(uint64_t index) const {
  return programs_.at(index);
}

program_point program_search_space::first(size_t partition) const {
  return programs_.first(partition);
}

std::string program_search_space::key(const program_point& point) const {
  return programs_.key(point);
}

std::optional<program_point> program_search_space::find(std::string_view key) const {
  return remembered(
    guard_, found_, found_max, std::string(key), [&] { return programs_.find(key); });
}

std::vector<program_point> program_search_space::neighbours(const program_point& point) const {
  return remembered(guard_, neighbours_, neighbours_max, programs_.key(point),
    [&] { return programs_.neighbours(point); });
}

std::vector<program_point> program_search_space::promising() const {
  return programs_.promising();
}

std::string program_search_space::describe(const program_point& point) const {
  return programs_.describe(point);
}

std::string program_search_space::difference(
  const program_point& from, const program_point& to) const {
  return programs_.difference(from, to);
}

result<generated_kernel> program_search_space::generate(const program_point& point) const {
  return programs_.generate(point);
}

result<generated_kernel> program_search_space::generate(
  const std::vector<std::pair<std::string, program_point>>& groups) const {
  return programs_.generate(groups);
}

std::vector<double> program_search_space::work_shares(size_t partition) const {
  return programs_.work_shares(partition);
}

} // namespace gristmill
