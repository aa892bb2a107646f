#include "page/manifests.h"

#include <filesystem>

#include "base/text_file.h"

namespace ait::page {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr int kMaxParents = 12;

}  // namespace

void add_manifests(const std::string& side, const std::string& path, report::JsonArray& out) {
  namespace fs = std::filesystem;
  fs::path folder = fs::path(path).parent_path();
  for (int i = 0; i < kMaxParents && !folder.empty(); ++i, folder = folder.parent_path()) {
    const std::string name = (folder / "manifest.json").native();
    if (const auto text = read_text(name, kMaxBytes)) {
      report::JsonObject each;
      each.set("side", side).set("path", name).set("text", *text);
      out.emplace_back(std::move(each));
    }
    if (folder == folder.root_path()) break;
  }
}

}  // namespace ait::page
