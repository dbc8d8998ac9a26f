#include "protocol/resolve.hpp"

#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"
#include "protocol/plan_scope.hpp"
#include "protocol/resolve_argument.hpp"
#include "protocol/step_resolver.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// Puts the place in front of a failure.
tl::unexpected<failure> at(const std::string& place, const failure& inner) {
  return fail(inner.code, fmt::format("plan: {}: {}", place, inner.what));
}

class resolver {
public:
  resolver(const plan& source, const definition& def, const axis_values& axes,
    const named_scalars& scalars, const device_facts& device, const occupancy_function& occupancy)
    : source_(source), def_(def), axes_(axes), scalars_(scalars), device_(device),
      occupancy_(occupancy) {}

  result<resolved_workload> run() {
    for (const auto stage : {&resolver::add_problem_names, &resolver::add_let,
           &resolver::check_domain, &resolver::choose_variant, &resolver::add_defines,
           &resolver::add_scratch, &resolver::add_steps})
      if (auto done = (this->*stage)(); !done)
        return pass(done);
    return std::move(out_);
  }

private:
  result<void> add_tensor(const tensor_spec& spec, resolved_buffer::role role) {
    auto shape = resolve_shape(spec, axes_);
    if (!shape)
      return pass(shape);
    auto bytes = storage_bytes(spec.type, *shape);
    if (!bytes)
      return fail(bytes.error().code, fmt::format("{}: {}", spec.name, bytes.error().what));
    resolved_buffer buffer;
    buffer.kind = role;
    buffer.name = spec.name;
    buffer.type = spec.type;
    buffer.shape = std::move(*shape);
    buffer.bytes = *bytes;
    if (__builtin_add_overflow(workload_bytes_, *bytes, &workload_bytes_))
      return fail(errc::invalid_input, "the workload has more than 2^64 bytes");
    scope_.add_buffer(buffer, static_cast<uint32_t>(out_.buffers.size()));
    out_.buffers.push_back(std::move(buffer));
    return {};
  }

  result<void> add_scalar(const tensor_spec& spec) {
    const auto found = std::find_if(
      scalars_.begin(), scalars_.end(), [&](const auto& pair) { return pair.first == spec.name; });
    if (found == scalars_.end())
      return fail(errc::invalid_input, fmt::format("the scalar input {} has no value", spec.name));
    const auto& value = found->second;
    scope_.add_value("in", spec.name,
      spec.type == dtype::boolean ? expression_value{value.integer != 0}
        : value.is_integer        ? expression_value{value.integer}
                                  : expression_value{value.number});
    return {};
  }

  result<void> add_problem_names() {
    for (const auto& [axis_name, value] : axes_)
      scope_.add_value("axis", axis_name, value);
    for (const auto& spec : def_.inputs) {
      auto added =
        spec.is_scalar ? add_scalar(spec) : add_tensor(spec, resolved_buffer::role::input);
      if (!added)
        return added;
    }
    // An output without a shape is a number for Python, and one element for a kernel.
    for (const auto& spec : def_.outputs)
      if (auto added = add_tensor(spec, resolved_buffer::role::output); !added)
        return added;
    scope_.add_value("", "sm_count", int64_t{device_.sm_count});
    scope_.add_value("", "smem_per_block", int64_t{device_.smem_per_block});
    scope_.add_value("", "smem_per_sm", int64_t{device_.smem_per_sm});
    scope_.add_value("", "l2_bytes", static_cast<int64_t>(device_.l2_bytes));
    scope_.add_value("", "arch", int64_t{device_.arch});
    return {};
  }

  result<void> add_let() {
    for (const auto& [let_name, value] : source_.let) {
      const auto place = "let." + let_name;
      if (scope_.knows(let_name))
        return fail(
          errc::invalid_input, fmt::format("plan: {}: the problem has this name already", place));
      auto evaluated = evaluate(value, scope_);
      if (!evaluated)
        return at(place, evaluated.error());
      scope_.add_value("", let_name, std::move(*evaluated));
    }
    return {};
  }

  std::string workload_text() const {
    std::string text;
    for (const auto& [axis_name, value] : axes_)
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", axis_name, value);
    return text;
  }

  result<void> check_domain() {
    auto inside = evaluate_bool(source_.domain, scope_);
    if (!inside)
      return at("domain", inside.error());
    if (!*inside)
      return fail(errc::refused,
        fmt::format("plan: domain: {} does not hold for {}", excerpt(source_.domain.text()),
          workload_text()));
    return {};
  }

