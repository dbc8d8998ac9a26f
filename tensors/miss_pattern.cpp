#include "tensors/miss_pattern.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr size_t side = 8;

/// Sums over the tiles for which `holds(row, column)`.
template <class Predicate>
uint64_t sum_where(std::span<const uint32_t> tiles, Predicate holds) {
  uint64_t sum = 0;
  for (size_t row = 0; row < side; ++row)
    for (size_t column = 0; column < side; ++column)
      if (holds(row, column))
        sum += tiles[row * side + column];
  return sum;
}

bool is_most(uint64_t part, uint64_t total) {
  return part * 10 >= total * 9;
}

/// "first", "last", or nothing: the end of a dimension that holds the misses.
const char* end_of(const std::array<uint64_t, side>& counts, uint64_t total) {
  if (is_most(counts[side - 1], total) || is_most(counts[side - 1] + counts[side - 2], total))
    return "last";
  if (is_most(counts[0], total) || is_most(counts[0] + counts[1], total))
    return "first";
  return nullptr;
}

/// How many eighths have any miss.
size_t touched(const std::array<uint64_t, side>& counts) {
  size_t n = 0;
  for (uint64_t count : counts)
    n += count != 0;
  return n;
}

/// "band 3 of 8", when nearly all lie in one that is no end.
std::string band_of(const std::array<uint64_t, side>& counts, uint64_t total, const char* what) {
  for (size_t i = 0; i < side; ++i)
    if (is_most(counts[i], total))
      return fmt::format("the {} eighth of the {}",
        std::array{"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "last"}[i],
        what);
  return {};
}

} // namespace

std::string describe_misses(std::span<const uint32_t> tiles) {
  if (tiles.size() != side * side)
    return {};
  const uint64_t total = sum_where(tiles, [](size_t, size_t) { return true; });
  if (total == 0)
    return {};
  std::array<uint64_t, side> rows{};
  std::array<uint64_t, side> columns{};
  for (size_t i = 0; i < tiles.size(); ++i) {
    rows[i / side] += tiles[i];
    columns[i % side] += tiles[i];
  }
  const char* row_end = end_of(rows, total);
  const char* column_end = end_of(columns, total);
  if (row_end && column_end)
    return fmt::format("misses cluster in the {} rows and the {} columns", row_end, column_end);
  if (column_end)
    return fmt::format("misses cluster in the {} columns", column_end);
  if (row_end)
    return fmt::format("misses cluster in the {} rows", row_end);
  if (auto band = band_of(columns, total, "columns"); !band.empty())
    return "misses cluster in " + band;
  if (auto band = band_of(rows, total, "rows"); !band.empty())
    return "misses cluster in " + band;
  const auto share = [&](auto holds) { return is_most(sum_where(tiles, holds), total); };
  if (share([](size_t row, size_t column) { return row == column; }))
    return "misses cluster on the diagonal";
  if (share([](size_t row, size_t column) { return column > row; }))
    return "misses cluster above the diagonal";
  if (share([](size_t row, size_t column) { return column < row; }))
    return "misses cluster below the diagonal";
  if (share([](size_t row, size_t) { return row >= side / 2; }))
    return "misses cluster in the lower half of the rows";
  if (share([](size_t row, size_t) { return row < side / 2; }))
    return "misses cluster in the upper half of the rows";
  if (share([](size_t, size_t column) { return column >= side / 2; }))
    return "misses cluster in the right half of the columns";
  if (share([](size_t, size_t column) { return column < side / 2; }))
    return "misses cluster in the left half of the columns";
  // Few misses in many places look alike however they came about.
  if (touched(rows) >= side - 1 && touched(columns) >= side - 1)
    return "misses are spread over the whole output";
  const auto hit = std::count_if(tiles.begin(), tiles.end(), [](uint32_t n) { return n != 0; });
  return fmt::format("misses lie in {} of {} tiles", hit, side * side);
}

} // namespace gristmill
