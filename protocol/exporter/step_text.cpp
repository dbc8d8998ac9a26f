#include "protocol/exporter/step_text.hpp"

#include "protocol/exporter/unit_choice.hpp"
#include "protocol/json_document.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <set>

namespace gristmill {

namespace {

tl::unexpected<failure> at(const std::string& place, const failure& inner) {
  return fail(inner.code, fmt::format("{}: {}", place, inner.what));
}

/// The parameter type of a scalar input that the plan passes without one.
std::string_view default_type(dtype type) {
  switch (type) {
  case dtype::float64:
    return "f64";
  case dtype::int64:
    return "i64";
  case dtype::int32:
    return "i32";
  case dtype::int16:
    return "i16";
  case dtype::int8:
    return "i8";
  case dtype::boolean:
    return "b8";
  default:
    return "f32";
  }
}

/// Bytes of an element; 1 for the packed types.
uint64_t element_bytes(dtype type) {
  return std::max<uint64_t>(1, element_bits(type) / 8);
}

} // namespace

step_text::step_text(const plan& source, size_t variant, binding_names& names)
  : source_(source), variant_(source.variants[variant]), names_(names),
    entries_(entries_of(variant_)) {
  collect_ids(variant_.steps);
}

void step_text::collect_ids(const std::vector<plan_step>& steps) {
  for (const auto& step : steps) {
    if (step.what == plan_step::op::launch && !step.id.empty())
      launch_ids_.push_back(step.id);
    collect_ids(step.steps);
  }
}

step_text::~step_text() {
  names_.occupancy = nullptr;
}

result<std::string> step_text::run() {
  for (const auto stage :
    {&step_text::add_occupancy, &step_text::add_scratch, &step_text::add_maps})
    if (auto done = (this->*stage)(); !done)
      return pass(done);
  if (auto done = add_block(variant_.steps, ""); !done)
    return pass(done);
  return text_;
}

result<std::string> step_text::code(const expression& what, const std::string& place) const {
  auto out = expression_code(what, names_);
  if (!out)
    return at(place, out.error());
  return out;
}

result<std::string> step_text::codes(
  const std::vector<expression>& list, const std::string& place) const {
  std::string out;
  for (const auto& each : list) {
    auto one = code(each, place);
    if (!one)
      return one;
    out += fmt::format("{}gm::to_int({})", out.empty() ? "" : ", ", *one);
  }
  return out;
}

result<const binding_names::entry*> step_text::tensor(
  const expression_name& name, const std::string& place) const {
  auto found = names_.tensor(name);
  if (!found)
    return at(place, found.error());
  return found;
}

const plan_step* step_text::find_launch(
  const std::vector<plan_step>& steps, const std::string& id) const {
  for (const auto& each : steps) {
    if (each.what == plan_step::op::launch && each.id == id && !id.empty())
      return &each;
    if (const auto* inner = find_launch(each.steps, id))
      return inner;
  }
  return nullptr;
}

size_t step_text::entry_index(const std::string& entry) const {
  return static_cast<size_t>(std::find(entries_.begin(), entries_.end(), entry) - entries_.begin());
}

/// A function for each step that `occupancy` may ask about, in the text only where it is used.
result<void> step_text::add_occupancy() {
  names_.occupancy = [this](const std::string& id) -> result<std::string> {
    if (find_launch(variant_.steps, id) == nullptr)
      return fail(errc::not_found, fmt::format("occupancy: no launch has the id {}", excerpt(id)));
    return fmt::format("occupancy_{}()", id);
  };
  std::set<std::string> asked;
  const auto collect = [&](const expression& what) {
    if (what.calls("occupancy"))
      for (const auto& id : launch_ids_)
        if (what.text().find(id) != std::string::npos)
          asked.insert(id);
  };
  for (const auto& row : source_.scratch)
    for (const auto& each : row.shape)
      collect(each);
  std::function<void(const std::vector<plan_step>&)> walk = [&](
                                                              const std::vector<plan_step>& steps) {
    for (const auto& step : steps) {
      for (const auto& each : step.grid)
        collect(each);
      for (const auto& argument : step.args) {
        collect(argument.value);
        collect(argument.offset);
      }
      walk(step.steps);
    }
  };
  walk(variant_.steps);
  for (const auto& id : asked) {
    const auto* step = find_launch(variant_.steps, id);
    line(fmt::format("const auto occupancy_{} = [&]() {{", id));
    if (auto done = add_launch_shape(*step, fmt::format("occupancy({})", id), false); !done)
      return done;
    line("return gm::occupancy(spec);");
    line("};");
  }
  return {};
}

result<void> step_text::add_scratch() {
  // A scratch shape sees no scratch, so the names come at the end.
  std::vector<binding_names::entry> added;
  if (!source_.scratch.empty())
    line("gm::scratch_memory gm_memory;");
  for (size_t i = 0; i < source_.scratch.size(); ++i) {
    const auto& row = source_.scratch[i];
    const auto place = "scratch." + row.name;
    auto shape = codes(row.shape, place + ".shape");
    if (!shape)
      return pass(shape);
    const auto buffer = fmt::format("scratch_{}", i);
    line(fmt::format("gm::buffer {};", buffer));
    line(fmt::format("{}.name = {};", buffer, c_string(row.name)));
    line(fmt::format("{}.shape = {{{}}};", buffer, *shape));
    line(fmt::format("{0}.bytes = gm::storage_bytes({0}, {1});", buffer, element_bits(row.type)));
    if (row.init == scratch_init::restored)
      line(
        fmt::format("gm::scratch_memory::keep({}, {}, gm_device, gm_stream);", buffer, row.align));
    else
      line(fmt::format("gm_memory.allocate({}, {}, gm_device);", buffer, row.align));
    if (row.init == scratch_init::zero)
      line(fmt::format("gm::set(gm_stream, {0}, {1}, gm::integer(0), gm::bytes({1}), 1, 0);",
        c_string(place), buffer));
    added.push_back({"scratch", row.name, buffer, true, row.type});
  }
  for (auto& each : added)
    names_.add(std::move(each));
  return {};
}

result<void> step_text::add_block(const std::vector<plan_step>& steps, const std::string& path) {
  const auto begin = names_.mark();
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto& step = steps[i];
    const auto place =
      fmt::format("{}step {}{}", path, i, step.id.empty() ? "" : fmt::format(" (`{}`)", step.id));
    // What a `read` reads is used below its step, so only its body stands in a block.
    if (auto done = add_step(step, place); !done)
      return done;
  }
  names_.reset(begin);
  return {};
}

