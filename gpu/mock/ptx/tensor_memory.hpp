#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

/// Tensor memory of sm_100 (128 lanes of 512 columns of 4 bytes a block), who has which columns,
/// and which of the asynchronous operations on it are known to be complete. Unverified on hardware:
/// made from the PTX manual, chapter `tcgen05`.
namespace gristmill::ptx {

struct block_state;
struct operation;
struct warp;

constexpr uint32_t tensor_lanes = 128;
constexpr uint32_t tensor_columns = 512;
/// Columns are given out in multiples of this.
constexpr uint32_t tensor_columns_min = 32;

/// Lane in the upper half, column in the lower one.
struct tensor_address {
  uint32_t lane = 0;
  uint32_t column = 0;

  explicit tensor_address(uint32_t bits) : lane(bits >> 16), column(bits & 0xffff) {}
};

/// Whose operations are in order among themselves: of a thread those of the tensor cores (mma, cp),
/// of a warp its stores. Everybody else has to learn that one is complete: by an mbarrier that
/// `tcgen05.commit` arrives at, or by `tcgen05.wait::st`.
struct tensor_stream {
  uint32_t rank = 0;
  /// Of the block; of stores: the first thread of the warp.
  uint32_t thread = 0;
  bool stores = false;
  uint64_t issued = 0;
  uint64_t complete = 0;
};

/// Of the blocks of a cluster, which may work on each other's tensor memory.
struct tensor_orders {
  std::vector<tensor_stream> streams;
  std::map<std::tuple<uint32_t, uint32_t, bool>, uint32_t> numbers;

  uint32_t number_of(uint32_t rank, uint32_t thread, bool stores);
  void learn(uint32_t stream, uint64_t serial);
};

/// What an mbarrier tells about a stream once its phase `phase` is complete.
struct tensor_commit {
  uint32_t stream = 0;
  uint64_t serial = 0;
  uint64_t phase = 0;
};

/// Somebody has waited for a phase, and `phase` is the current one.
void learn_commits(tensor_orders& orders, std::vector<tensor_commit>& commits, uint64_t phase);

/// Of one block.
class tensor_memory {
public:
  tensor_memory();

  struct range {
    uint32_t column = 0;
    uint32_t columns = 0;
  };
  /// In order; what is free lies between.
  std::vector<range> allocated;
  /// CTAs that work together in all `tcgen05` of the kernel: 1 or 2; 0 as long as nobody said.
  uint32_t group = 0;
  bool may_allocate = true;

  /// The last write of 16 lanes of a column.
  struct mark {
    uint32_t stream = 0;
    uint32_t operation = 0;
    /// 0: nobody has written it since it was allocated.
    uint64_t serial = 0;
  };
  static constexpr uint32_t lanes_of_mark = 16;
  mark& mark_of(uint32_t lane, uint32_t column) {
    return marks_[size_t{column} * (tensor_lanes / lanes_of_mark) + lane / lanes_of_mark];
  }
  /// Lane by lane in a column.
  uint32_t& cell(uint32_t lane, uint32_t column) {
    return cells_[size_t{column} * tensor_lanes + lane];
  }

  /// Loads that a warp has not waited for.
  struct pending_load {
    uint32_t warp = 0;
    uint32_t operation = 0;
    uint32_t lane = 0;
    uint32_t lanes = 0;
    uint32_t column = 0;
    uint32_t columns = 0;
  };
  std::vector<pending_load> loads;

  /// The first free column of so many in a row; `tensor_columns` when there is none.
  uint32_t find_free(uint32_t columns) const;
  void allocate(uint32_t column, uint32_t columns);
  bool is_allocated(uint32_t column, uint32_t columns) const;

  static uint64_t bytes();

private:
  std::vector<uint32_t> cells_;
  std::vector<mark> marks_;
};

/// A rectangle of tensor memory that an operation touches.
struct tensor_place {
  block_state* owner = nullptr;
  uint32_t lane = 0;
  uint32_t lanes = 0;
  uint32_t column = 0;
  uint32_t columns = 0;
};

enum class tensor_use : uint8_t { load, store, core };

/// Raises a fault unless all operations of the kernel say the same `cta_group`.
void need_group(const tensor_memory& t, uint32_t group, uint32_t lane);
/// The tensor memory of a block in which something is allocated, by an operation that says this
/// `cta_group`; 0: it does not say. Raises a fault.
tensor_memory& need_tensor(block_state& owner, uint32_t group, uint32_t lane);
/// Raises a fault unless all columns of the place are allocated.
void need_allocated(const tensor_place& place, uint32_t lane, const char* doing);
/// A read: nothing that it reads may be on its way. Whether all of it was written;
/// `must_be_written`: what nobody has written is a fault.
bool note_read(warp& w, const tensor_place& place, tensor_use use, uint32_t lane,
  bool must_be_written, const char* doing);
/// Where an operation stands in the code of its kernel.
uint32_t number_of(const warp& w, const operation& o);
/// A write by operation `serial` of a stream: nobody may be reading or writing there.
void note_write(warp& w, const operation& o, const tensor_place& place, tensor_use use,
  uint32_t lane, uint32_t stream, uint64_t serial, const char* doing);

} // namespace gristmill::ptx
