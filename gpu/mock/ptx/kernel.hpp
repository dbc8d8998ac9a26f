#pragma once

#include "gpu/mock/ptx/operation.hpp"
#include "gpu/mock/ptx/ptx.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill::ptx {

/// Special registers that are filled before the start: one value a lane each.
enum class special : uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  lanemask_eq,
  lanemask_lt,
  lanemask_le,
  lanemask_gt,
  lanemask_ge,
  smid,
  nsmid,
  zero,
  one,
  dynamic_shared_base,
  dynamic_shared_size,
  total_shared_size,
  clusterid_x,
  clusterid_y,
  clusterid_z,
  nclusterid_x,
  nclusterid_y,
  nclusterid_z,
  cluster_ctaid_x,
  cluster_ctaid_y,
  cluster_ctaid_z,
  cluster_nctaid_x,
  cluster_nctaid_y,
  cluster_nctaid_z,
  cluster_ctarank,
  cluster_nctarank,
  explicit_cluster
};

/// Device addresses outside the regions of a launch. Generic addresses of shared and local memory
/// carry the number of their window in the top byte; the bytes below are the address in the space.
constexpr uint64_t module_memory = device_address_end;
constexpr uint64_t parameter_memory = 0x7800'0000'0000;
constexpr uint64_t function_addresses = 0x7c00'0000'0000;
constexpr uint64_t shared_window = 0x0100'0000'0000'0000;
constexpr uint64_t local_window = 0x0200'0000'0000'0000;
constexpr uint64_t window_mask = 0xff00'0000'0000'0000;
/// Addresses of shared memory have 32 bits; the upper ones name a block of the cluster by its rank
/// plus 1, and 0 stands for the own block.
constexpr uint32_t rank_shift = 24;
constexpr uint64_t shared_offset_mask = (1U << rank_shift) - 1;

/// Marks a predicate among register numbers.
constexpr uint32_t predicate_mark = 0x8000'0000;

struct source_line {
  int line = 0;
  /// The instruction, in the text of the module.
  std::string_view text;
  /// As `.loc` says: a number of `module::files`, and a line in it; 0 when it is not known.
  uint32_t file = 0;
  int source = 0;
};

/// An instruction for a message: blanks in a row are one, and it is not too long.
std::string one_line(std::string_view text);

/// Names of the files that `.loc` refers to, by number, without folders.
using source_files = std::map<uint32_t, std::string>;

/// An entry with all its calls expanded, ready to run.
struct kernel {
  entry_info info;
  /// Of the module, which lives as long.
  const source_files* files = nullptr;
  std::vector<operation> operations;
  std::vector<uint32_t> lists;
  std::vector<source_line> sources;

  /// For each operation where the run of `flow::straight` ones ends that it is in, itself where it
  /// is none; and how many before it are not hidden (one more than there are operations).
  std::vector<uint32_t> straight_ends;
  std::vector<uint32_t> visible_before;
  /// Loads and stores: numbers of `operation::access`.
  uint32_t accesses = 0;

  /// What each operation reads and writes, for liveness and timing: `touched[first, first + reads)`
  /// are read, the next `writes` are written. Register numbers, predicates with their mark.
  struct operands {
    uint32_t first = 0;
    uint16_t reads = 0;
    uint16_t writes = 0;
  };
  std::vector<operands> operand_ranges;
  std::vector<uint32_t> touched;

  struct register_slot {
    uint32_t offset = 0;
    uint8_t bytes = 0;
    /// Never written by the code (constants, special registers, parameters), or the sink.
    bool fixed = false;
  };
  std::vector<register_slot> registers;
  uint32_t predicates = 0;
  /// Of all registers of a warp.
  uint32_t register_bytes = 0;

  struct constant {
    uint32_t reg = 0;
    uint64_t value = 0;
  };
  std::vector<constant> constants;
  struct special_slot {
    special which = special::zero;
    uint32_t reg = 0;
  };
  std::vector<special_slot> specials;
  struct parameter_slot {
    uint32_t reg = 0;
    uint32_t offset = 0;
    uint8_t bytes = 0;
    bool sign_extend = false;
  };
  std::vector<parameter_slot> parameter_slots;
  uint32_t parameter_bytes = 0;
  /// `.local` variables and the parameters of calls that live in memory.
  uint32_t local_bytes = 0;
  bool uses_dynamic_shared = false;
  bool uses_tensor_memory = false;
  uint32_t dynamic_shared_align = 16;
  /// Offset at which dynamic shared memory begins.
  uint32_t dynamic_shared_offset() const {
    return (info.static_shared + dynamic_shared_align - 1) / dynamic_shared_align
      * dynamic_shared_align;
  }
};

/// A variable of the module in device memory.
struct global_variable {
  std::string name;
  uint64_t address = 0;
  uint64_t bytes = 0;
  bool is_const = false;
  std::vector<uint8_t> initial;
  /// Symbol that initialises it, if there is one.
  std::string symbol;
};

/// Everything that `parse` found out. The views in it point into `text`.
class module {
public:
  std::string text;
  std::string target;
  std::vector<std::string> directives;
  std::vector<std::string> specials;
  source_files files;
  std::vector<kernel> kernels;
  std::vector<global_variable> globals;
};

} // namespace gristmill::ptx
