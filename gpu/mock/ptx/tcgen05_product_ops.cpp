#include "gpu/mock/ptx/memory.hpp"
#include "gpu/mock/ptx/tcgen05.hpp"
#include "gpu/mock/ptx/tensor_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace gristmill::ptx {
namespace {

constexpr uint32_t rows_max = 128;
constexpr uint32_t columns_max = 256;
constexpr uint32_t depth_max = 64;
/// Of one product: every operand is 32 bytes deep in shared memory, 8 columns in tensor memory.
constexpr uint32_t depth_bytes = 32;
constexpr uint32_t depth_columns = 8;

bool is_scaled(tensor_kind kind) {
  return kind >= tensor_kind::mxf8f6f4;
}

bool is_fp4(tensor_kind kind) {
  return kind == tensor_kind::mxf4 || kind == tensor_kind::mxf4nvf4;
}

/// The instruction descriptor.
struct instruction {
  uint32_t m = 0;
  uint32_t n = 0;
  number_type a = number_type::f16;
  number_type b = number_type::f16;
  number_type d = number_type::f32;
  number_type scale = number_type::ue8m0;
  bool negated = false;
  bool saturates = false;
  bool a_by_column = false;
  bool b_by_column = false;
  /// First byte of the scales of A and of B in their words.
  uint32_t scale_a = 0;
  uint32_t scale_b = 0;
};

class descriptor_reader {
public:
  descriptor_reader(uint32_t bits, const tensor_form& form, uint32_t lane)
    : bits_(bits), form_(form), lane_(lane) {}

  instruction read() const {
    instruction x;
    x.m = field(24, 5) * 16;
    x.n = field(17, 6) * 8;
    x.a = operand_type(field(7, 3), "A");
    x.b = operand_type(field(10, 3), "B");
    x.negated = field(13, 1) != field(14, 1);
    x.a_by_column = field(15, 1) != 0;
    x.b_by_column = field(16, 1) != 0;
    if (field(2, 1) != 0)
      raise(fault_kind::unsupported,
        "tcgen05.mma with a sparse A (bit 2 of the instruction descriptor) is not supported",
        lane_);
    if (field(0, 2) != 0)
      refuse("has a sparsity selector (bits 0 and 1) and no sparse A");
    if (is_scaled(form_.kind))
      read_scales(x);
    else
      read_result(x);
    const bool may_transpose = form_.kind == tensor_kind::f16 || form_.kind == tensor_kind::tf32
      || form_.kind == tensor_kind::i8;
    const auto is_byte = [](number_type t) { return bits_of(t) == 8; };
    if ((x.a_by_column && !may_transpose && !is_byte(x.a))
      || (x.b_by_column && !may_transpose && !is_byte(x.b))
      || (is_fp4(form_.kind) && (x.a_by_column || x.b_by_column)))
      refuse("transposes an operand of 4 or 6 bits");
    check_shape(x);
    return x;
  }

private:
  uint32_t field(uint32_t at, uint32_t width) const { return bits_ >> at & ((1U << width) - 1); }

  [[noreturn]] void refuse(const std::string& why) const {
    raise(
      fault_kind::trap, fmt::format("the instruction descriptor 0x{:08x} {}", bits_, why), lane_);
  }

  number_type operand_type(uint32_t number, const char* which) const {
    using enum number_type;
    constexpr number_type none = f32;
    constexpr number_type floats[8]{e4m3, e5m2, none, e2m3, e3m2, e2m1, none, none};
    number_type found = none;
    switch (form_.kind) {
    case tensor_kind::f16:
      found = number == 0 ? f16 : number == 1 ? bf16 : none;
      break;
    case tensor_kind::tf32:
      found = number == 2 ? tf32 : none;
      break;
    case tensor_kind::f8f6f4:
    case tensor_kind::mxf8f6f4:
      found = floats[number];
      break;
    case tensor_kind::i8:
      found = number == 0 ? u8 : number == 1 ? s8 : none;
      break;
    case tensor_kind::mxf4:
    case tensor_kind::mxf4nvf4:
      found = number == 1 ? e2m1 : none;
      break;
    }
    if (found == none)
      refuse(fmt::format("gives {} the type {}, which this kind does not have", which, number));
    return found;
  }

