#pragma once

#include "protocol/child_answers.hpp"
#include "protocol/definition.hpp"
#include "tests/gpu/children/child_fixture.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace gristmill {

/// The Python with torch that these tests may use, or empty after a loud word.
inline std::string python_with_torch() {
  static const std::string found = [] {
    const char* given = std::getenv("GRISTMILL_PYTHON");
    const std::string python = given ? given : "/usr/bin/python3";
    std::string code = "import torch";
    std::string program = python;
    std::string flag = "-c";
    char* argv[] = {program.data(), flag.data(), code.data(), nullptr};
    pid_t child = 0;
    int status = 1;
    bool started = posix_spawn(&child, program.c_str(), nullptr, nullptr, argv, environ) == 0;
    bool fine = started && waitpid(child, &status, 0) == child && status == 0;
    return fine ? python : std::string();
  }();
  if (found.empty())
    MESSAGE("SKIPPED: no Python with torch (python3-torch; GRISTMILL_PYTHON names another)");
  return found;
}

/// Runs gristmill-oracle on a definition.
struct oracle_fixture : child_fixture {
  job_directory& folder = new_job();
  job what;

  oracle_fixture() {
    what.kind = job_kind::prepare;
    what.nonce = nonce;
  }

  /// One workload with these resolved axes; its inputs are drawn with keys of their own.
  void add(const std::string& uuid, const axis_values& axes) {
    auto def = parse_definition(what.prepare.definition_text, "definition.json");
    REQUIRE_MESSAGE(def, def.error().what);
    prepare_workload work;
    work.uuid = uuid;
    work.axes = resolve_axes(*def, axes).value();
    for (const auto& spec : def->inputs) {
      if (spec.is_scalar)
        continue;
      drawn_tensor tensor;
      tensor.name = spec.name;
      tensor.type = spec.type;
      tensor.shape = resolve_shape(spec, work.axes).value();
      tensor.bytes = tensor.file_bytes = storage_bytes(tensor.type, tensor.shape).value();
      tensor.key.bytes[0] = static_cast<uint8_t>(work.inputs.size() + 1);
      tensor.file = uuid + "." + spec.name;
      work.inputs.push_back(tensor);
    }
    for (const auto& spec : def->outputs) {
      const auto shape = resolve_shape(spec, work.axes).value();
      work.references.push_back({spec.name, spec.type, shape,
        storage_bytes(spec.type, shape).value(), uuid + "." + spec.name});
    }
    what.prepare.workloads.push_back(work);
  }

  prepare_answers prepare() {
    const auto answer = run_job(child_profile::oracle, "gristmill-oracle", what, folder);
    REQUIRE_MESSAGE(answer.end == child_end::done, answer.log);
    auto read = read_prepare_answers(answer.lines, nonce);
    REQUIRE_MESSAGE(read, read.error().what);
    return *read;
  }

  std::string content(const std::string& file) {
    auto read = read_whole_file(folder.file(file), 1 << 24);
    REQUIRE_MESSAGE(read, read.error().what);
    return *read;
  }
};

/// A definition with inputs x [M, K] and the scalar eps, output y [M, K], all float32.
inline std::string small_definition(const std::string& reference,
  const std::string& output_shape = R"(["M", "K"])", const std::string& dtype = "float32") {
  ordered_json all = ordered_json::parse(R"({"name": "small",
    "axes": {"M": {"type": "var"}, "K": {"type": "const", "value": 6}},
    "inputs": {"x": {"shape": ["M", "K"], "dtype": "float32"},
               "eps": {"shape": null, "dtype": "float32"}},
    "outputs": {"y": {"shape": )"
    + output_shape + R"(, "dtype": ")" + dtype + R"("}}})");
  all["reference"] = reference;
  return all.dump();
}

} // namespace gristmill
