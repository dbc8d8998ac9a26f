// Expressions of launch plans: parsed, and evaluated over a small scope.

#include "fuzz/require.hpp"
#include "protocol/expression.hpp"

using namespace gristmill;

namespace {

class small_scope : public expression_scope {
public:
  result<expression_value> lookup(const expression_name& name) const override {
    if (name.name == "M")
      return int64_t{100};
    if (name.name == "big")
      return INT64_MAX;
    if (name.name == "half")
      return 0.5;
    if (name.name == "flag")
      return true;
    if (name.name == "T")
      return type_name{"float"};
    return fail(errc::not_found, "no such name");
  }
  result<expression_value> call(std::string_view function, const expression_name& subject,
    std::optional<int64_t> index) const override {
    if (subject.name == "x" && function == "ctype")
      return type_name{"__half"};
    if (subject.name == "x")
      return index.value_or(3);
    return expression_scope::call(function, subject, index);
  }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parsed = parse_expression(fuzz::text_of(data, size), expression_mode::plan);
  if (!parsed) {
    fuzz::require(!parsed.error().what.empty(), "a refusal says why");
    return 0;
  }
  const small_scope scope;
  const auto value = evaluate(*parsed, scope);
  if (value)
    value_text(*value);
  fuzz::require(!evaluate_int(*parsed, scope) || !evaluate_bool(*parsed, scope),
    "no value is an integer and a bool");
  parsed->as_name();
  return 0;
}