  void read_result(instruction& x) const {
    const uint32_t d = field(4, 2);
    x.saturates = field(3, 1) != 0;
    if (field(6, 1) != 0 || field(23, 1) != 0 || field(29, 1) != 0)
      refuse("has reserved bits (6, 23 or 29) that are not 0");
    if (field(30, 2) != 0)
      refuse("has a maximum shift (bits 30 and 31), which is for tcgen05.mma.ws");
    const bool integers = form_.kind == tensor_kind::i8;
    const bool halves = form_.kind == tensor_kind::f16 || form_.kind == tensor_kind::f8f6f4;
    if (integers ? d != 2 : d > 1 || (d == 0 && !halves))
      refuse(fmt::format("gives D the type {}, which this kind does not have", d));
    if (!integers && x.saturates)
      refuse("saturates (bit 3), which is for integers");
    if (integers && (field(13, 2) != 0))
      refuse("negates an operand of integers");
    if (form_.kind == tensor_kind::f16 && d == 0 && (x.a != number_type::f16 || x.b != x.a))
      refuse("has a D of f16 and operands of bf16");
    if ((form_.kind == tensor_kind::f16 || form_.kind == tensor_kind::tf32) && x.a != x.b)
      refuse("has two types of operands, which this kind does not have");
    x.d = integers ? number_type::s32 : d == 0 ? number_type::f16 : number_type::f32;
  }

  void read_scales(instruction& x) const {
    x.scale_b = field(4, 2);
    x.scale_a = field(29, 2);
    x.scale = field(23, 1) != 0 ? number_type::ue8m0 : number_type::ue4m3;
    if (field(3, 1) != 0 || field(6, 1) != 0)
      refuse("has reserved bits (3 or 6) that are not 0");
    if (field(31, 1) != 0)
      refuse("has the depth bit (31), which only sm_103a has");
    const bool nv = form_.kind == tensor_kind::mxf4nvf4 && form_.block == 16;
    if (!nv && x.scale != number_type::ue8m0)
      refuse("has scales of ue4m3, which go only with blocks of 16 of mxf4nvf4");
    const uint32_t scales = form_.kind == tensor_kind::mxf8f6f4 ? 1 : 64U / form_.block;
    if (x.scale_a % scales != 0 || x.scale_b % scales != 0 || x.scale_a + scales > 4
      || x.scale_b + scales > 4)
      refuse(fmt::format("takes scales from bytes {} and {} on, where {} of a word are needed",
        x.scale_a, x.scale_b, scales));
  }

  void check_shape(const instruction& x) const {
    const bool two = form_.group == 2;
    bool fine = x.m == (two ? 256U : 128U) || x.m == (two ? 128U : 64U);
    // Block scales of one CTA go with all 128 lanes only.
    fine = fine && !(is_scaled(form_.kind) && !two && x.m != 128);
    const uint32_t step = two || (form_.kind == tensor_kind::i8 && x.n > 8) ? 16 : 8;
    fine = fine && x.n >= step && x.n <= columns_max && x.n % step == 0;
    // What two blocks bring of B in groups of eight.
    fine = fine && !(form_.kind == tensor_kind::i8 && two && x.n % 32 != 0);
    if (!fine)
      refuse(
        fmt::format("wants M = {}, N = {}, which does not exist for this kind and cta_group::{}",
          x.m, x.n, form_.group));
  }

  uint32_t bits_ = 0;
  const tensor_form& form_;
  uint32_t lane_ = 0;
};

/// One `tcgen05.mma` of one thread.
class product {
public:
  product(warp& w, const operation& o, uint32_t lane)
    : w_(w), o_(o), form_(std::bit_cast<tensor_form>(o.imm)), lane_(lane) {}

