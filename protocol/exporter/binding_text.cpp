#include "protocol/exporter/binding_text.hpp"

#include "protocol/exporter/binding_names.hpp"
#include "protocol/exporter/step_text.hpp"
#include "protocol/exporter/unit_text.hpp"
#include "protocol/json_document.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gristmill {

namespace {

const char* scalar_type(dtype type) {
  switch (type) {
  case dtype::float64:
    return "at::kDouble";
  case dtype::float32:
    return "at::kFloat";
  case dtype::float16:
    return "at::kHalf";
  case dtype::bfloat16:
    return "at::kBFloat16";
  case dtype::float8_e4m3fn:
    return "at::kFloat8_e4m3fn";
  case dtype::float8_e5m2:
    return "at::kFloat8_e5m2";
  case dtype::float4_e2m1:
  case dtype::float4_e2m1fn_x2:
    return "at::ScalarType::Float4_e2m1fn_x2";
  case dtype::int64:
    return "at::kLong";
  case dtype::int32:
    return "at::kInt";
  case dtype::int16:
    return "at::kShort";
  case dtype::int8:
    return "at::kChar";
  case dtype::boolean:
    return "at::kBool";
  }
  return "at::kFloat";
}

/// How a number comes from Python, and as what the plan sees it.
struct number_type {
  const char* parameter;
  const char* maker;
};

number_type number_type_of(dtype type) {
  if (type == dtype::boolean)
    return {"bool", "gm::flag"};
  if (is_float(type))
    return {"double", "gm::real"};
  return {"int64_t", "gm::integer"};
}

class writer {
public:
  writer(const plan& source, const definition& def, const std::vector<export_unit>& units)
    : source_(source), def_(def), units_(units) {}

  result<std::string> run() {
    text_ = "// Made by gristmill export: the launch plan as code.\n#include \"gm_torch.h\"\n\n";
    for (size_t i = 0; i < units_.size(); ++i)
      text_ +=
        fmt::format("namespace {} {{ const void* gm_entry(int gm_index); }}\n", unit_namespace(i));
    text_ += "\nnamespace {\n\n";
    add_signature();
    for (const auto stage : {&writer::add_tensors, &writer::add_axes, &writer::add_values})
      if (auto done = (this->*stage)(); !done)
        return pass(done);
    for (size_t v = 0; v < source_.variants.size(); ++v) {
      auto done = add_variant(v);
      if (!done)
        return fail(done.error().code,
          fmt::format(
            "plan: variant {}: {}", excerpt(source_.variants[v].name), done.error().what));
    }
    text_ +=
      "  gm::refuse(\"no variant's `when` holds for these shapes\");\n}\n\n} // namespace\n\n"
      "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n  m.def(\"run\", &run);\n}\n";
    return text_;
  }

private:
  void line(const std::string& what) { text_ += "  " + what + "\n"; }

  result<std::string> code(const expression& what, const std::string& place) const {
    auto out = expression_code(what, names_);
    if (!out)
      return fail(out.error().code, fmt::format("{}: {}", place, out.error().what));
    return out;
  }

  void add_signature() {
    std::vector<std::string> parameters;
    for (size_t i = 0; i < def_.inputs.size(); ++i)
      parameters.push_back(def_.inputs[i].is_scalar
          ? fmt::format("{} in_{}", number_type_of(def_.inputs[i].type).parameter, i)
          : fmt::format("const at::Tensor& in_{}", i));
    for (size_t i = 0; i < def_.outputs.size(); ++i)
      parameters.push_back(fmt::format("const at::Tensor& out_{}", i));
    text_ += fmt::format("void run({}) {{\n", fmt::join(parameters, ", "));
  }

  void add_tensor(const tensor_spec& spec, const std::string& tensor, bool is_input) {
    const auto buffer = "buffer_" + tensor;
    if (first_tensor_.empty())
      first_tensor_ = tensor;
    else
      tensors_.emplace_back(tensor, spec.name);
    line(fmt::format("const gm::buffer {} = gm::view({}, {}, {}, {}, {}, {});", buffer, tensor,
      c_string(spec.name), scalar_type(spec.type), spec.shape.size(), is_input,
      is_packed(spec.type)));
    names_.add({is_input ? "in" : "out", spec.name, buffer, true, spec.type});
  }

