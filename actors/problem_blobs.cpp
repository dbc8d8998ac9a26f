#include "actors/problem_blobs.hpp"

#include <utility>

namespace gristmill {

result<problem_listing> store_problem(blob_store& store, const problem& from) {
  auto texts = problem_texts(from);
  if (!texts)
    return pass(texts);
  problem_listing out;
  out.name = from.name;
  for (const auto& each : *texts) {
    auto stored = store.put(each.text);
    if (!stored)
      return pass(stored);
    out.files.push_back({each.name, std::move(*stored)});
  }
  return out;
}

result<problem> restore_problem(
  const blob_store& store, const std::filesystem::path& root, const problem_listing& listing) {
  if (auto fine = check_listing(listing); !fine)
    return pass(fine);
  std::vector<problem_text> texts;
  for (const auto& file : listing.files) {
    auto text = store.get(file.content);
    if (!text)
      return pass(text);
    texts.push_back({file.name, std::move(*text)});
  }
  return write_problem(root, listing, texts);
}

std::vector<blob_ref> blobs_of(const problem_listing& listing) {
  std::vector<blob_ref> out;
  for (const auto& file : listing.files)
    out.push_back(file.content);
  return out;
}

} // namespace gristmill