  void run() {
    need_tensor(*w_.block, form_.group, lane_);
    x_ = descriptor_reader(value(o_.c), form_, lane_).read();
    k_ = is_fp4(form_.kind) ? 64 : depth_bytes * 8 / std::max(8U, bits_of(x_.a));
    blocks_[0] = w_.block;
    if (form_.group == 2) {
      // The block of even rank has the upper rows of D, whoever issues.
      block_state& other = other_block(w_, lane_);
      need_tensor(other, form_.group, lane_);
      blocks_[0] = w_.block->rank % 2 == 0 ? w_.block : &other;
      blocks_[1] = w_.block->rank % 2 == 0 ? &other : w_.block;
    }
    tensor_orders& orders = w_.block->cluster->tensor;
    stream_ = orders.number_of(w_.block->rank, w_.id * warp_lanes + lane_, false);
    serial_ = ++orders.streams[stream_].issued;
    read_right();
    for (uint32_t i = 0; i < form_.group; ++i) {
      read_left(i);
      if (is_scaled(form_.kind))
        read_scales(i);
      multiply(i);
    }
    w_.block->done->mma_flops += uint64_t{2} * x_.m * x_.n * k_;
    auto& n = counts_of(w_, o_).memory[as_counted];
    n.bytes += bytes_;
    n.wavefronts += (bytes_ + 127) / 128;
    ++*w_.block->changes;
  }

private:
  uint32_t value(uint32_t reg) const { return lane_values<uint32_t>(w_, reg)[lane_]; }
  uint32_t rows() const { return x_.m / form_.group; }
  /// Rows of B that each block brings.
  uint32_t right_rows() const { return x_.n / form_.group; }
  /// M = 128 of two blocks: 64 rows in each, the right half of the columns in the upper lanes.
  bool is_split() const { return form_.group == 2 && x_.m == 128; }

  uint32_t lane_of(uint32_t row) const {
    return form_.group == 1 && x_.m == 64 ? row / 16 * 32 + row % 16 : row;
  }

  void read_shared(block_state& owner, uint64_t bits, bool by_column, number_type type,
    uint32_t lines, const char* which, float* out, uint32_t line_step, uint32_t k_step) {
    const tensor_descriptor d(bits, which, lane_);
    float numbers[32];
    const auto read = [&](uint64_t address) {
      bytes_ += 16;
      return numbers_of(
        type, is_fp4(form_.kind), tensor_chunk(w_, owner, address, lane_, which), numbers);
    };
    if (!by_column) {
      for (uint32_t line = 0; line < lines; ++line)
        for (uint32_t half = 0; half < 2; ++half) {
          const uint32_t count = read(d.k_major(line, half));
          for (uint32_t i = 0; i < count; ++i)
            out[line * line_step + (half * count + i) * k_step] = numbers[i];
        }
      return;
    }
    const uint32_t elements = 128 / bits_of(type);
    for (uint32_t k = 0; k < k_; ++k)
      for (uint32_t chunk = 0; chunk * elements < lines; ++chunk) {
        const uint32_t count = read(d.mn_major(chunk, k));
        for (uint32_t i = 0; i < count && chunk * elements + i < lines; ++i)
          out[(chunk * elements + i) * line_step + k * k_step] = numbers[i];
      }
  }

  void read_right() {
    for (uint32_t i = 0; i < form_.group; ++i)
      read_shared(*blocks_[i], lane_values<uint64_t>(w_, o_.b)[lane_], x_.b_by_column, x_.b,
        right_rows(), "B (tcgen05.mma)", &b_[0][i * right_rows()], 1, columns_max);
  }

  void read_left(uint32_t block) {
    block_state& owner = *blocks_[block];
    if ((form_.flags & tensor_a_in_memory) == 0) {
      read_shared(owner, lane_values<uint64_t>(w_, o_.a)[lane_], x_.a_by_column, x_.a, rows(),
        "A (tcgen05.mma)", &a_[0][0], depth_max, 1);
      return;
    }
    if (x_.a_by_column)
      raise(fault_kind::trap, "tcgen05.mma transposes an A in tensor memory", lane_);
    const tensor_address at(value(o_.a));
    const uint32_t half = at.lane;
    if (half != 0 && !(half == 16 && form_.group == 1 && x_.m == 64))
      raise(fault_kind::tensor_memory,
        fmt::format("A of tcgen05.mma from lane {} of tensor memory on", half), lane_);
    for (uint32_t r = 0; r < rows(); ++r) {
      const uint32_t lane = lane_of(r) + half;
      if (r % 16 == 0) {
        const tensor_place place{&owner, lane, 16, at.column, depth_columns};
        need_allocated(place, lane_, "A of tcgen05.mma");
        note_read(w_, place, tensor_use::core, lane_, true, "tcgen05.mma: read of A");
      }
      uint32_t words[depth_columns];
      for (uint32_t c = 0; c < depth_columns; ++c)
        words[c] = owner.tensor->cell(lane, at.column + c);
      for (uint32_t i = 0; i < 2; ++i) {
        float numbers[32];
        const uint32_t count = numbers_in_bytes(
          x_.a, is_fp4(form_.kind), reinterpret_cast<const uint8_t*>(words + 4 * i), numbers);
        std::copy_n(numbers, count, &a_[r][i * count]);
      }
    }
    // The 64 rows of each block of a pair have to be there twice: the upper lanes compute with
    // them.
    if (is_split())
      note_copy(owner, at);
  }

