#pragma once

#include "messages/result.hpp"

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace gristmill {

/// A file that was not there before. Whoever ends without `finish` leaves none behind, so that the
/// same command can be given again.
class new_file {
public:
  /// Errors: `invalid_input` when there is one of that name, `io_failed`.
  static result<new_file> create(const std::string& path);

  new_file(new_file&&) = default;
  new_file& operator=(new_file&&) = delete;
  ~new_file();

  /// What goes wrong is told by `finish`.
  void write(std::string_view text);
  /// Errors: `io_failed` when not everything could be written.
  result<void> finish();

private:
  struct closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  new_file(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  /// Null once it is finished, and after a move.
  std::unique_ptr<std::FILE, closer> file_;
};

} // namespace gristmill
