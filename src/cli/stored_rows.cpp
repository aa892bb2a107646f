#include "cli/stored_rows.h"

#include <filesystem>

#include "base/log.h"
#include "locate/examine.h"

namespace ait::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRows = ".rows";

}  // namespace

Result<std::string> find_store(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    std::string store = path.ends_with(kRows) ? path : compare::rows_path_of(path);
    if (fs::exists(store, ignored)) return store;
    return fail(Error(ErrorCode::kNotFound, store)
                << "is not there; the rows of a comparison lie beside its csv, so compare again "
                   "with: ait llm compare");
  }
  std::string newest;
  fs::file_time_type newest_time;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    if (entry.path().extension() != kRows) continue;
    const fs::file_time_type time = entry.last_write_time(ignored);
    if (!newest.empty() && time <= newest_time) continue;
    newest = entry.path().native();
    newest_time = time;
  }
  if (newest.empty())
    return fail(Error(ErrorCode::kNotFound, path)
                << "holds no report of a comparison; make one with: ait llm compare -o "
                << printable(path));
  return newest;
}

Result<bool> are_in_order(const compare::RowStore& store) {
  bool in_order = false;
  auto read = each_row(store, [&](const compare::Row& row) {
    in_order |= row.origin.is_known || row.subject.layer.has_value();
  });
  if (!read) return fail(read.error());
  return in_order;
}

Result<match::Pair> pair_in(const compare::RowStore& store, size_t number) {
  if (number >= store.size()) return fail(Error(ErrorCode::kNotFound) << "there is no such row");
  const auto row = store.at(number);
  if (!row) return fail(row.error());
  return locate::pair_of(*row);
}

Result<locate::NoiseRun> read_noise(const std::string& path) {
  locate::NoiseRun noise;
  const auto name = find_store(path);
  if (!name) return fail(name.error());
  const auto store = compare::RowStore::open(*name);
  if (!store) return fail(store.error());
  auto read = each_row(*store, [&](const compare::Row& row) { noise.add(row); });
  if (!read) return fail(read.error());
  noise.settle();
  return noise;
}

Result<std::vector<locate::Finding>> locate_in(
    const compare::RowStore& store, bool in_order, const locate::NoiseRun* noise,
    const std::function<void(const compare::Row&)>& use) {
  locate::Locator locator({.in_order = in_order, .noise = noise},
                          [&](compare::Row&& row, uint64_t) { use(row); });
  auto read = each_row(store, [&](compare::Row row) { locator.add(std::move(row), 0); });
  if (!read) return fail(read.error());
  locator.finish();
  return locate::examine(locator, [&](size_t number) { return pair_in(store, number); });
}

}  // namespace ait::cli
