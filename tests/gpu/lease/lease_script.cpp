#include "tests/gpu/lease/lease_world.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>

namespace gristmill::test {

namespace {

constexpr std::array<const char*, 17> verb_names = {"deliver", "lose", "twice", "ask", "pass",
  "finish", "killed", "renew", "crash", "node", "cancel", "holder_down", "drain", "undrain",
  "restart", "claim", "quarantine"};

/// Of 100 steps, in the order of the verbs.
constexpr std::array<uint32_t, 17> shares = {54, 2, 2, 13, 6, 8, 3, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1};

} // namespace

std::string to_text(const world_script& script) {
  auto out = fmt::format("world {}\n", script.seed);
  for (const auto& s : script.steps)
    out += fmt::format("{} {} {} {}\n", verb_names[static_cast<size_t>(s.verb)], s.a, s.b, s.c);
  return out;
}

result<world_script> parse_script(std::string_view text) {
  world_script out;
  size_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    auto end = text.find('\n');
    auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    auto bad = [&] {
      return fail(errc::invalid_input,
        fmt::format("line {} is not a step: {}", line_number, line.substr(0, 80)));
    };
    std::vector<std::string_view> words;
    for (auto rest = line; !rest.empty();) {
      auto space = rest.find(' ');
      words.push_back(rest.substr(0, space));
      rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
    }
    std::vector<uint64_t> numbers;
    for (size_t i = 1; i < words.size(); ++i) {
      uint64_t n = 0;
      auto [stop, error] = std::from_chars(words[i].data(), words[i].data() + words[i].size(), n);
      if (error != std::errc{} || stop != words[i].data() + words[i].size())
        return bad();
      numbers.push_back(n);
    }
    if (line_number == 1) {
      if (words.size() != 2 || words[0] != "world")
        return bad();
      out.seed = numbers[0];
      continue;
    }
    if (words.size() != 4)
      return bad();
    auto verb = std::find(verb_names.begin(), verb_names.end(), words[0]);
    if (verb == verb_names.end())
      return bad();
    out.steps.push_back(
      {static_cast<world_verb>(verb - verb_names.begin()), static_cast<uint32_t>(numbers[0]),
        static_cast<uint32_t>(numbers[1]), static_cast<uint32_t>(numbers[2])});
  }
  return out;
}

world_script random_script(uint64_t seed, uint32_t steps) {
  world_script out;
  out.seed = seed;
  chance random(seed ^ 0x5bd1e995);
  for (uint32_t i = 0; i < steps; ++i) {
    auto x = random.below(100);
    size_t verb = 0;
    while (x >= shares[verb])
      x -= shares[verb++];
    auto draw = [&] { return random.below(1u << 20); };
    auto a = draw();
    auto b = draw();
    out.steps.push_back({static_cast<world_verb>(verb), a, b, draw()});
  }
  return out;
}

world_script shrink(const world_script& script, bool calm) {
  auto breaks = [&](const std::vector<world_step>& steps) {
    return !play({script.seed, steps}, calm).broken.empty();
  };
  auto steps = script.steps;
  // What comes after the breach is not needed.
  if (auto end = play(script, calm); end.at + 1 < steps.size())
    steps.resize(end.at + 1);
  for (size_t chunk = std::max<size_t>(steps.size() / 2, 1);; chunk /= 2) {
    for (bool again = true; again;) {
      again = false;
      for (size_t at = 0; at < steps.size();) {
        auto fewer = steps;
        auto from = fewer.begin() + static_cast<ptrdiff_t>(at);
        fewer.erase(from, from + static_cast<ptrdiff_t>(std::min(chunk, fewer.size() - at)));
        if (breaks(fewer)) {
          steps = std::move(fewer);
          again = true;
        } else {
          at += chunk;
        }
      }
    }
    if (chunk <= 1)
      break;
  }
  return {script.seed, std::move(steps)};
}

} // namespace gristmill::test
