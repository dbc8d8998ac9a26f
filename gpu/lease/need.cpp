#include "gpu/lease/need.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <limits>

namespace gristmill {

namespace {

constexpr size_t need_text_max = 256;
constexpr std::string_view keys_known = "arch=, memory>=, model=, node=";

bool is_value(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.'
      || c == '_' || c == ':' || c == '#' || c == '-';
  });
}

// Hostile text must not garble a message.
std::string shown(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, 64))
    out += c >= 0x20 && c < 0x7f ? c : '?';
  return out;
}

result<uint64_t> parse_size(std::string_view text) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  auto unit = text.substr(static_cast<size_t>(end - text.data()));
  int shift = -1;
  for (auto [name, bits] :
    {std::pair<std::string_view, int>{"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}})
    if (unit == name)
      shift = bits;
  if (error != std::errc{} || shift < 0 || number > std::numeric_limits<uint64_t>::max() >> shift)
    return fail(errc::invalid_input,
      fmt::format("GPU need: memory>={} is not a size; write a whole number and B, KiB, MiB, GiB "
                  "or TiB, such as 80GiB",
        shown(text)));
  return number << shift;
}

std::string size_text(uint64_t bytes) {
  static constexpr std::pair<int, const char*> units[] = {
    {40, "TiB"}, {30, "GiB"}, {20, "MiB"}, {10, "KiB"}};
  for (auto [shift, name] : units)
    if (bytes != 0 && bytes % (uint64_t{1} << shift) == 0)
      return fmt::format("{}{}", bytes >> shift, name);
  return fmt::format("{}B", bytes);
}

} // namespace

result<gpu_need> parse_need(std::string_view text) {
  gpu_need out;
  if (text.empty())
    return out;
  if (text.size() > need_text_max)
    return fail(errc::invalid_input,
      fmt::format(
        "GPU need: {} bytes are too long, at most {} are read", text.size(), need_text_max));
  if (is_value(text)) {
    out.model = text;
    return out;
  }
  for (;;) {
    auto comma = text.find(',');
    auto part = text.substr(0, comma);
    std::string_view memory_key = "memory>=";
    if (part.starts_with(memory_key)) {
      auto size = parse_size(part.substr(memory_key.size()));
      if (!size)
        return pass(size);
      if (out.memory_min != 0 || *size == 0)
        return fail(errc::invalid_input, "GPU need: memory>= is there twice, or demands nothing");
      out.memory_min = *size;
    } else {
      auto equals = part.find('=');
      auto key = part.substr(0, equals);
      std::string* member = key == "model" ? &out.model
        : key == "arch"                    ? &out.arch
        : key == "node"                    ? &out.node
                                           : nullptr;
      if (equals == std::string_view::npos || member == nullptr)
        return fail(errc::invalid_input,
          fmt::format("GPU need: '{}' is not a demand; known: {}, or a device model alone",
            shown(part), keys_known));
      auto value = part.substr(equals + 1);
      if (!is_value(value))
        return fail(errc::invalid_input,
          fmt::format("GPU need: '{}' has no value of letters, digits and . _ : # -", shown(part)));
      if (!member->empty())
        return fail(errc::invalid_input, fmt::format("GPU need: '{}=' is there twice", shown(key)));
      *member = value;
    }
    if (comma == std::string_view::npos)
      return out;
    text.remove_prefix(comma + 1);
  }
}

std::string to_string(const gpu_need& need) {
  if (need.arch.empty() && need.node.empty() && need.memory_min == 0)
    return need.model;
  std::string out;
  auto add = [&](const std::string& part) { out += (out.empty() ? "" : ",") + part; };
  if (!need.arch.empty())
    add("arch=" + need.arch);
  if (need.memory_min != 0)
    add("memory>=" + size_text(need.memory_min));
  if (!need.model.empty())
    add("model=" + need.model);
  if (!need.node.empty())
    add("node=" + need.node);
  return out;
}

std::string to_string(const gpu_attributes& gpu) {
  std::string more;
  auto add = [&](const std::string& part) { more += (more.empty() ? "" : ", ") + part; };
  if (!gpu.arch.empty())
    add("arch " + gpu.arch);
  if (gpu.memory_bytes != 0)
    add(size_text(gpu.memory_bytes));
  if (!gpu.node.empty())
    add("node " + gpu.node);
  auto model = gpu.model.empty() ? std::string{"unknown model"} : gpu.model;
  return more.empty() ? model : fmt::format("{} ({})", model, more);
}

bool fits(const gpu_need& need, const gpu_attributes& gpu) {
  return (need.model.empty() || need.model == gpu.model)
    && (need.arch.empty() || need.arch == gpu.arch) && (need.node.empty() || need.node == gpu.node)
    && need.memory_min <= gpu.memory_bytes;
}

bool satisfies(
  const gpu_attributes& attributes, uint32_t gpu, const gpu_need& need, uint32_t excluded) {
  return gpu != excluded && fits(need, attributes);
}

// A need that comes back gets the number that it would get if it had been forgotten: the lowest.
// When that is the one which it had last, all that is known of the number still holds.
result<need_index::acquired> need_index::acquire(const gpu_need& need, uint32_t excluded_gpu) {
  if (need == gpu_need{} && excluded_gpu == nothing_excluded)
    return acquired{};
  key what{need, excluded_gpu};
  auto free = lowest_free();
  auto known = ids_.find(what);
  if (known != ids_.end() && (entries_[known->second].users != 0 || known->second == free)) {
    ++entries_[known->second].users;
    in_use_ |= need_set{1} << known->second;
    return acquired{known->second, false};
  }
  if (free >= needs_max)
    return fail(errc::queue_full,
      fmt::format(
        "requests with {} different needs wait already, which is all that the broker tells "
        "apart; ask again later, or with one of the needs that others use",
        needs_max - 1));
  auto& e = entries_[free];
  if (auto old = ids_.find(e.what); old != ids_.end() && old->second == free)
    ids_.erase(old);
  e = {what, 1, e.stamp + 1};
  in_use_ |= need_set{1} << free;
  ids_[what] = free;
  return acquired{free, true};
}

bool need_index::acquire_again(need_id id, uint64_t stamp) {
  auto& e = entries_[id];
  if (id == any_need || e.stamp != stamp || (e.users == 0 && id != lowest_free()))
    return false;
  ++e.users;
  in_use_ |= need_set{1} << id;
  return true;
}

void need_index::release(need_id id) {
  if (id == any_need || id >= needs_max || entries_[id].users == 0)
    return;
  if (--entries_[id].users == 0)
    in_use_ &= ~(need_set{1} << id);
}

void need_index::forget_unused() {
  for (need_id id = 1; id < needs_max; ++id)
    if (auto& e = entries_[id]; e.users == 0) {
      if (auto old = ids_.find(e.what); old != ids_.end() && old->second == id)
        ids_.erase(old);
      e = {{{}, nothing_excluded}, 0, e.stamp + 1};
    }
}

bool need_index::satisfied(need_id id, uint32_t gpu, const gpu_attributes& attributes) const {
  if (id == any_need)
    return true;
  const auto& what = entries_[id].what;
  return entries_[id].users != 0 && satisfies(attributes, gpu, what.first, what.second);
}

need_set need_index::fits_of(uint32_t gpu, const gpu_attributes& attributes) const {
  need_set out = 1;
  for (need_id id = 1; id < needs_max; ++id)
    if (satisfied(id, gpu, attributes))
      out |= need_set{1} << id;
  return out;
}

} // namespace gristmill
