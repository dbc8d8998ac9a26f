#include "actors/child_job.hpp"

#include "journal/hash.hpp"

#include <array>
#include <filesystem>

namespace gristmill {

namespace {

std::string hex(const std::array<uint8_t, 32>& bytes, size_t count) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

std::string last_line(const std::string& log) {
  auto end = log.find_last_not_of(" \t\r\n");
  if (end == std::string::npos)
    return {};
  auto begin = log.find_last_of('\n', end);
  auto line = log.substr(begin == std::string::npos ? 0 : begin + 1, end - begin);
  return line.size() <= 200 ? line : line.substr(0, 200) + "…";
}

} // namespace

result<child_job> make_child_job(const run_context& context, child_profile profile,
  const std::string& program, job what, std::chrono::nanoseconds deadline) {
  auto id = context.child_ids->fetch_add(1);
  std::string_view secret(
    reinterpret_cast<const char*>(context.secret.data()), context.secret.size());
  what.nonce = hex(hmac_sha256(secret, "nonce/" + std::to_string(id)), 16);
  auto folder =
    job_directory::create(context.jobs().string(), to_string(profile) + "-" + std::to_string(id));
  if (!folder)
    return pass(folder);
  if (auto written = folder->write("job.json", to_json(what)); !written)
    return pass(written);
  child_request request;
  request.id = id;
  request.profile = profile;
  request.argv = {program, folder->path()};
  request.job_directory = folder->path();
  request.nonce = what.nonce;
  request.deadline = deadline;
  request.silence_limit = std::chrono::seconds{20};
  return child_job{std::move(*folder), std::move(request)};
}

result<std::string> read_child_file(
  const std::string& folder, const std::string& name, uint64_t bytes_max) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos
    || name.find('\0') != std::string::npos)
    return fail(errc::child_failed, "a child names '" + name + "', which is no file of its folder");
  return read_whole_file(folder + "/" + name, bytes_max);
}

bool is_job_folder(const run_context& context, const std::string& folder) {
  const std::filesystem::path path{folder};
  const auto name = path.filename();
  return !name.empty() && name != "." && name != ".." && path.parent_path() == context.jobs();
}

std::string describe_end(const std::string& program, const child_result& ended) {
  std::string text = program + ": " + to_string(ended.end);
  if (ended.end == child_end::no_done && ended.status > 128)
    text = program + " died: killed by signal " + std::to_string(ended.status - 128);
  else if (ended.end == child_end::no_done)
    text += " (exit status " + std::to_string(ended.status) + ")";
  if (auto line = last_line(ended.log); !line.empty())
    text += ": " + line;
  return text;
}

} // namespace gristmill
