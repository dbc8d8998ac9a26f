#include "gpu/mock/ptx/liveness.hpp"

#include "gpu/mock/ptx/limits.hpp"

#include <algorithm>
#include <bit>
#include <queue>

namespace gristmill::ptx {
namespace {

// Bounds memory and time on a hostile text; real kernels need a thousandth of it.
constexpr uint64_t bits_max = 1ULL << 28;

class bit_rows {
public:
  bit_rows(size_t rows, size_t columns) : words_(columns / 64 + 1), bits_(rows * words_, 0) {}
  uint64_t* row(size_t i) { return bits_.data() + i * words_; }
  size_t words() const { return words_; }

private:
  size_t words_;
  std::vector<uint64_t> bits_;
};

bool test(const uint64_t* row, uint32_t i) {
  return (row[i / 64] >> (i % 64) & 1) != 0;
}
void set(uint64_t* row, uint32_t i) {
  row[i / 64] |= 1ULL << (i % 64);
}
void clear(uint64_t* row, uint32_t i) {
  row[i / 64] &= ~(1ULL << (i % 64));
}

struct basic_block {
  uint32_t begin = 0;
  uint32_t end = 0;
  std::vector<uint32_t> next;
};

std::vector<basic_block> find_blocks(const kernel& code) {
  const auto count = static_cast<uint32_t>(code.operations.size());
  std::vector<bool> starts(count + 1, false);
  starts[0] = true;
  const auto each_target = [&](const operation& o, auto&& visit) {
    if (o.kind == flow::branch)
      visit(o.target);
    if (o.kind == flow::indexed_branch)
      for (uint32_t i = 0; i < o.list_size; ++i)
        visit(code.lists[o.list_first + i]);
  };
  for (uint32_t i = 0; i < count; ++i) {
    const operation& o = code.operations[i];
    each_target(o, [&](uint32_t target) { starts[target] = true; });
    if (o.kind == flow::branch || o.kind == flow::indexed_branch || o.kind == flow::exit)
      starts[i + 1] = true;
  }
  std::vector<basic_block> blocks;
  std::vector<uint32_t> block_at(count + 1, 0);
  for (uint32_t i = 0; i < count; ++i) {
    if (starts[i])
      blocks.push_back({i, i, {}});
    blocks.back().end = i + 1;
    block_at[i] = static_cast<uint32_t>(blocks.size() - 1);
  }
  for (basic_block& b : blocks) {
    const operation& last = code.operations[b.end - 1];
    each_target(last, [&](uint32_t target) {
      if (target < count)
        b.next.push_back(block_at[target]);
    });
    const bool falls = last.guard >= 0
      || (last.kind != flow::branch && last.kind != flow::indexed_branch
        && last.kind != flow::exit);
    if (falls && b.end < count)
      b.next.push_back(block_at[b.end]);
  }
  return blocks;
}

/// Walks backwards over one operation: what is alive before it. A guarded write may leave the old
/// value in place, so it ends nothing.
void step_back(const kernel& code, uint32_t i, uint64_t* alive) {
  const auto& range = code.operand_ranges[i];
  const uint32_t* touched = code.touched.data() + range.first;
  if (code.operations[i].guard < 0)
    for (uint32_t k = range.reads; k < static_cast<uint32_t>(range.reads) + range.writes; ++k)
      if (!(touched[k] & predicate_mark))
        clear(alive, touched[k]);
  for (uint32_t k = 0; k < range.reads; ++k)
    if (!(touched[k] & predicate_mark))
      set(alive, touched[k]);
}

uint32_t words_of(const kernel& code, const uint64_t* alive, size_t words) {
  uint32_t total = 0;
  for (size_t w = 0; w < words; ++w)
    for (uint64_t bits = alive[w]; bits != 0; bits &= bits - 1) {
      const size_t reg = w * 64 + static_cast<size_t>(std::countr_zero(bits));
      total += (code.registers[reg].bytes + 3U) / 4;
    }
  return total;
}

} // namespace

liveness find_liveness(const kernel& code) {
  liveness result;
  const auto registers = static_cast<uint32_t>(code.registers.size());
  const std::vector<basic_block> blocks = find_blocks(code);
  if (static_cast<uint64_t>(blocks.size()) * registers * 2 > bits_max)
    return result;
  bit_rows alive_in(blocks.size(), registers);
  bit_rows alive_out(blocks.size(), registers);
  const size_t words = alive_in.words();
  std::vector<std::vector<uint32_t>> previous(blocks.size());
  for (uint32_t b = 0; b < blocks.size(); ++b)
    for (const uint32_t n : blocks[b].next)
      previous[n].push_back(b);

  std::vector<uint32_t> work(blocks.size());
  for (uint32_t b = 0; b < blocks.size(); ++b)
    work[b] = b; // The last block is taken first.
  std::vector<bool> waiting(blocks.size(), true);
  std::vector<uint64_t> alive(words);
  uint64_t steps = 0;
  while (!work.empty()) {
    const uint32_t b = work.back();
    work.pop_back();
    waiting[b] = false;
    uint64_t* out = alive_out.row(b);
    for (const uint32_t n : blocks[b].next)
      for (size_t w = 0; w < words; ++w)
        out[w] |= alive_in.row(n)[w];
    std::copy(out, out + words, alive.begin());
    steps += words + blocks[b].end - blocks[b].begin;
    if (steps > bits_max)
      return {};
    for (uint32_t i = blocks[b].end; i-- > blocks[b].begin;)
      step_back(code, i, alive.data());
    uint64_t* in = alive_in.row(b);
    if (std::equal(alive.begin(), alive.end(), in))
      continue;
    std::copy(alive.begin(), alive.end(), in);
    for (const uint32_t p : previous[b])
      if (!waiting[p]) {
        waiting[p] = true;
        work.push_back(p);
      }
  }

  result.intervals.resize(registers);
  const auto extend = [&](uint32_t reg, uint32_t at) {
    liveness::interval& v = result.intervals[reg];
    v.first = std::min(v.first, at);
    v.last = std::max(v.last, at);
  };
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    uint64_t* out = alive_out.row(b);
    for (uint32_t reg = 0; reg < registers; ++reg) {
      if (test(alive_in.row(b), reg))
        extend(reg, blocks[b].begin);
      if (test(out, reg))
        extend(reg, blocks[b].end - 1);
    }
    std::copy(out, out + words, alive.begin());
    uint32_t now = words_of(code, alive.data(), words);
    for (uint32_t i = blocks[b].end; i-- > blocks[b].begin;) {
      const auto& range = code.operand_ranges[i];
      const uint32_t* touched = code.touched.data() + range.first;
      // Words alive while it executes: what is alive after it, plus results nobody reads.
      uint32_t during = now;
      for (uint32_t k = 0; k < static_cast<uint32_t>(range.reads) + range.writes; ++k) {
        if (touched[k] & predicate_mark)
          continue;
        extend(touched[k], i);
        if (k >= range.reads && !test(alive.data(), touched[k]))
          during += (code.registers[touched[k]].bytes + 3U) / 4;
      }
      result.words_max = std::max({result.words_max, now, during});
      const auto changed = [&](uint32_t reg) { return (code.registers[reg].bytes + 3U) / 4; };
      if (code.operations[i].guard < 0)
        for (uint32_t k = range.reads; k < static_cast<uint32_t>(range.reads) + range.writes; ++k)
          if (!(touched[k] & predicate_mark) && test(alive.data(), touched[k])) {
            clear(alive.data(), touched[k]);
            now -= changed(touched[k]);
          }
      for (uint32_t k = 0; k < range.reads; ++k)
        if (!(touched[k] & predicate_mark) && !test(alive.data(), touched[k])) {
          set(alive.data(), touched[k]);
          now += changed(touched[k]);
        }
    }
    result.words_max = std::max(result.words_max, now);
  }
  return result;
}

