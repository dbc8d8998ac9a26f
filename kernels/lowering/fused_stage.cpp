#include "kernels/lowering/fused_stage.hpp"

#include "kernels/fusion.hpp"
#include "kernels/template_space.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// The points of `template_space` as a stage space.
class fused_space : public stage_space {
public:
  static result<stage_space_ptr> make(fused_kernel kernel, const problem& target) {
    std::unique_ptr<fused_space> space{new fused_space(std::move(kernel), target.def)};
    auto facts = facts_of(space->kernel_, target);
    if (!facts)
      return pass(facts);
    space->points_ = feasible_points(*facts);
    if (space->points_.empty())
      return fail(errc::unsupported, "no point of the template's space is feasible");
    const template_point first = first_point(space->points_, *facts);
    space->first_ = static_cast<size_t>(
      std::find(space->points_.begin(), space->points_.end(), first) - space->points_.begin());
    for (const template_point& point : promising_points(space->points_, *facts))
      space->promises_.push_back(static_cast<size_t>(
        std::find(space->points_.begin(), space->points_.end(), point) - space->points_.begin()));
    return stage_space_ptr{std::move(space)};
  }

  size_t size() const override { return points_.size(); }
  size_t first() const override { return first_; }
  std::vector<size_t> promising() const override { return promises_; }
  std::string key(size_t point) const override { return key_of(points_[point]); }

  std::string describe(size_t index) const override {
    const template_point& point = points_[index];
    if (point.family == template_family::elementwise)
      return fmt::format("blocks of {} threads, vectors of {}, {} vectors a thread{}{}",
        point.threads, point.width, point.unroll, point.streaming ? ", streaming" : "",
        point.fast ? ", approximate arithmetic" : "");
    const char* keep = point.keep == row_keep::registers ? "the row in registers"
      : point.keep == row_keep::shared                   ? "the row in shared memory"
                                                         : "the row read once a pass";
    return fmt::format("{} threads a row, {} row{} a block, vectors of {}, {}{}{}{}{}",
      point.threads, point.rows, point.rows == 1 ? "" : "s", point.width, keep,
      point.online ? ", online softmax" : "", point.reuse ? ", values kept for the next pass" : "",
      point.streaming ? ", streaming" : "", point.fast ? ", approximate arithmetic" : "");
  }

  int distance(size_t a, size_t b) const override {
    return gristmill::distance(points_[a], points_[b]);
  }

  std::string difference(size_t from_index, size_t to_index) const override {
    const template_point& from = points_[from_index];
    const template_point& to = points_[to_index];
    const auto change = [](std::string_view what, int a, int b) {
      return fmt::format("{} {} instead of {}", what, b, a);
    };
    if (from.width != to.width)
      return change("vectors of", from.width, to.width)
        + (to.width > from.width ? ": fewer and wider memory instructions"
                                 : ": more threads with less work each");
    if (from.threads != to.threads)
      return change("threads", from.threads, to.threads)
        + (to.threads > from.threads ? ": more warps hide more latency"
                                     : ": smaller blocks fill the SMs more evenly");
    if (from.rows != to.rows)
      return change("rows a block", from.rows, to.rows) + ": another number of warps a block";
    if (from.unroll != to.unroll)
      return change("vectors a thread", from.unroll, to.unroll)
        + (to.unroll > from.unroll ? ": more reads in flight" : ": fewer registers, more warps");
    if (from.keep != to.keep)
      return to.keep == row_keep::registers ? "the row in registers: memory is read once"
        : to.keep == row_keep::shared       ? "the row in shared memory: more registers for warps"
                                            : "the row read once a pass: the caches may do";
    if (from.online != to.online)
      return to.online ? "maximum and sum in one pass" : "maximum and sum in two passes";
    if (from.reuse != to.reuse)
      return to.reuse ? "values that two passes need kept: fewer instructions"
                      : "values computed again in each pass: fewer registers";
    if (from.streaming != to.streaming)
      return to.streaming ? "data marked as used once" : "data left to the caches";
    return to.fast ? "approximate exponentials and divisions" : "exact exponentials and divisions";
  }

  generated_kernel generate(size_t point) const override {
    return kernel_at(kernel_, def_, points_[point]);
  }

private:
  fused_space(fused_kernel kernel, const definition& def) : kernel_(std::move(kernel)), def_(def) {}

  fused_kernel kernel_;
  definition def_;
  std::vector<template_point> points_;
  size_t first_ = 0;
  std::vector<size_t> promises_;
};

result<stage_space_ptr> read_fused(
  const problem& target, const op_graph& graph, template_family family) {
  auto kernel = fuse(graph, target.def);
  if (!kernel)
    return pass(kernel);
  if (kernel->family != family)
    return fail(
      errc::unsupported, family == template_family::row ? "it reduces no rows" : "it reduces rows");
  return fused_space::make(std::move(*kernel), target);
}

} // namespace

result<stage_space_ptr> read_map_stage(const problem& target, const op_graph& graph) {
  return read_fused(target, graph, template_family::elementwise);
}

result<stage_space_ptr> read_row_stage(const problem& target, const op_graph& graph) {
  return read_fused(target, graph, template_family::row);
}

} // namespace gristmill