  result<void> add_tensors() {
    for (size_t i = 0; i < def_.inputs.size(); ++i) {
      const auto& spec = def_.inputs[i];
      if (!spec.is_scalar) {
        add_tensor(spec, fmt::format("in_{}", i), true);
        continue;
      }
      const auto number = fmt::format("number_{}", i);
      line(
        fmt::format("const gm::value {} = {}(in_{});", number, number_type_of(spec.type).maker, i));
      names_.add({"in", spec.name, number, false, spec.type});
    }
    for (size_t i = 0; i < def_.outputs.size(); ++i)
      add_tensor(def_.outputs[i], fmt::format("out_{}", i), false);
    if (first_tensor_.empty())
      return fail(errc::unsupported, "the problem has no tensor, so a call has no device");
    line(fmt::format("const at::Device gm_device = {}.device();", first_tensor_));
    line("const c10::cuda::CUDAGuard gm_guard(gm_device);");
    line("const cudaStream_t gm_stream = "
         "at::cuda::getCurrentCUDAStream(gm_device.index()).stream();");
    for (const auto& [tensor, name] : tensors_)
      line(fmt::format("gm::check_device({}, gm_device, {});", tensor, c_string(name)));
    return {};
  }

  /// Every dimension either tells an axis or must have the size that the definition writes.
  void read_axes(const tensor_spec& spec, const std::string& buffer) {
    if (spec.is_scalar)
      return;
    for (size_t d = 0; d < spec.shape.size(); ++d) {
      const auto& size = spec.shape[d];
      const auto found = std::find_if(
        def_.axes.begin(), def_.axes.end(), [&](const axis& each) { return each.name == size; });
      const bool is_literal =
        std::all_of(size.begin(), size.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (is_literal) {
        // Without leading zeros, which would make it octal.
        const auto digits = size.find_first_not_of('0');
        line(fmt::format("gm::check_size({}, {}, INT64_C({}));", buffer, d,
          digits == std::string::npos ? "0" : size.substr(digits)));
      } else if (found != def_.axes.end()) {
        const auto index = static_cast<size_t>(found - def_.axes.begin());
        told_[index] = true;
        line(fmt::format("gm::take_axis(size_{}, {}, {}, {});", index, buffer, d, c_string(size)));
      }
    }
  }

  result<void> add_axes() {
    told_.assign(def_.axes.size(), false);
    for (size_t a = 0; a < def_.axes.size(); ++a)
      line(fmt::format("int64_t size_{} = gm::unknown_size; // {}", a, excerpt(def_.axes[a].name)));
    for (size_t i = 0; i < def_.inputs.size(); ++i)
      read_axes(def_.inputs[i], fmt::format("buffer_in_{}", i));
    for (size_t i = 0; i < def_.outputs.size(); ++i)
      read_axes(def_.outputs[i], fmt::format("buffer_out_{}", i));
    // A workload may override a constant, so the tensors have the first word.
    for (size_t a = 0; a < def_.axes.size(); ++a)
      if (def_.axes[a].kind == axis_kind::constant)
        line(fmt::format(
          "if (size_{0} == gm::unknown_size) size_{0} = INT64_C({1});", a, def_.axes[a].value));
    for (size_t a = 0; a < def_.axes.size(); ++a) {
      const auto& one = def_.axes[a];
      bool is_known = told_[a] || one.kind == axis_kind::constant;
      if (one.kind == axis_kind::expression) {
        auto parsed = parse_expression(one.expression, expression_mode::axis);
        // In the order of the definition: an expression sees only what stands before it.
        auto computed = parsed ? code(*parsed, "axes." + one.name) : pass(parsed);
        if (computed)
          line(fmt::format(
            "gm::settle_axis(size_{}, gm::to_axis({}), {});", a, *computed, c_string(one.name)));
        is_known = is_known || computed.has_value();
      }
      if (!is_known)
        continue; // An error only where the plan uses it.
      line(fmt::format("const gm::value axis_{} = gm::integer(size_{});", a, a));
      names_.add({"axis", one.name, fmt::format("axis_{}", a), false, dtype::int64});
    }
    return {};
  }

  result<void> add_values() {
    line("const gm::device_facts gm_facts = gm::facts_of(gm_device.index());");
    for (const char* fact : {"sm_count", "smem_per_block", "smem_per_sm", "l2_bytes", "arch"})
      names_.add({"", fact, fmt::format("gm::integer(gm_facts.{})", fact), false, dtype::int64});
    for (size_t i = 0; i < source_.let.size(); ++i) {
      const auto& [let_name, value] = source_.let[i];
      auto computed = code(value, "plan: let." + let_name);
      if (!computed)
        return pass(computed);
      line(fmt::format("const gm::value let_{} = {};", i, *computed));
      names_.add({"", let_name, fmt::format("let_{}", i), false, dtype::int64});
    }
    auto domain = code(source_.domain, "plan: domain");
    if (!domain)
      return pass(domain);
    line(fmt::format("if (!gm::to_flag({}))", *domain));
    line(fmt::format(
      "  gm::refuse({});", c_string("outside of its domain, " + source_.domain.text())));
    return {};
  }

  result<void> add_variant(size_t index) {
    const auto& variant = source_.variants[index];
    auto fits = code(variant.when, "when");
    if (!fits)
      return pass(fits);
    line(fmt::format("if (gm::to_flag({})) {{", *fits));
    const auto outer = names_.mark();
    if (auto done = add_defines(index); !done)
      return done;
    step_text steps{source_, index, names_};
    auto body = steps.run();
    if (!body)
      return pass(body);
    text_ += *body;
    line("  return;\n  }");
    names_.reset(outer);
    return {};
  }

  static std::string literal_value(const expression_value& value) {
    if (const auto* whole = std::get_if<int64_t>(&value))
      return fmt::format("gm::integer(INT64_C({}))", *whole);
    if (const auto* flag = std::get_if<bool>(&value))
      return fmt::format("gm::flag({})", *flag);
    if (const auto* number = std::get_if<double>(&value))
      return fmt::format("gm::real({:a})", *number);
    return fmt::format("gm::type({})", c_string(std::get<type_name>(value).text));
  }

  /// The defines as values, and the unit that was compiled with them.
  result<void> add_defines(size_t index) {
    const auto& variant = source_.variants[index];
    std::string shown;
    for (size_t d = 0; d < variant.defines.size(); ++d) {
      const auto& [define_name, value] = variant.defines[d];
      auto computed = code(value, "defines." + define_name);
      if (!computed)
        return pass(computed);
      line(fmt::format("  const gm::value define_{} = {};", d, *computed));
      shown += fmt::format(" + \" {}=\" + gm::text_of(define_{})", define_name, d);
      const bool is_name = !names_.knows(define_name)
        && std::all_of(units_.begin(), units_.end(), [&](const export_unit& unit) {
             return unit.variant != index
               || std::holds_alternative<int64_t>(unit.defines[d].second);
           });
      if (is_name)
        names_.add({"", define_name, fmt::format("define_{}", d), false, dtype::int64});
    }
    line("  const void* (*gm_entry)(int) = nullptr;");
    for (size_t u = 0; u < units_.size(); ++u) {
      if (units_[u].variant != index)
        continue;
      std::string condition = "gm_entry == nullptr";
      for (size_t d = 0; d < variant.defines.size(); ++d)
        condition += fmt::format(
          " && gm::same_define(define_{}, {})", d, literal_value(units_[u].defines[d].second));
      line(fmt::format("  if ({}) gm_entry = &{}::gm_entry;", condition, unit_namespace(u)));
    }
    line("  if (gm_entry == nullptr)");
    line(fmt::format("    gm::refuse(std::string({}){});",
      c_string("variant " + variant.name + ": no unit was compiled for"), shown));
    return {};
  }

  const plan& source_;
  const definition& def_;
  const std::vector<export_unit>& units_;
  binding_names names_;
  std::string text_;
  /// Says on which device the call runs; the others must lie there too.
  std::string first_tensor_;
  std::vector<std::pair<std::string, std::string>> tensors_;
  /// Axes that some dimension tells.
  std::vector<bool> told_;
};

} // namespace

result<std::string> binding_text(
  const plan& source, const definition& def, const std::vector<export_unit>& units) {
  return writer{source, def, units}.run();
}

} // namespace gristmill
