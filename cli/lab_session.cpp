#include "cli/lab_session.hpp"

#include "cli/run_progress.hpp"
#include "journal/hash.hpp"
#include "simulation/lab.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <elf.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <future>
#include <link.h>
#include <optional>
#include <sys/ioctl.h>
#include <thread>
#include <unistd.h>

namespace gristmill {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* clear_code = "\r\x1b[K";
constexpr size_t build_digits = 16;

/// The note that the linker has put into the main program, if it has.
int take_build_id(dl_phdr_info* object, size_t, void* out) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE)
      continue;
    const char* at = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
    const char* const end = at + segment.p_memsz;
    const auto padded = [](uint32_t size) { return (size_t{size} + 3) & ~size_t{3}; };
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const char* name = at + sizeof(*note);
      const char* text = name + padded(note->n_namesz);
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4
        && std::string_view(name, 3) == "GNU" && text + note->n_descsz <= end) {
        *static_cast<std::string*>(out) = to_hex(std::string_view(text, note->n_descsz));
        return 1;
      }
      at = text + padded(note->n_descsz);
    }
  }
  return 1; // Only the first object, which is the program.
}

std::string hash_of_program() {
  std::ifstream in("/proc/self/exe", std::ios::binary);
  sha256_stream hash;
  std::string piece(size_t{1} << 20, '\0');
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0)
    hash.update(std::string_view(piece.data(), static_cast<size_t>(in.gcount())));
  return hash.finish_hex();
}

size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return 80;
  return size.ws_col;
}

} // namespace

lab_identity this_program() {
  std::string build;
  dl_iterate_phdr(take_build_id, &build);
  if (build.empty())
    build = hash_of_program();
  return {GRISTMILL_VERSION, build.substr(0, build_digits)};
}

result<void> interruptible(const std::function<result<void>(const std::atomic<bool>& stop)>& work,
  const std::function<void()>& now_and_then) {
  sigset_t set;
  sigset_t before;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  std::atomic<bool> stop = false;
  auto running = std::async(std::launch::async, [&] { return work(stop); });
  while (running.wait_for(0s) != std::future_status::ready) {
    timespec wait{0, 20'000'000};
    const int signal = sigtimedwait(&set, nullptr, &wait);
    if (signal == SIGINT || signal == SIGTERM)
      stop = true;
    if (now_and_then)
      now_and_then();
  }
  auto done = running.get();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return done;
}

result<void> run_with_progress(const lab_plan& plan, const run_set& have, unsigned jobs,
  const std::function<result<void>(lab_row&&)>& on_row) {
  std::atomic<double> done = 0;
  runner_options options;
  options.run = run_lab;
  options.jobs = jobs != 0 ? jobs : std::max(1u, std::thread::hardware_concurrency());
  options.on_row = on_row;
  options.done = &done;
  const bool terminal = stderr_is_terminal();
  const auto period = terminal ? run_progress::live_period : run_progress::plain_period;
  const auto started = std::chrono::steady_clock::now();
  auto next = started + period;
  bool line_open = false;
  // What was there from earlier says nothing of how fast this process is.
  const auto before = static_cast<double>(have.size());
  const auto show = [&] {
    const auto now = std::chrono::steady_clock::now();
    if (now < next)
      return;
    next = now + period;
    const auto elapsed = std::chrono::duration_cast<std::chrono::seconds>(now - started);
    const auto line = lab_line(std::max(0.0, done.load() - before), plan.runs() - have.size(),
      elapsed, terminal ? terminal_width() - 1 : 200);
    std::fputs((terminal ? clear_code + line : line + "\n").c_str(), stderr);
    std::fflush(stderr);
    line_open = terminal;
  };
  auto ended = interruptible(
    [&](const std::atomic<bool>& stop) {
      options.stop = &stop;
      return run_plan(plan, have, options);
    },
    show);
  if (line_open)
    std::fputs(clear_code, stderr);
  return ended;
}

result<void> check_output(const std::string& flag, const std::string& path) {
  if (path.empty())
    return {};
  std::error_code error;
  if (fs::is_directory(path, error))
    return fail(errc::invalid_input, fmt::format("{} {}: is a folder; name a file", flag, path));
  const auto folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, error))
    return fail(errc::invalid_input,
      fmt::format("{} {}: there is no folder {}", flag, path, folder.string()));
  return {};
}

result<void> write_whole_file(const std::string& path, const std::string& text) {
  const auto fresh = path + ".part";
  std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out)
    return fail(errc::io_failed, fresh + ": cannot be written");
  std::error_code error;
  fs::rename(fresh, path, error);
  if (error)
    return fail(errc::io_failed, path + ": " + error.message());
  return {};
}

exit_code complain_or_interrupted(const failure& what) {
  const auto code = complain(what);
  return what.code == errc::shutting_down ? exit_code::interrupted : code;
}

} // namespace gristmill
