#include "llm/mind/problem_text.hpp"

#include "kernels/builtin.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

TEST_CASE("a problem's text has every tensor, every workload and the reference") {
  for (const auto& of : builtin_problems()) {
    CAPTURE(of.name);
    auto text = prompt_problem_of(of);
    CHECK(text.name == of.name);
    for (const auto& spec : of.def.inputs)
      CHECK(text.signature.find("input " + spec.name + ": ") != std::string::npos);
    for (const auto& spec : of.def.outputs)
      CHECK(text.signature.find("output " + spec.name + ": ") != std::string::npos);
    for (const auto& work : of.workloads)
      CHECK(text.workloads.find("- " + work.uuid + ":") != std::string::npos);
    CHECK(text.reference == of.def.reference);
  }
}