  void note_copy(block_state& owner, const tensor_address& at) {
    const tensor_place place{&owner, 64, 64, at.column, depth_columns};
    note_read(w_, place, tensor_use::core, lane_, true, "tcgen05.mma: read of A");
    for (uint32_t c = at.column; c < at.column + depth_columns; ++c)
      for (uint32_t lane = 0; lane < 64; ++lane)
        if (owner.tensor->cell(lane, c) != owner.tensor->cell(lane + 64, c))
          raise(fault_kind::tensor_memory,
            fmt::format("A in tensor memory, column {}: lanes {} and {} differ; with M = 128 and "
                        "cta_group::2 both have to hold the row",
              c, lane, lane + 64),
            lane_);
  }

  /// The word with the scales of a row of A or of B, which all quarters of the lanes have to hold.
  uint32_t scale_word(block_state& owner, const tensor_address& at, uint32_t line, uint32_t first,
    uint32_t quarters, uint32_t bytes, const char* which) {
    const uint32_t column = at.column + line / 32;
    const uint32_t lane = line % 32;
    uint32_t word = 0;
    for (uint32_t q = 0; q < quarters; ++q) {
      const uint32_t here = first + 32 * q;
      const tensor_place place{&owner, here + lane, 1, column, 1};
      need_allocated(place, lane_, which);
      note_read(w_, place, tensor_use::core, lane_, true, which);
      const uint32_t found = owner.tensor->cell(here + lane, column);
      if (q > 0 && ((found ^ word) & bytes) != 0)
        raise(fault_kind::tensor_memory,
          fmt::format(
            "{}: lanes {} and {} of column {} differ; each quarter of the lanes has to hold "
            "the scales",
            which, first + lane, here + lane, column),
          lane_);
      word = found;
    }
    return word;
  }

  void read_scales(uint32_t block) {
    block_state& owner = *blocks_[block];
    // The upper two bits may name the first byte again.
    const tensor_address a(value(o_.list[0]) & 0x3fffffff);
    const tensor_address b(value(o_.list[1]) & 0x3fffffff);
    if (a.lane != 0 || b.lane != 0)
      raise(fault_kind::tensor_memory, "scales of tcgen05.mma that do not begin at lane 0", lane_);
    scales_ = k_ / form_.block;
    const auto mask = [&](uint32_t first) {
      return (scales_ == 4 ? UINT32_MAX : (1U << 8 * scales_) - 1) << 8 * first;
    };
    const auto take = [&](uint32_t word, uint32_t first, float* to) {
      for (uint32_t i = 0; i < scales_; ++i)
        to[i] = scale_number(x_.scale, static_cast<uint8_t>(word >> 8 * (first + i)));
    };
    for (uint32_t r = 0; r < rows(); ++r)
      take(scale_word(owner, a, r, 0, 4, mask(x_.scale_a), "tcgen05.mma: read of the scales of A"),
        x_.scale_a, scale_a_[r]);
    for (uint32_t n = 0; n < x_.n; ++n) {
      // Where two blocks have 64 rows each, half the lanes work on half the columns.
      const uint32_t line = is_split() ? n % (x_.n / 2) : n;
      const uint32_t first = is_split() ? n / (x_.n / 2) * 64 : 0;
      take(scale_word(owner, b, line, first, is_split() ? 2 : 4, mask(x_.scale_b),
             "tcgen05.mma: read of the scales of B"),
        x_.scale_b, scale_b_[n]);
    }
  }

  bool is_masked(uint32_t block, uint32_t lane) const {
    if (form_.masks == 0)
      return false;
    const uint32_t word = (form_.masks == 8 ? block * 4 : 0) + lane / 32;
    return (value(o_.list[word]) >> lane % 32 & 1) != 0;
  }

