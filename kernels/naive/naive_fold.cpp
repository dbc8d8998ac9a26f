#include "kernels/naive/naive_fold.hpp"

#include "kernels/naive/naive_types.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

naive_fold::naive_fold(
  const naive_call& call, int64_t from, std::vector<size_t> dims, const naive_index& result_index)
  : call_(call), from_(from), dims_(std::move(dims)) {
  set_space();
  const size_t rank = call.rank(from);
  if (result_index.size() == rank) {
    for (size_t i = 0; i < rank; ++i) {
      if (std::find(dims_.begin(), dims_.end(), i) == dims_.end())
        outer_[i] = result_index[i];
    }
    return;
  }
  if (result_index.size() + dims_.size() != rank)
    call.refuse("reduces to another number of dimensions than its result has");
  for (size_t i = 0, next = 0; i < rank; ++i) {
    if (std::find(dims_.begin(), dims_.end(), i) == dims_.end())
      outer_[i] = result_index[next++];
  }
}

naive_fold naive_fold::at(
  const naive_call& call, int64_t from, std::vector<size_t> dims, naive_index index) {
  naive_fold fold(call);
  fold.from_ = from;
  fold.dims_ = std::move(dims);
  fold.set_space();
  for (size_t dim : fold.dims_)
    index.at(dim).clear();
  fold.outer_ = std::move(index);
  return fold;
}

void naive_fold::set_space() {
  const size_t rank = call_.rank(from_);
  if (dims_.empty()) {
    for (size_t i = 0; i < rank; ++i)
      dims_.push_back(i);
  }
  outer_.resize(rank);
  for (size_t dim : dims_)
    sizes_.push_back(call_.w.size(from_, dim));
}

std::string naive_fold::count() const {
  std::string text = "int64_t(1)";
  for (const std::string& size : sizes_)
    text = text == "int64_t(1)" ? size : fmt::format("{} * {}", text, size);
  return sizes_.size() > 1 ? fmt::format("({})", text) : text;
}

std::pair<naive_index, std::string> naive_fold::walk() {
  const std::string number = call_.w.shared_loop(count());
  const naive_index inner = call_.w.unravelled(sizes_, number);
  naive_index index = outer_;
  for (size_t i = 0; i < dims_.size(); ++i)
    index[dims_[i]] = inner[i];
  return {index, number};
}

std::string naive_fold::sum(const std::string& type, const element& body) {
  return combined(type, type + "(0)", body, "{0} + {1}");
}

std::string naive_fold::combined(const std::string& type, const std::string& neutral,
  const element& body, std::string_view operation) {
  const std::string total = call_.w.variable(type, neutral);
  const auto join = [&](const std::string& other) {
    return fmt::format("{} = {};", total, fmt::format(fmt::runtime(operation), total, other));
  };
  const auto [index, number] = walk();
  call_.w.line(join(fmt::format("({})", body(index))));
  call_.w.close();
  if (call_.w.lanes() > 1) {
    call_.w.line("for (int distance = 16; distance > 0; distance /= 2)");
    call_.w.line("  " + join(fmt::format("__shfl_xor_sync(0xffffffffu, {}, distance)", total)));
  }
  return total;
}

std::pair<std::string, std::string> naive_fold::extreme(
  const std::string& type, bool is_max, const element& body) {
  // Narrow integers travel between lanes as wide ones.
  const bool is_wide = type == "float" || type == "double" || type == "int64_t";
  const std::string inner = is_wide ? type : "int32_t";
  const std::string best =
    call_.w.variable(inner, is_max ? naive_lowest(inner) : naive_highest(inner));
  // No element yet: any comes before this place.
  const std::string place = call_.w.variable("int64_t", naive_highest("int64_t"));
  // Larger, or the first NaN, or equal and earlier.
  const auto better = [&](const std::string& value, const std::string& at) {
    return fmt::format("{1} == {4} || {2} {5} {0} || ({2} != {2} && {0} == {0}) || "
                       "(({2} == {0} || ({2} != {2} && {0} != {0})) && {3} < {1})",
      best, place, value, at, naive_highest("int64_t"), is_max ? ">" : "<");
  };
  const auto [index, number] = walk();
  const std::string value =
    call_.w.let(inner, naive_converted(fmt::format("({})", body(index)), type, inner));
  call_.w.open(fmt::format("if ({})", better(value, number)));
  call_.w.line(fmt::format("{} = {};", best, value));
  call_.w.line(fmt::format("{} = {};", place, number));
  call_.w.close();
  call_.w.close();
  if (call_.w.lanes() > 1) {
    call_.w.open("for (int distance = 16; distance > 0; distance /= 2)");
    const std::string other =
      call_.w.let(inner, fmt::format("__shfl_xor_sync(0xffffffffu, {}, distance)", best));
    const std::string other_place =
      call_.w.let("int64_t", fmt::format("__shfl_xor_sync(0xffffffffu, {}, distance)", place));
    call_.w.open(fmt::format(
      "if ({} != {} && ({}))", other_place, naive_highest("int64_t"), better(other, other_place)));
    call_.w.line(fmt::format("{} = {};", best, other));
    call_.w.line(fmt::format("{} = {};", place, other_place));
    call_.w.close();
    call_.w.close();
  }
  return {is_wide ? best : naive_converted(best, inner, type), place};
}

} // namespace gristmill
