#include "protocol/plan_scope.hpp"

#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

std::string kind_of(const resolved_buffer& buffer) {
  switch (buffer.kind) {
  case resolved_buffer::role::input:
    return "in";
  case resolved_buffer::role::output:
    return "out";
  case resolved_buffer::role::scratch:
    return "scratch";
  }
  return {};
}

} // namespace

void plan_scope::add_value(std::string kind, std::string name, expression_value value) {
  entries_.push_back({std::move(kind), std::move(name), std::move(value), std::nullopt});
}

void plan_scope::set_value(std::string_view name, expression_value value) {
  for (auto& each : entries_)
    if (each.kind.empty() && each.name == name)
      each.value = std::move(value);
}

void plan_scope::remove_value(std::string_view name) {
  std::erase_if(
    entries_, [&](const entry& each) { return each.kind.empty() && each.name == name; });
}

void plan_scope::add_buffer(const resolved_buffer& buffer, uint32_t index) {
  entries_.push_back({kind_of(buffer), buffer.name, expression_value{}, index});
  if (buffers_.size() <= index)
    buffers_.resize(index + size_t{1});
  buffers_[index] = buffer;
}

bool plan_scope::knows(std::string_view name) const {
  return std::any_of(
    entries_.begin(), entries_.end(), [&](const entry& each) { return each.name == name; });
}

std::optional<expression_value> plan_scope::value_of(std::string_view name) const {
  for (const auto& each : entries_)
    if (each.name == name && !each.buffer)
      return each.value;
  return std::nullopt;
}

result<const plan_scope::entry*> plan_scope::find(const expression_name& name) const {
  const entry* found = nullptr;
  std::vector<std::string> known;
  for (const auto& each : entries_) {
    const bool kind_fits = name.kind.empty() || each.kind == name.kind;
    if (kind_fits && each.name == name.name) {
      if (found != nullptr)
        return fail(errc::invalid_input,
          fmt::format("{} is ambiguous: write {} or {}", excerpt(name.name),
            name_text({found->kind, found->name}), name_text({each.kind, each.name})));
      found = &each;
    } else if (kind_fits) {
      known.push_back(each.name);
    }
  }
  if (found != nullptr)
    return found;
  return fail(errc::not_found,
    fmt::format("there is no name {}{}", excerpt(name_text(name)), suggestion(name.name, known)));
}

result<std::optional<uint32_t>> plan_scope::find_buffer(const expression_name& name) const {
  auto found = find(name);
  if (!found)
    return pass(found);
  return (*found)->buffer;
}

result<uint32_t> plan_scope::buffer(const expression_name& name) const {
  auto found = find_buffer(name);
  if (!found)
    return pass(found);
  if (!*found)
    return fail(errc::invalid_input, fmt::format("{} is not a tensor", excerpt(name_text(name))));
  return **found;
}

bool plan_scope::is_scalar_input(const expression_name& name) const {
  auto found = find(name);
  return found && (*found)->kind == "in" && !(*found)->buffer;
}

result<expression_value> plan_scope::lookup(const expression_name& name) const {
  auto found = find(name);
  if (!found)
    return pass(found);
  if ((*found)->buffer)
    return fail(errc::invalid_input,
      fmt::format("{} is a tensor; an expression takes dim, numel, bytes or ctype of it",
        excerpt(name_text(name))));
  return (*found)->value;
}

result<expression_value> plan_scope::call(
  std::string_view function, const expression_name& subject, std::optional<int64_t> index) const {
  if (function == "occupancy") {
    if (!occupancy_)
      return fail(errc::unsupported, "`occupancy` has no meaning here");
    auto blocks = occupancy_(subject.name);
    if (!blocks)
      return pass(blocks);
    return *blocks;
  }
  auto found = buffer(subject);
  if (!found)
    return pass(found);
  const auto& tensor = buffers_[*found];
  if (function == "ctype")
    return type_name{std::string{cpp_type(tensor.type)}};
  if (function == "bytes")
    return static_cast<int64_t>(tensor.bytes);
  if (function == "numel") {
    auto count = element_count(tensor.shape);
    if (!count)
      return pass(count);
    return static_cast<int64_t>(*count);
  }
  const auto rank = static_cast<int64_t>(tensor.shape.size());
  const int64_t at = index.value_or(0);
  if (at < -rank || at >= rank)
    return fail(errc::invalid_input,
      fmt::format("dim({}, {}): the tensor has {} dimensions", name_text(subject), at, rank));
  // From the end when negative, as in Python.
  return tensor.shape[static_cast<size_t>(at < 0 ? at + rank : at)];
}

} // namespace gristmill
