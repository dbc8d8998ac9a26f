#pragma once

#include "kernels/kernel_ir.hpp"
#include "kernels/row_template.hpp"
#include "kernels/template_point.hpp"
#include "messages/result.hpp"
#include "protocol/problem.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gristmill {

/// What a workload means for the choice of a point.
struct workload_shape {
  /// Elements of the whole space, and of its last dimension.
  int64_t elements = 0;
  int64_t cols = 0;
  /// Whether vectors of that width fit.
  std::map<int, bool> fits_width;
};

/// What all points of a problem have in common.
struct space_facts {
  const fused_kernel* kernel = nullptr;
  std::vector<workload_shape> workloads;
  /// Bytes of an element of the widest and the narrowest tensor that is moved in vectors.
  int widest_bytes = 4;
  /// All outputs have 16 bits or all workloads allow an error that hides fast arithmetic, and there
  /// is some.
  bool may_be_fast = false;
  bool may_be_online = false;
  /// Some load has no neighbours along the last dimension.
  bool reads_apart = false;
  /// Without and with an online pass; meaningful for rows.
  std::array<row_keeping, 2> keeping;

  const row_keeping& keeping_at(const template_point& point) const {
    return keeping[point.online ? 1 : 0];
  }
};

/// Widths that points may have.
constexpr int vector_widths[] = {1, 2, 4, 8, 16};

/// Shared memory of a block that every GPU of our table has.
constexpr int64_t shared_memory_sure = 99 * 1024;

/// Looks at the workloads. Fails when axes or conditions of one cannot be evaluated.
result<space_facts> facts_of(const fused_kernel& kernel, const problem& target);

// The constraints. A point is feasible when all hold.

/// A vector has 32 bytes at most, and some workload can use it.
bool fits_vectors(const template_point& point, const space_facts& facts);
/// What a thread holds at once leaves registers for a full SM.
bool fits_registers(const template_point& point, const space_facts& facts);
/// Some workload has a row that the point keeps where it says.
bool fits_keeping(const template_point& point, const space_facts& facts);
/// Some workload has work for half of the threads that share a tile or a row.
bool fits_threads(const template_point& point, const space_facts& facts);
/// The switches mean something: online only for a softmax, reuse
/// only for values that two passes need, streaming only for what is read once, fast
/// only where it can pass.
bool fits_switches(const template_point& point, const space_facts& facts);

bool is_feasible(const template_point& point, const space_facts& facts);

/// All feasible points, in a fixed order.
std::vector<template_point> feasible_points(const space_facts& facts);

/// The point to begin with; one of `points`, which must not be empty.
template_point first_point(const std::vector<template_point>& points, const space_facts& facts);

/// Points that are worth a trial right after the first, the best guess first.
std::vector<template_point> promising_points(
  const std::vector<template_point>& points, const space_facts& facts);

/// Steps between two points: neighbouring values of one parameter are 1 apart.
int distance(const template_point& a, const template_point& b);

/// Device code and plan of a point.
generated_kernel kernel_at(
  const fused_kernel& kernel, const definition& def, const template_point& point);

} // namespace gristmill
