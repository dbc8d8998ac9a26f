#include "gpu/mock/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace gristmill {

namespace {

using ptx::category;

constexpr uint64_t sector_bytes = 32;
constexpr uint64_t wavefront_bytes = 128;
/// A line is worth a sentence when it takes this many times the passes that it could, and this
/// share of all passes of its memory.
constexpr double wasteful = 1.25;
constexpr double notable = 0.05;
constexpr size_t word_bytes_max = 300;

enum memory_kind : size_t { global, shared, local };

struct memory_words {
  std::string_view name;
  std::string_view pass;
  uint64_t pass_bytes;
};
constexpr memory_words memories[] = {{"global", "sectors", sector_bytes},
  {"shared", "wavefronts", wavefront_bytes}, {"local", "sectors", sector_bytes}};

double ratio(uint64_t a, uint64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

/// The fewest passes that carry these bytes in so many executions.
uint64_t ideal_passes(const ptx::line_counts& line, size_t memory) {
  const uint64_t bytes =
    (line.bytes[memory] + memories[memory].pass_bytes - 1) / memories[memory].pass_bytes;
  return std::min(line.passes[memory], std::max(line.warp_instructions, bytes));
}

size_t main_memory(const ptx::line_counts& line) {
  return static_cast<size_t>(
    std::max_element(line.passes.begin(), line.passes.end()) - line.passes.begin());
}

std::string place(const ptx::line_counts& line) {
  if (line.source.line == 0)
    return fmt::format("line {}", line.ptx_line);
  return fmt::format("line {} ({}:{})", line.ptx_line,
    line.source.file.empty() ? "?" : line.source.file, line.source.line);
}

std::string_view term_words(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> words[] = {
    {"issue", "issuing instructions"}, {"arithmetic", "arithmetic"}, {"shared", "shared memory"},
    {"load_store", "the load/store unit (requests to memory)"}, {"tensor", "tensor cores"},
    {"mma", "tensor cores (mma.sync) and the loads that feed them"}, {"l2", "L2"},
    {"dram", "device memory"},
    {"atomics", "atomics, which the same addresses take one after the other"},
    {"blocks", "starting blocks: fewer, larger ones would help"},
    {"latency", "waiting: the longest chain of dependent instructions of a block"},
    {"launch", "launching the kernel"}, {"events", "the events around the call"}};
  for (const auto& [term, text] : words)
    if (term == name)
      return text;
  return name;
}

void say(launch_profile& out, std::string text) {
  if (text.size() > word_bytes_max)
    text.resize(word_bytes_max);
  if (out.words.size() < words_max)
    out.words.push_back(std::move(text));
}

hot_line look_at(const ptx::line_counts& line, uint64_t all) {
  hot_line out;
  out.counts = line;
  out.share = ratio(line.warp_instructions, all);
  out.lanes = ratio(line.lane_instructions, line.warp_instructions);
  const size_t memory = main_memory(line);
  if (line.passes[memory] > 0) {
    out.memory = memories[memory].name;
    out.passes = ratio(line.passes[memory], line.warp_instructions);
    out.passes_ideal = ratio(ideal_passes(line, memory), line.warp_instructions);
  }
  return out;
}

/// Instructions that a line is worth beside the passes it causes: what the list is sorted by.
uint64_t weight(const ptx::line_counts& line) {
  uint64_t passes = 0;
  for (size_t m = 0; m < line.passes.size(); ++m)
    passes += m == shared ? line.passes[m] : line.passes[m] / 4;
  // Addresses and moves mostly fold away.
  const bool folds = line.counted == category::integer || line.counted == category::other;
  return std::max(folds ? line.warp_instructions / 2 : line.warp_instructions, passes);
}

void say_terms(launch_profile& out, const launch_time& time) {
  std::vector<time_term> terms = time.terms;
  std::stable_sort(
    terms.begin(), terms.end(), [](const time_term& a, const time_term& b) { return a.ns > b.ns; });
  if (terms.empty() || time.ns == 0)
    return;
  const auto share = [&](const time_term& t) {
    return static_cast<int>(100 * t.ns / static_cast<double>(time.ns) + 0.5);
  };
  say(out,
    fmt::format("{} % of the time: {} ({:.1f} of {:.1f} us; terms overlap).",
      std::min(100, share(terms[0])), term_words(terms[0].name), terms[0].ns / 1e3,
      static_cast<double>(time.ns) / 1e3));
  std::string rest;
  for (size_t i = 1; i < terms.size() && share(terms[i]) >= 5; ++i)
    rest += fmt::format(
      "{}{} % {}", rest.empty() ? "" : ", ", share(terms[i]), term_words(terms[i].name));
  if (!rest.empty())
    say(out, fmt::format("Next: {}.", rest));
}

void say_memory(launch_profile& out, const std::vector<ptx::line_counts>& lines) {
  for (const size_t memory : {size_t{shared}, size_t{global}}) {
    uint64_t all = 0;
    for (const ptx::line_counts& line : lines)
      all += line.passes[memory];
    std::vector<const ptx::line_counts*> worst;
    for (const ptx::line_counts& line : lines)
      if (ratio(line.passes[memory], ideal_passes(line, memory)) >= wasteful
        && ratio(line.passes[memory], all) >= notable)
        worst.push_back(&line);
    std::stable_sort(worst.begin(), worst.end(), [&](const auto* a, const auto* b) {
      return a->passes[memory] - ideal_passes(*a, memory)
        > b->passes[memory] - ideal_passes(*b, memory);
    });
    for (size_t i = 0; i < worst.size() && i < 3; ++i)
      say(out,
        fmt::format("{} memory: {:.1f} {} where {:.1f} {} ideal at {}, {} % of all: {}.",
          memory == shared ? "Shared" : "Global",
          ratio(worst[i]->passes[memory], worst[i]->warp_instructions), memories[memory].pass,
          ratio(ideal_passes(*worst[i], memory), worst[i]->warp_instructions),
          ideal_passes(*worst[i], memory) == worst[i]->warp_instructions ? "is" : "are",
          place(*worst[i]), static_cast<int>(100 * ratio(worst[i]->passes[memory], all) + 0.5),
          memory == shared ? "lanes meet in one bank"
                           : "lanes of a warp do not read side by side"));
  }
}

} // namespace

launch_profile explain(const gpu_profile& gpu, const explained_launch& what) {
  launch_profile out;
  const uint32_t threads = what.block[0] * what.block[1] * what.block[2];
  const uint32_t warps = (threads + 31) / 32;
  const occupancy held = occupancy_of(gpu, what.entry, threads, what.dynamic_shared);
  out.blocks_per_sm = held.blocks;
  out.warps_per_sm = held.blocks * warps;
  out.warps_per_sm_max = gpu.warps_per_sm;
  out.limiter = held.limiter;
  out.registers = what.entry.registers;
  out.shared_bytes = uint64_t{what.entry.static_shared} + what.dynamic_shared;
  const ptx::counts& counts = what.counts;
  out.lanes_per_instruction = ratio(counts.lane_instructions, counts.warp_instructions);
  out.divergent_branches = counts.divergent_branches;
  out.barriers = counts[category::barrier].warp_instructions;
  uint64_t branches = 0;
  for (const ptx::line_counts& line : what.lines) {
    out.global_sectors += line.passes[global];
    out.global_sectors_ideal += ideal_passes(line, global);
    out.shared_wavefronts += line.passes[shared];
    out.shared_wavefronts_ideal += ideal_passes(line, shared);
    out.local_bytes += line.bytes[local];
    branches += line.counted == category::branch ? line.warp_instructions : 0;
  }
  std::vector<const ptx::line_counts*> sorted;
  for (const ptx::line_counts& line : what.lines)
    sorted.push_back(&line);
  std::stable_sort(sorted.begin(), sorted.end(),
    [](const auto* a, const auto* b) { return weight(*a) > weight(*b); });
  for (size_t i = 0; i < sorted.size() && i < hot_lines_max; ++i)
    out.lines.push_back(look_at(*sorted[i], counts.warp_instructions));

  if (what.time)
    say_terms(out, *what.time);
  say_memory(out, what.lines);
  if (out.blocks_per_sm > 0)
    say(out,
      fmt::format("Occupancy: {} of {} warps on an SM ({} blocks), limited by {} ({} registers a "
                  "thread, {} bytes of shared memory a block).",
        out.warps_per_sm, out.warps_per_sm_max, out.blocks_per_sm, out.limiter, out.registers,
        out.shared_bytes));
  const uint64_t blocks = uint64_t{what.grid[0]} * what.grid[1] * what.grid[2];
  if (blocks < gpu.sm_count)
    say(out,
      fmt::format("The grid has {} block{} for {} SMs: the others are idle.", blocks,
        blocks == 1 ? "" : "s", gpu.sm_count));
  if (out.divergent_branches > 0 && out.lanes_per_instruction < 30) {
    const auto worst = std::max_element(what.lines.begin(), what.lines.end(),
      [](const auto& a, const auto& b) { return a.diverged < b.diverged; });
    say(out,
      fmt::format(
        "Divergence: {:.1f} of 32 lanes work on average; {} of {} branches part a warp{}.",
        out.lanes_per_instruction, out.divergent_branches, branches,
        worst != what.lines.end() && worst->diverged > 0
          ? fmt::format(", most of them at {}", place(*worst))
          : ""));
  } else if (out.lanes_per_instruction > 0 && out.lanes_per_instruction < 24) {
    say(out, fmt::format("{:.1f} of 32 lanes work on average.", out.lanes_per_instruction));
  }
  if (out.local_bytes > 0)
    say(out,
      fmt::format("Local memory: {} bytes move between registers and arrays of a thread ({} bytes "
                  "each), as spills would.",
        out.local_bytes, what.entry.local_bytes));
  if (ratio(out.barriers, counts.warp_instructions) > 0.02)
    say(out,
      fmt::format("Barriers: one in {} warp instructions.",
        static_cast<uint64_t>(ratio(counts.warp_instructions, out.barriers) + 0.5)));
  return out;
}

} // namespace gristmill
