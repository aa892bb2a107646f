#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "base/log.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/process_io.h"
#include "metrics/compare.h"
#include "report/chart.h"
#include "report/json.h"
#include "report/number.h"
#include "report/table.h"
#include "report/utf8.h"
#include "summary/elements.h"

namespace ait::cli {
namespace {

using formats::TensorFile;
using metrics::Statistics;
using report::Align;
using report::Cell;
using report::cell_text;
using report::Json;
using report::JsonArray;
using report::JsonObject;
using report::Table;

constexpr int kMostValues = 1'000'000;
constexpr size_t kHistogramBins = 12;
constexpr size_t kBarColumns = 40;

std::string dtype_text(DType dtype) { return "torch." + std::string(name(dtype)); }

// One tensor, what is known of it in place of its data, or why it could not be read.
struct Entry {
  std::string name;
  Result<Tensor> tensor;
  std::optional<formats::Description> description;  // of a tensor whose data were not kept
  Statistics statistics;                            // as far as they are known

  bool is_readable() const { return tensor || description; }
  bool has_statistics() const { return tensor || (description && description->statistics); }
  // Of data that were not kept, somebody may have counted what is not finite.
  bool has_counts() const {
    return tensor ||
           (has_statistics() && description->statistics->nan && description->statistics->inf);
  }
  DType dtype() const { return tensor ? tensor->dtype() : description->dtype; }
  const Shape& shape() const { return tensor ? tensor->shape() : description->shape; }
  size_t elements() const {
    return tensor ? tensor->elements() : count_elements(description->shape).value_or(0);
  }
};

Entry measure_entry(const TensorFile& file, size_t index, size_t threads) {
  Entry entry{file.name(index), file.load(index), {}, {}};
  if (entry.tensor) {
    entry.statistics = metrics::statistics(entry.tensor->view(), threads);
    return entry;
  }
  const auto description = file.describe(index);
  if (!description || description->has_data) return entry;
  entry.description = *description;
  if (description->statistics) {
    entry.statistics.elements = entry.elements();
    entry.statistics.minimum = description->statistics->minimum;
    entry.statistics.maximum = description->statistics->maximum;
    entry.statistics.mean = description->statistics->mean;
    entry.statistics.l2_norm = description->statistics->l2_norm;
    entry.statistics.nan = description->statistics->nan.value_or(0);
    entry.statistics.positive_inf = description->statistics->inf.value_or(0);  // of either sign
  }
  return entry;
}

// minimum or maximum: nothing where there are no elements.
Cell value_of(const Entry& entry, double Statistics::* member) {
  if (entry.statistics.elements == 0) return Cell();
  return report::number_cell(entry.statistics.*member,
                             info(entry.dtype()).kind == DTypeKind::kInteger);
}

Cell mean_of(const Entry& entry) {
  return entry.statistics.elements > 0 ? Cell(entry.statistics.mean) : Cell();
}

const char* kept_word(const Entry& entry) {
  return entry.tensor ? "bytes" : entry.has_statistics() ? "statistics" : "description";
}

JsonObject describe(const Entry& entry) {
  JsonObject object;
  object.set("name", entry.name);
  if (!entry.is_readable()) return object.set("error", entry.tensor.error().text());
  const Statistics& s = entry.statistics;
  object.set("dtype", dtype_text(entry.dtype()))
      .set("shape", entry.shape())
      .set("elements", entry.elements())
      .set("kept", std::string(kept_word(entry)));
  if (entry.tensor) object.set("bytes", entry.tensor->view().bytes());
  if (entry.has_statistics())
    object.set("min", value_of(entry, &Statistics::minimum))
        .set("max", value_of(entry, &Statistics::maximum))
        .set("mean", mean_of(entry))
        .set("l2_norm", s.l2_norm);
  if (!entry.tensor && entry.has_counts()) object.set("nan", s.nan).set("inf", s.inf());
  if (entry.tensor)
    object.set("l1_norm", s.l1_norm)
        .set("nan", s.nan)
        .set("positive_inf", s.positive_inf)
        .set("negative_inf", s.negative_inf);
  return object;
}

JsonObject file_object(const ShowOptions& options, const TensorFile& file) {
  JsonObject object;
  return object.set("file", options.source.path)
      .set("format", std::string(file.format()))
      .set("note", file.note());
}

int show_list(const ShowOptions& options, const TensorFile& file) {
  Table table({{"name"},
               {"dtype"},
               {"shape"},
               {"min", Align::kRight},
               {"max", Align::kRight},
               {"mean", Align::kRight},
               {"nan", Align::kRight},
               {"inf", Align::kRight}});
  JsonArray list;
  size_t damaged = 0;
  for (size_t i = 0; i < file.size(); ++i) {
    const Entry entry = measure_entry(file, i, options.threads);
    list.emplace_back(describe(entry));
    if (!entry.is_readable()) {
      ++damaged;
      log_warning(printable(entry.name) + ": " + entry.tensor.error().text());
      table.add({entry.name, "unreadable"});
      continue;
    }
    const Statistics& s = entry.statistics;
    std::vector<std::string> cells = {entry.name, dtype_text(entry.dtype()),
                                      cell_text(Cell(entry.shape()))};
    cells.push_back(cell_text(value_of(entry, &Statistics::minimum)));
    cells.push_back(cell_text(value_of(entry, &Statistics::maximum)));
    cells.push_back(cell_text(mean_of(entry)));
    if (entry.has_counts()) {
      cells.push_back(std::to_string(s.nan));
      cells.push_back(std::to_string(s.inf()));
    }
    table.add(std::move(cells));
  }
  const int status = damaged == file.size() ? kCannot : kDone;
  if (options.json) {
    JsonObject root = file_object(options, file);
    root.set("tensors", std::move(list));
    return print(Json(std::move(root)).text() + "\n", status);
  }
  const std::string path = report::visible(options.source.path);
  return print(
      fmt::format("{} ({}, {} tensors)\n\n{}\nNext: look at one with: ait show {} --name {}\n",
                  path, file.format(), file.size(), table.text(stdout_is_colourful()), path,
                  report::visible(file.name(0))),
      status);
}

std::string values_text(const Entry& entry, const std::vector<Cell>& values) {
  std::string out;
  for (const Cell& value : values) {
    if (!out.empty()) out += ", ";
    out += summary::element_text(entry.tensor->dtype(), value);
  }
  if (values.size() < entry.tensor->elements()) out += ", …";
  return out;
}

int print_document(const ShowOptions& options, const TensorFile& file, JsonObject tensor) {
  JsonObject root = file_object(options, file);
  root.set("tensors", JsonArray{std::move(tensor)});
  return print(Json(std::move(root)).text() + "\n");
}

// What is known of a tensor whether its data are there or not.
Table facts_of(const ShowOptions& options, const TensorFile& file, const Entry& entry) {
  Table table({{}, {}});
  table.add({"file", options.source.path});
  table.add({"format", std::string(file.format())});
  if (!entry.name.empty()) table.add({"name", entry.name});
  table.add({"dtype", dtype_text(entry.dtype())});
  table.add({"shape", cell_text(Cell(entry.shape()))});
  table.add({"elements", std::to_string(entry.elements())});
  if (entry.tensor)
    table.add({"bytes", std::to_string(entry.tensor->view().bytes())});
  else
    table.add({"data", fmt::format("not kept: the file holds {} only",
                                   entry.has_statistics() ? "statistics" : "type and shape")});
  const Statistics& s = entry.statistics;
  if (s.elements == 0) return table;
  table.add({"min", cell_text(value_of(entry, &Statistics::minimum))});
  table.add({"max", cell_text(value_of(entry, &Statistics::maximum))});
  table.add({"mean", report::number_text(s.mean)});
  table.add({"l2 norm", report::number_text(s.l2_norm)});
  if (!entry.tensor && entry.has_counts()) {
    table.add({"nan", std::to_string(s.nan)});
    table.add({"inf", std::to_string(s.inf())});
  }
  return table;
}

std::string next_step(const ShowOptions& options) {
  return fmt::format("\nNext: compare it with: ait llm compare -gp GOLDEN -mp {}\n",
                     report::visible(options.source.path));
}

int show_one(const ShowOptions& options, const TensorFile& file, size_t index) {
  const Entry entry = measure_entry(file, index, options.threads);
  if (!entry.is_readable()) return report_error(entry.tensor.error());
  if (!entry.tensor) {
    if (options.json) return print_document(options, file, describe(entry));
    return print(facts_of(options, file, entry).text(false) + next_step(options));
  }
  const TensorView view = entry.tensor->view();
  const Statistics& s = entry.statistics;
  const std::vector<Cell> values = summary::first_elements(view, options.values);
  // The bins run from minimum to maximum, which have no place on a scale when they are NaN or
  // infinite.
  std::vector<size_t> counts;
  if (std::isfinite(s.minimum) && std::isfinite(s.maximum))
    counts = metrics::histogram(view, s, kHistogramBins);

  if (options.json) {
    JsonArray bins;
    for (const size_t count : counts) bins.emplace_back(count);
    JsonObject tensor = describe(entry);
    tensor.set("histogram", std::move(bins)).set("values", JsonArray(values.begin(), values.end()));
    return print_document(options, file, std::move(tensor));
  }

  Table table = facts_of(options, file, entry);
  if (view.elements > 0) {
    table.add({"nan", std::to_string(s.nan)});
    table.add({"+inf, -inf", fmt::format("{}, {}", s.positive_inf, s.negative_inf)});
  }
  if (!values.empty()) table.add({"values", values_text(entry, values)});
  std::string out = table.text(false);
  if (!counts.empty()) {
    out += '\n';
    out += report::histogram_chart(counts, s.minimum, s.maximum, kBarColumns);
  }
  return print(out + next_step(options));
}

int run_show(const ShowOptions& options) {
  const auto opened = formats::open_tensor_file(options.source.path, options.source.raw);
  if (!opened) return report_error(opened.error());
  const TensorFile& file = **opened;
  if (!file.note().empty())
    log_warning(printable(options.source.path) + ": " + printable(file.note()));
  if (options.source.name.empty() && file.size() > 1) return show_list(options, file);
  for (size_t i = 0; i < file.size(); ++i)
    if (options.source.name.empty() || file.name(i) == options.source.name)
      return show_one(options, file, i);
  // Nothing by that name, or nothing at all: load_single has the words for it.
  return report_error(
      formats::load_single(options.source.path, options.source.name, options.source.raw).error());
}

class ShowCommand : public CommandOf<ShowOptions> {
 public:
  void add_options(OptionSet& set) override {
    set.add_operand("FILE", options_.source.path, "a tensor file of any format");
    set.group("Input");
    set.add_option("--name", options_.source.name, "NAME",
                   "which tensor, if the file holds several");
    set.add_option("--dtype", dtype_, "TYPE", "the file is bare bytes of this type");
    set.add_option("--shape", shape_, "SHAPE", "the shape of these bytes, as 2,3");
    set.group("Output");
    set.add_number("--values", options_.values, 0, kMostValues, "N",
                   "how many values to print; 8 if not given");
    add_json(set, options_.json);
    add_threads(set, options_.threads);
  }

  Result<void> understand() override {
    auto raw = parse_raw_layout(dtype_, shape_, "--dtype");
    if (!raw) return fail(raw.error());
    options_.source.raw = std::move(*raw);
    return {};
  }

  int run() override { return run_show(options_); }

 private:
  std::string dtype_;
  std::string shape_;
};

}  // namespace

CommandEntry show_command() {
  return {"show",
          "Show what a tensor file holds",
          {"FILE [options]",
           {"show layer.pth", "show model.safetensors --name lm_head.weight --values 32",
            "show bytes.raw --dtype float16 --shape 2,3"}},
          &make_command<ShowCommand>};
}

}  // namespace ait::cli
