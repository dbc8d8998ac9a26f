#include "cli/new_file.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

namespace gristmill {

result<new_file> new_file::create(const std::string& path) {
  if (auto* file = std::fopen(path.c_str(), "wbx"))
    return new_file(path, file);
  if (errno == EEXIST)
    return fail(errc::invalid_input, path + ": exists already; name a new file");
  return fail(errc::io_failed, path + ": " + std::strerror(errno));
}

new_file::~new_file() {
  if (file_)
    std::remove(path_.c_str());
}

void new_file::write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), file_.get());
}

result<void> new_file::finish() {
  const bool bad = std::ferror(file_.get()) != 0;
  if (std::fclose(file_.release()) == 0 && !bad)
    return {};
  std::remove(path_.c_str());
  return fail(errc::io_failed, path_ + ": cannot be written in full");
}

} // namespace gristmill