  void multiply(uint32_t block) {
    block_state& owner = *blocks_[block];
    tensor_memory& t = *owner.tensor;
    const tensor_address at(value(o_.d));
    const uint32_t half = at.lane;
    if (half != 0 && !(half == 16 && form_.group == 1 && x_.m == 64))
      raise(fault_kind::tensor_memory,
        fmt::format("D of tcgen05.mma from lane {} of tensor memory on", half), lane_);
    const uint32_t columns = is_split() ? x_.n / 2 : x_.n;
    const bool adds =
      ((w_.predicates[o_.r] >> lane_ & 1) != 0) != ((form_.flags & tensor_not_input) != 0);
    const uint32_t lanes = is_split() ? tensor_lanes : rows();
    for (uint32_t r = 0; r < lanes; r += 16) {
      const tensor_place place{&owner, lane_of(r) + half, 16, at.column, columns};
      need_allocated(place, lane_, "D of tcgen05.mma");
      if (adds)
        note_read(w_, place, tensor_use::core, lane_, true, "tcgen05.mma: read of D");
      note_write(
        w_, o_, place, tensor_use::core, lane_, stream_, serial_, "tcgen05.mma: write of D");
    }
    for (uint32_t r = 0; r < rows(); ++r) {
      const auto cell = [&](uint32_t n) -> uint32_t& {
        const bool upper = is_split() && n >= columns;
        return t.cell(lane_of(r) + half + (upper ? 64 : 0), at.column + n - (upper ? columns : 0));
      };
      if (x_.d == number_type::s32)
        sum_integers(r, adds, cell);
      else
        sum_floats(r, adds, cell);
      for (uint32_t n = 0; n < x_.n; ++n)
        if (!is_masked(block, lane_of(r) + half + (is_split() && n >= columns ? 64 : 0)))
          cell(n) = results_[n];
    }
  }

  template <class F>
  void sum_integers(uint32_t r, bool adds, F&& cell) {
    int64_t c[columns_max];
    for (uint32_t n = 0; n < x_.n; ++n)
      c[n] = adds ? static_cast<int32_t>(cell(n)) : 0;
    for (uint32_t k = 0; k < k_; ++k)
      for (uint32_t n = 0; n < x_.n; ++n)
        c[n] += static_cast<int64_t>(a_[r][k]) * static_cast<int64_t>(b_[k][n]);
    for (uint32_t n = 0; n < x_.n; ++n)
      results_[n] = static_cast<uint32_t>(
        x_.saturates ? std::clamp<int64_t>(c[n], INT32_MIN, INT32_MAX) : c[n]);
  }

  template <class F>
  void sum_floats(uint32_t r, bool adds, F&& cell) {
    float c[columns_max];
    float part[columns_max];
    const float scale = std::bit_cast<float>((127U - form_.scale_d) << 23);
    for (uint32_t n = 0; n < x_.n; ++n)
      c[n] = adds ? scale * result_number(x_.d, cell(n)) : 0;
    const uint32_t step = is_scaled(form_.kind) ? form_.block : k_;
    for (uint32_t first = 0; first < k_; first += step) {
      float* const to = is_scaled(form_.kind) ? part : c;
      if (to == part)
        std::fill_n(part, x_.n, 0.0F);
      for (uint32_t k = first; k < first + step; ++k) {
        const float left = x_.negated ? -a_[r][k] : a_[r][k];
        for (uint32_t n = 0; n < x_.n; ++n)
          to[n] += left * b_[k][n];
      }
      if (to == part)
        for (uint32_t n = 0; n < x_.n; ++n)
          c[n] += part[n] * (scale_a_[r][first / step] * scale_b_[n][first / step]);
    }
    for (uint32_t n = 0; n < x_.n; ++n)
      results_[n] = result_bits(x_.d, c[n]);
  }

  warp& w_;
  const operation& o_;
  tensor_form form_;
  uint32_t lane_ = 0;
  instruction x_;
  uint32_t k_ = 0;
  uint32_t scales_ = 0;
  uint32_t stream_ = 0;
  uint64_t serial_ = 0;
  uint64_t bytes_ = 0;
  block_state* blocks_[2]{};
  float a_[rows_max][depth_max];
  /// By depth, so that the innermost loop runs over columns.
  float b_[depth_max][columns_max];
  float scale_a_[rows_max][4];
  float scale_b_[columns_max][4];
  uint32_t results_[columns_max];
};

} // namespace

void tensor_multiply(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  if (lanes_in(w.active) > 1)
    w.block->warnings->insert(fmt::format(
      "tcgen05.mma is executed by {} lanes of a warp, and each multiplies", lanes_in(w.active)));
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (is_active(w, l))
      product(w, o, l).run();
}

} // namespace gristmill::ptx