bool place_registers(kernel& code) {
  const liveness alive = find_liveness(code);
  uint64_t end = 8 * warp_lanes; // The sink is register 0.
  const auto fresh = [&](uint32_t bytes) {
    const uint64_t offset = end;
    end += (uint64_t{bytes} * warp_lanes + 63) / 64 * 64;
    return static_cast<uint32_t>(std::min<uint64_t>(offset, UINT32_MAX));
  };
  std::vector<uint32_t> moving;
  for (uint32_t r = 1; r < code.registers.size(); ++r) {
    kernel::register_slot& slot = code.registers[r];
    if (slot.fixed || alive.intervals.empty())
      slot.offset = fresh(slot.bytes);
    else if (alive.intervals[r].first <= alive.intervals[r].last)
      moving.push_back(r);
    if (end > register_file_bytes_max)
      return false;
  }
  std::sort(moving.begin(), moving.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(alive.intervals[a].first, a) < std::pair(alive.intervals[b].first, b);
  });
  // Linear scan. Two registers share a place only if they have one width, for a lane's value has to
  // stay where it is.
  using ending = std::pair<uint32_t, uint32_t>;
  std::priority_queue<ending, std::vector<ending>, std::greater<>> active;
  std::vector<uint32_t> free_places[17];
  for (const uint32_t r : moving) {
    while (!active.empty() && active.top().first < alive.intervals[r].first) {
      const kernel::register_slot& done = code.registers[active.top().second];
      free_places[done.bytes].push_back(done.offset);
      active.pop();
    }
    kernel::register_slot& slot = code.registers[r];
    std::vector<uint32_t>& places = free_places[slot.bytes];
    if (places.empty()) {
      slot.offset = fresh(slot.bytes);
    } else {
      slot.offset = places.back();
      places.pop_back();
    }
    if (end > register_file_bytes_max)
      return false;
    active.emplace(alive.intervals[r].last, r);
  }
  code.register_bytes = static_cast<uint32_t>(end);
  for (operation& o : code.operations) {
    for (uint32_t* field : {&o.d, &o.a, &o.b, &o.c, &o.e})
      *field = code.registers[*field].offset;
    if (o.kind != flow::indexed_branch)
      for (uint32_t i = 0; i < o.list_size; ++i)
        code.lists[o.list_first + i] = code.registers[code.lists[o.list_first + i]].offset;
  }
  if (alive.words_max > 0)
    code.info.registers = (alive.words_max + reserved_registers + 7) / 8 * 8;
  return true;
}

} // namespace gristmill::ptx
