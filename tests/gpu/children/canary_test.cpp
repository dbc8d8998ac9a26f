// The canary of a probe: as a function on a device, and as the command that an executor starts.

#include "gpu/children/canary.hpp"
#include "gpu/mock/mock_device.hpp"
#include "tests/gpu/children/child_fixture.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

child_request canary_of(const std::string& device, job_directory& in) {
  child_request out;
  out.id = 77;
  out.profile = child_profile::runner;
  out.argv = {program_folder() + "/gristmill-runner", "--canary", device};
  out.job_directory = in.path();
  out.nonce = "none";
  out.deadline = child_fixture::patience;
  return out;
}

} // namespace

TEST_CASE("a device that computes right passes the canary, again and again") {
  auto gpu = make_mock_device({*profile("h200"), 1'000'000, {}});
  for (int i = 0; i < 3; ++i)
    CHECK(run_canary(*gpu));
}

TEST_CASE("a device on which the canary cannot run to its end fails, and says why") {
  auto gpu = make_mock_device({*profile("h200"), 1, {}});
  auto done = run_canary(*gpu);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == errc::device_fault);
  CHECK_FALSE(done.error().what.empty());
}

TEST_CASE_FIXTURE(child_fixture, "the canary as a command says one line and ends with 0") {
  auto ended = run(canary_of("mock:h200", new_job()));
  CHECK(ended.end == child_end::no_done); // It is no child of a job and says nothing of one.
  CHECK(ended.status == 0);
  CHECK(ended.log == "{\"canary\":\"passed\"}\n");
}

TEST_CASE_FIXTURE(
  child_fixture, "a canary for what is no mock device could not look, and ends with 2") {
  auto ended = run(canary_of("mock:nothing", new_job()));
  CHECK(ended.status == 2);
  CHECK(ended.log.find("canary") == std::string::npos);
}