result<void> step_text::add_step(const plan_step& step, const std::string& place) {
  std::string reads;
  if (step.what == plan_step::op::read) {
    reads = fmt::format("read_{}", count_++);
    line(fmt::format("std::vector<gm::value> {};", reads));
  }
  auto runs = code(step.when, place + ", when");
  if (!runs)
    return pass(runs);
  line(fmt::format("if (gm::to_flag({})) {{", *runs));
  result<void> done;
  switch (step.what) {
  case plan_step::op::launch:
    done = add_launch(step, place);
    break;
  case plan_step::op::memset:
    done = add_memset(step, place);
    break;
  case plan_step::op::copy:
    done = add_copy(step, place);
    break;
  case plan_step::op::read:
    text_ += fmt::format("    {} = ", reads);
    done = add_read(step, place);
    break;
  case plan_step::op::repeat:
    done = add_repeat(step, place);
    break;
  }
  if (!done)
    return done;
  line("}");
  for (size_t i = 0; i < step.as.size(); ++i)
    // `at` throws where the step did not run: nothing stands for a number that was not read.
    names_.add({"", step.as[i], fmt::format("{}.at({})", reads, i), false, dtype::int64});
  return {};
}

result<void> step_text::add_launch_shape(
  const plan_step& step, const std::string& place, bool with_grid) {
  line("gm::launch_spec spec;");
  line(fmt::format("spec.function = gm_entry({});", entry_index(step.entry)));
  line(
    fmt::format("spec.step = {};", c_string(fmt::format("variant {}, {}", variant_.name, place))));
  const auto triple = [&](
                        const char* field, const std::array<expression, 3>& from) -> result<void> {
    std::string list;
    for (const auto& each : from) {
      auto one = code(each, fmt::format("{}, {}", place, field));
      if (!one)
        return pass(one);
      list += (list.empty() ? "" : ", ") + *one;
    }
    line(fmt::format("spec.{} = gm::three({});", field, list));
    return {};
  };
  if (with_grid)
    if (auto done = triple("grid", step.grid); !done)
      return done;
  if (auto done = triple("block", step.block); !done)
    return done;
  if (step.cluster)
    if (auto done = triple("cluster", *step.cluster); !done)
      return done;
  auto shared = code(step.shared, place + ", shared");
  if (!shared)
    return pass(shared);
  line(fmt::format("spec.shared = gm::to_int({});", *shared));
  line(fmt::format("spec.cooperative = {};", step.cooperative));
  line(fmt::format("spec.pdl = {};", step.pdl));
  line(fmt::format("spec.carveout = {};", step.carveout));
  return {};
}

result<void> step_text::add_launch(const plan_step& step, const std::string& place) {
  if (auto done = add_launch_shape(step, place, true); !done)
    return done;
  line("gm::arguments args;");
  for (size_t i = 0; i < step.args.size(); ++i)
    if (auto done = add_argument(step.args[i],
          fmt::format("{}, args.{} ({})", place, i, excerpt(step.args[i].text)), "args");
        !done)
      return done;
  line("gm::launch(gm_stream, spec, args);");
  return {};
}

