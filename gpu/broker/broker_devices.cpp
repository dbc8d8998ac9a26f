#include "gpu/broker/broker_devices.hpp"

#include "gpu/broker/short_child.hpp"
#include "protocol/json_document.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <set>

namespace gristmill {

namespace {

constexpr size_t devices_max = 1024;
constexpr std::chrono::seconds smi_limit{20};

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> out;
  while (true) {
    auto end = text.find_first_of(separators);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos)
      return out;
    text.remove_prefix(end + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  auto from = text.find_first_not_of(" \t\r");
  if (from == std::string_view::npos)
    return {};
  return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

bool natural(std::string_view text, uint64_t& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return !text.empty() && error == std::errc{} && end == text.data() + text.size();
}

bool plain_word(std::string_view text) {
  return !text.empty() && text.size() <= 32 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

/// "NVIDIA H200" → "h200"; "NVIDIA GeForce RTX 4090" → "geforce-rtx-4090".
std::string model_of(std::string_view name) {
  std::string out;
  for (char c : name)
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c == ' ' ? '-' : c;
  if (out.starts_with("nvidia-"))
    out.erase(0, 7);
  return out;
}

result<std::vector<broker_device>> from_proc() {
  namespace fs = std::filesystem;
  std::vector<broker_device> out;
  std::error_code error;
  for (fs::directory_iterator it("/proc/driver/nvidia/gpus", error), end; !error && it != end;
       it.increment(error)) {
    auto text = read_text_file(it->path() / "information", 65536);
    if (!text)
      continue;
    broker_device d;
    d.cuda = true;
    for (auto line : split(*text, "\n")) {
      auto colon = line.find(':');
      if (colon == std::string_view::npos)
        continue;
      auto value = trimmed(line.substr(colon + 1));
      if (line.starts_with("Model"))
        d.model = model_of(value);
      else if (line.starts_with("GPU UUID"))
        d.visible = value;
      else if (line.starts_with("Device Minor"))
        d.name = fmt::format("cuda:{}", value);
    }
    if (!d.visible.empty() && !d.name.empty())
      out.push_back(d);
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  if (out.empty())
    return fail(errc::not_found, "/proc/driver/nvidia/gpus names none");
  return out;
}

} // namespace

result<std::vector<device_wish>> parse_device_wishes(std::string_view text) {
  auto refuse = [&](std::string_view why) {
    return fail(errc::invalid_input,
      fmt::format("--gpus {}: {}; known forms: cuda:all, cuda:0,2, mock:h200:2, sleep:4",
        excerpt(text), why));
  };
  std::vector<device_wish> out;
  uint64_t total = 0;
  for (auto part : split(text, " ;")) {
    if (part.empty())
      continue;
    auto words = split(part, ":");
    device_wish wish;
    uint64_t count = 1;
    if (words[0] == "cuda" && words.size() == 2) {
      wish.what = device_wish::kind::cuda;
      if (words[1] != "all")
        for (auto index : split(words[1], ",")) {
          uint64_t n = 0;
          if (!natural(index, n) || n >= devices_max)
            return refuse(fmt::format("'{}' is no index", excerpt(index)));
          wish.indices.push_back(static_cast<uint32_t>(n));
        }
      count = wish.indices.size();
    } else if (words[0] == "mock" && (words.size() == 2 || words.size() == 3)) {
      wish.model = words[1];
      if (!plain_word(words[1]) || (words.size() == 3 && !natural(words[2], count)))
        return refuse("mock:MODEL or mock:MODEL:COUNT is wanted");
    } else if (words[0] == "sleep" && words.size() <= 2) {
      wish.what = device_wish::kind::sleep;
      wish.model = "sleep";
      if (words.size() == 2 && !natural(words[1], count))
        return refuse("sleep or sleep:COUNT is wanted");
    } else {
      return refuse(fmt::format("'{}' is none of these", excerpt(part)));
    }
    if (wish.what != device_wish::kind::cuda && count == 0)
      return refuse("no devices");
    if (count > devices_max || (total += count) > devices_max)
      return refuse(fmt::format("more than {} devices", devices_max));
    wish.count = static_cast<uint32_t>(count);
    out.push_back(std::move(wish));
  }
  if (out.empty())
    return refuse("no devices");
  return out;
}

result<std::vector<broker_device>> parse_smi_list(std::string_view text) {
  std::vector<broker_device> out;
  for (auto line : split(text, "\n")) {
    if (trimmed(line).empty())
      continue;
    auto words = split(line, ",");
    uint64_t index = 0;
    if (words.size() != 5 || !natural(trimmed(words[0]), index)
      || !trimmed(words[1]).starts_with("GPU-"))
      return fail(errc::invalid_input,
        fmt::format(
          "nvidia-smi wrote '{}', not index, uuid, name, memory and capability", excerpt(line)));
    if (out.size() == devices_max)
      return fail(errc::invalid_input, "nvidia-smi names more GPUs than can be");
    broker_device d;
    d.cuda = true;
    d.name = fmt::format("cuda:{}", index);
    d.visible = trimmed(words[1]);
    d.model = model_of(trimmed(words[2]));
    // "[N/A]" where the driver does not say.
    uint64_t mib = 0;
    if (natural(trimmed(words[3]), mib) && mib < (uint64_t{1} << 32))
      d.memory_bytes = mib << 20;
    auto capability = std::string(trimmed(words[4]));
    auto dot = capability.find('.');
    if (dot != std::string::npos)
      d.arch = "sm_" + capability.erase(dot, 1);
    out.push_back(std::move(d));
  }
  return out;
}

result<std::vector<broker_device>> find_cuda_devices() {
  auto answer =
    run_short_child({"nvidia-smi", "--query-gpu=index,uuid,name,memory.total,compute_cap",
                      "--format=csv,noheader,nounits"},
      smi_limit);
  std::string tried;
  if (answer.status && *answer.status == 0) {
    auto list = parse_smi_list(answer.output);
    if (list && !list->empty())
      return list;
    tried = list ? "nvidia-smi names none" : list.error().what;
  } else {
    tried = !answer.status ? "nvidia-smi does not start, or does not answer"
                           : fmt::format("nvidia-smi ended with {}", *answer.status);
  }
  auto list = from_proc();
  if (list)
    return list;
  return fail(
    errc::not_found, fmt::format("no NVIDIA GPU found: {}; {}", tried, list.error().what));
}

result<std::vector<broker_device>> resolve_wishes(
  const std::vector<device_wish>& wishes, const std::vector<broker_device>& cuda) {
  std::vector<broker_device> out;
  std::set<std::string> taken;
  auto add = [&](broker_device d) -> result<void> {
    if (!taken.insert(d.name).second)
      return fail(errc::invalid_input, fmt::format("--gpus: {} is named twice", d.name));
    out.push_back(std::move(d));
    return {};
  };
  uint32_t index = 0;
  for (const auto& wish : wishes) {
    if (wish.what != device_wish::kind::cuda) {
      const auto stem =
        wish.what == device_wish::kind::sleep ? std::string("sleep") : "mock:" + wish.model;
      for (uint32_t n = 0; n < wish.count; ++n, ++index) {
        // Two groups of one model go on counting.
        uint32_t number = 0;
        while (taken.count(fmt::format("{}#{}", stem, number)) != 0)
          ++number;
        broker_device d;
        d.name = fmt::format("{}#{}", stem, number);
        d.model = wish.model;
        d.visible = fmt::format("{}", index);
        if (auto fine = add(std::move(d)); !fine)
          return pass(fine);
      }
      continue;
    }
    if (wish.indices.empty()) {
      for (const auto& d : cuda)
        if (auto fine = add(d); !fine)
          return pass(fine);
      continue;
    }
    for (auto wanted : wish.indices) {
      auto name = fmt::format("cuda:{}", wanted);
      auto found = std::find_if(
        cuda.begin(), cuda.end(), [&](const broker_device& d) { return d.name == name; });
      if (found == cuda.end()) {
        std::string there;
        for (const auto& d : cuda)
          there += (there.empty() ? "" : ", ") + d.name;
        return fail(errc::not_found,
          fmt::format(
            "--gpus: there is no {}; there are: {}", name, there.empty() ? "none" : there));
      }
      if (auto fine = add(*found); !fine)
        return pass(fine);
    }
  }
  return out;
}

} // namespace gristmill
