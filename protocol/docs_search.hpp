#pragma once

#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

struct docs_limits {
  size_t files = 20'000;
  /// A larger file is left out, and told.
  size_t file_bytes = size_t{2} << 20;
  size_t total_bytes = size_t{64} << 20;
  /// A passage is cut at a line beyond it.
  size_t passage_bytes = 1600;
  size_t passages = 200'000;
};

/// A passage that may answer a question.
struct docs_hit {
  /// Relative to the folder.
  std::string file;
  /// Of its first line, from 1.
  size_t line = 0;
  /// The headings above it, outermost first, " > " between; empty for none.
  std::string heading;
  std::string text;
  double score = 0;
};

/// Search in a folder of documentation: .md, .txt, .rst, .html, .py, .h, .hpp, .cu and .cuh files
/// are cut into passages at headings and blank lines, and ranked by BM25 over words of text and
/// headings. A word also counts for its parts ("make_tiled_copy": make, tiled, copy), so that a
/// question in plain words finds an API that nobody has seen before. Deterministic: equal folders
/// and questions give equal answers.
class docs_index {
public:
  /// Reads the folder. Links that lead out of it, hidden files and files of other kinds are left
  /// out. Errors: `not_found` when there is no such folder, `invalid_input` when there is nothing
  /// to search in or the limits are passed.
  static result<docs_index> read(const std::filesystem::path& folder, docs_limits limits = {});

  /// The best passages, at most `hits_max`, best first. A question without a word that occurs
  /// anywhere finds none. Only the first 400 bytes of the question count.
  std::vector<docs_hit> search(std::string_view question, size_t hits_max = 5) const;

  size_t file_count() const { return files_; }
  size_t passage_count() const { return passages_.size(); }
  /// Files that were left out, and why; at most 100.
  const std::vector<std::string>& left_out() const { return left_out_; }

private:
  struct passage {
    std::string file;
    size_t line = 0;
    std::string heading;
    std::string text;
    size_t words = 0;
  };
  struct posting {
    uint32_t passage = 0;
    uint32_t count = 0;
  };

  void add_file(const std::string& name, const std::string& text, const docs_limits& limits);
  void add_passage(const std::string& file, size_t line, const std::string& heading,
    std::string text, const docs_limits& limits);

  std::vector<passage> passages_;
  std::map<std::string, std::vector<posting>, std::less<>> words_;
  std::vector<std::string> left_out_;
  size_t files_ = 0;
  size_t words_total_ = 0;
};

/// The hits as an agent reads them, with file and line, in at most `bytes_max` bytes; says so when
/// there is none.
std::string to_text(const std::vector<docs_hit>& hits, size_t bytes_max = 6000);

} // namespace gristmill