result<void> step_text::add_argument(
  const plan_argument& argument, const std::string& place, const std::string& target) {
  switch (argument.what) {
  case plan_argument::form::null:
    line(fmt::format("gm::put_null({});", target));
    return {};
  case plan_argument::form::value:
    return add_value_argument(argument, place, target);
  case plan_argument::form::pointer: {
    auto of = tensor(argument.buffer, place);
    if (!of)
      return pass(of);
    auto offset = code(argument.offset, place);
    if (!offset)
      return pass(offset);
    line(fmt::format("gm::put_pointer({}, {}, {}, {});", target, (*of)->code, *offset,
      element_bytes((*of)->type)));
    return {};
  }
  case plan_argument::form::map: {
    for (size_t i = 0; i < source_.tensor_maps.size(); ++i)
      if (source_.tensor_maps[i].name == argument.map) {
        line(fmt::format("gm::put_maps({}, map_{}());", target, i));
        return {};
      }
    return fail(
      errc::not_found, fmt::format("{}: there is no tensor map {}", place, excerpt(argument.map)));
  }
  case plan_argument::form::structure: {
    const auto name = fmt::format("fields_{}", count_++);
    line(fmt::format("gm::fields {};", name));
    for (const auto& field : argument.fields)
      if (auto done = add_argument(field, place, name); !done)
        return done;
    line(fmt::format("gm::put_fields({}, {});", target, name));
    return {};
  }
  }
  return {};
}

result<void> step_text::add_value_argument(
  const plan_argument& argument, const std::string& place, const std::string& target) {
  std::string_view type = argument.type;
  if (const auto name = argument.value.as_name()) {
    auto found = names_.find(*name);
    if (!found)
      return at(place, found.error());
    if ((*found)->is_tensor) {
      line(fmt::format("gm::put_pointer({}, {}, gm::integer(0), 1);", target, (*found)->code));
      return {};
    }
    if (type.empty() && (*found)->kind == "in")
      type = default_type((*found)->type);
  }
  auto value = code(argument.value, place);
  if (!value)
    return pass(value);
  line(fmt::format("gm::put_{}({}, {});", type.empty() ? "i32" : type, target, *value));
  return {};
}

result<void> step_text::add_memset(const plan_step& step, const std::string& place) {
  auto to = tensor(step.dst, place + ", dst");
  if (!to)
    return pass(to);
  auto offset = code(step.dst_offset, place + ", offset");
  if (!offset)
    return pass(offset);
  auto count = code(step.bytes, place + ", bytes");
  if (!count)
    return pass(count);
  line(fmt::format("gm::set(gm_stream, {}, {}, {}, {}, {}, {}u);", c_string(place), (*to)->code,
    *offset, *count, step.width, step.value));
  return {};
}

result<void> step_text::add_copy(const plan_step& step, const std::string& place) {
  auto to = tensor(step.dst, place + ", dst");
  if (!to)
    return pass(to);
  auto from = tensor(step.src, place + ", src");
  if (!from)
    return pass(from);
  std::vector<std::string> parts;
  for (const auto* each : {&step.dst_offset, &step.src_offset, &step.bytes}) {
    auto one = code(*each, place);
    if (!one)
      return pass(one);
    parts.push_back(std::move(*one));
  }
  line(fmt::format("gm::copy(gm_stream, {}, {}, {}, {}, {}, {});", c_string(place), (*to)->code,
    parts[0], (*from)->code, parts[1], parts[2]));
  return {};
}

result<void> step_text::add_read(const plan_step& step, const std::string& place) {
  auto from = tensor(step.from, place + ", from");
  if (!from)
    return pass(from);
  if (is_float((*from)->type))
    return fail(errc::unsupported,
      fmt::format("{}: {} has no integers to read", place, excerpt((*from)->name)));
  std::string list;
  for (const auto& each : step.at) {
    auto one = code(each, place + ", at");
    if (!one)
      return pass(one);
    list += (list.empty() ? "" : ", ") + *one;
  }
  text_ += fmt::format("gm::read(gm_stream, {}, {}, {}, {{{}}});\n", c_string(place), (*from)->code,
    element_bytes((*from)->type), list);
  return {};
}

result<void> step_text::add_repeat(const plan_step& step, const std::string& place) {
  auto count = code(step.count, place + ", count");
  if (!count)
    return pass(count);
  const auto id = count_++;
  line(fmt::format("const int64_t rounds_{} = gm::to_int({});", id, *count));
  line(fmt::format("if (rounds_{0} < 0 || rounds_{0} > {1})", id, plan_limits::steps));
  line(fmt::format("  gm::refuse({});", c_string(place + ": too many rounds, or fewer than none")));
  line(fmt::format("for (int64_t round_{0} = 0; round_{0} < rounds_{0}; ++round_{0}) {{", id));
  const auto begin = names_.mark();
  names_.add({"", step.variable, fmt::format("gm::integer(round_{})", id), false, dtype::int64});
  if (auto done = add_block(step.steps, place + ", "); !done)
    return done;
  names_.reset(begin);
  line("}");
  return {};
}

} // namespace gristmill
