#include "tables/row_report.h"

#include <utility>

namespace ait::tables {

Result<RowReport> RowReport::create(const std::string& folder, const std::string& name,
                                    ComparisonColumns columns) {
  auto csv = report::CsvWriter::create(folder, name, report::column_names(columns));
  if (!csv) return fail(csv.error());
  auto store = compare::RowStoreWriter::create(folder, compare::rows_path_of(name));
  if (!store) return fail(store.error());
  return RowReport(std::move(columns), std::move(*csv), std::move(*store));
}

Result<void> RowReport::append(const compare::Row& row) {
  if (auto written = csv_.append(report::column_texts(columns_, row)); !written) return written;
  return store_.append(row);
}

Result<std::string> RowReport::finish(std::string_view suffix, std::string_view note) {
  auto path = csv_.finish(suffix);
  if (!path) return path;
  if (auto stored = store_.finish_beside(*path, note); !stored) return fail(stored.error());
  return path;
}

}  // namespace ait::tables