  result<void> choose_variant() {
    for (const auto& each : source_.variants) {
      auto fits = evaluate_bool(each.when, scope_);
      if (!fits)
        return at(fmt::format("variant {}: when", excerpt(each.name)), fits.error());
      if (!*fits)
        continue;
      variant_ = &each;
      out_.variant = each.name;
      return {};
    }
    return fail(
      errc::refused, fmt::format("plan: no variant's `when` holds for {}", workload_text()));
  }

  result<void> add_defines() {
    // Scratch shapes stand above the variants, so they do not see the defines.
    scratch_scope_ = scope_;
    out_.unit.key = variant_->name;
    for (const auto& [define_name, value] : variant_->defines) {
      const auto place =
        fmt::format("variant {}: defines.{}", excerpt(variant_->name), define_name);
      auto evaluated = evaluate(value, scope_);
      if (!evaluated)
        return at(place, evaluated.error());
      auto literal = define_literal(*evaluated);
      if (!literal)
        return at(place, literal.error());
      out_.unit.key += fmt::format("|{}={}", define_name, *literal);
      out_.unit.defines.emplace_back(define_name, std::move(*literal));
      if (!std::holds_alternative<int64_t>(*evaluated))
        continue;
      // An integer define becomes a name. It may repeat what a name says, never contradict it.
      if (scope_.knows(define_name)) {
        if (scope_.value_of(define_name) != *evaluated)
          return fail(errc::invalid_input,
            fmt::format("plan: {}: the name already means something else; choose another", place));
        continue;
      }
      scope_.add_value("", define_name, *evaluated);
    }
    return {};
  }

  result<void> add_scratch() {
    step_resolver steps{source_, *variant_, scope_, scalars_, device_, occupancy_, out_};
    scratch_scope_.set_occupancy([&](const std::string& step) { return steps.occupancy_of(step); });
    uint64_t total = 0;
    const size_t first = out_.buffers.size();
    for (const auto& row : source_.scratch) {
      const auto place = "scratch." + row.name;
      if (scope_.knows(row.name))
        return fail(
          errc::invalid_input, fmt::format("plan: {}: the name is taken; choose another", place));
      resolved_buffer buffer;
      buffer.kind = resolved_buffer::role::scratch;
      buffer.name = row.name;
      buffer.type = row.type;
      buffer.init = name(row.init);
      buffer.align = row.align;
      for (const auto& dimension : row.shape) {
        auto value = evaluate_int(dimension, scratch_scope_);
        if (!value)
          return at(place + ".shape", value.error());
        buffer.shape.push_back(*value);
      }
      auto bytes = storage_bytes(row.type, buffer.shape);
      if (!bytes)
        return at(place + ".shape", bytes.error());
      buffer.bytes = *bytes;
      // Each is at most 2^62, so 64 of them could wrap.
      if (__builtin_add_overflow(total, *bytes, &total)
        || (total > plan_limits::scratch_floor
          && static_cast<unsigned __int128>(total)
            > static_cast<unsigned __int128>(workload_bytes_) * plan_limits::scratch_factor))
        return fail(errc::refused,
          fmt::format("plan: {}: the scratch is larger than {} MiB and than {} times the {} bytes "
                      "of inputs and outputs",
            place, plan_limits::scratch_floor >> 20, plan_limits::scratch_factor, workload_bytes_));
      out_.buffers.push_back(std::move(buffer));
    }
    scratch_scope_.set_occupancy(nullptr); // It points at the local above.
    for (size_t i = first; i < out_.buffers.size(); ++i)
      scope_.add_buffer(out_.buffers[i], static_cast<uint32_t>(i));
    return {};
  }

  result<void> add_steps() {
    return step_resolver{source_, *variant_, scope_, scalars_, device_, occupancy_, out_}.run();
  }

  const plan& source_;
  const definition& def_;
  const axis_values& axes_;
  const named_scalars& scalars_;
  const device_facts& device_;
  const occupancy_function& occupancy_;
  plan_scope scope_;
  plan_scope scratch_scope_;
  const plan_variant* variant_ = nullptr;
  uint64_t workload_bytes_ = 0;
  resolved_workload out_;
};

} // namespace

result<resolved_workload> resolve(const plan& source, const definition& def,
  const axis_values& axes, const std::vector<std::pair<std::string, scalar_value>>& scalar_inputs,
  const device_facts& device, const occupancy_function& occupancy) {
  return resolver{source, def, axes, scalar_inputs, device, occupancy}.run();
}

} // namespace gristmill
