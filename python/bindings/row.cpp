#include "row.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include "compare/row.h"
#include "errors.h"
#include "measure.h"
#include "report/number.h"
#include "tables/comparison.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace ait::python {
namespace {

using capture::TensorRecord;
using compare::Row;
using compare::Side;
using match::Subject;

const char* word(capture::Kept kept) {
  switch (kept) {
    case capture::Kept::kBytes:
      return "bytes";
    case capture::Kept::kStatistics:
      return "statistics";
    case capture::Kept::kDescription:
      return "description";
  }
  return "";
}

nb::object phase_of(const Row& row) {
  switch (row.phase) {
    case match::Phase::kPrefill:
      return nb::str("prefill");
    case match::Phase::kDecode:
      return nb::str("decode");
    case match::Phase::kUnknown:
      break;
  }
  return nb::none();
}

nb::object certainty_of(const Row& row) {
  return row.certainty ? nb::object(nb::str(match::word(*row.certainty))) : nb::none();
}

std::optional<Measured> comparison_of(const Row& row) {
  return row.comparison ? std::optional(Measured{*row.comparison, {}}) : std::nullopt;
}

nb::object value_of(const report::Cell& cell) {
  return std::visit(
      [](const auto& value) -> nb::object {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nb::none();
        } else if constexpr (std::is_same_v<T, std::string>) {
          return decoded(value);
        } else {
          return nb::cast(value);
        }
      },
      cell);
}

nb::dict as_dict(const Row& row, bool extended) {
  nb::dict out;
  for (const tables::ComparisonColumn* column : tables::comparison_columns(extended))
    out[nb::str(column->name.data(), column->name.size())] = value_of(column->value(row));
  return out;
}

// Text as Python writes it, in quotes.
std::string quoted(const std::string& text) { return nb::repr(decoded(text)).c_str(); }

std::string row_repr(const Row& row) {
  std::string out =
      "Row(token=" + quoted(row.token) + ", data_id=" + quoted(tables::data_id(row.subject));
  if (const metrics::Comparison* c = compare::metrics_of(row))
    out += ", cosine_similarity=" + report::ten_decimals_text(c->cosine_similarity) +
           ", relative_euclidean_distance=" + report::number_text(c->relative_euclidean_distance);
  if (!row.reason.empty()) out += ", reason=" + quoted(row.reason);
  return out + ")";
}

// A metric of a row, None where there are none; see metrics_of().
template <double metrics::Comparison::* metric>
std::optional<double> metric_of(const Row& row) {
  const metrics::Comparison* comparison = compare::metrics_of(row);
  return comparison != nullptr ? std::optional(comparison->*metric) : std::nullopt;
}

// Text of outside origin: one of the strings of a T.
template <typename T>
T class_of(std::string T::*);
template <auto text>
nb::object text_of(const decltype(class_of(text))& self) {
  return decoded(self.*text);
}

nb::object of_first(const Side& side, std::string TensorRecord::* text) {
  return decoded(side.records.empty() ? std::string() : side.records.front().*text);
}

nb::list paths_of(const Side& side) {
  nb::list out;
  for (const TensorRecord& record : side.records) out.append(decoded(record.path));
  return out;
}

nb::list ranks_of(const Side& side) {
  nb::list out;
  std::vector<std::string> seen;
  for (const TensorRecord& record : side.records) {
    if (std::find(seen.begin(), seen.end(), record.rank) != seen.end()) continue;
    seen.push_back(record.rank);
    out.append(decoded(record.rank));
  }
  return out;
}

void bind_record(nb::module_& module) {
  nb::class_<TensorRecord>(module, "Record")
      .def_prop_ro("path", &text_of<&TensorRecord::path>)
      .def_prop_ro("member", &text_of<&TensorRecord::member>)
      .def_prop_ro("rank", &text_of<&TensorRecord::rank>)
      .def_prop_ro("round", &text_of<&TensorRecord::round>)
      .def_prop_ro("operation", &text_of<&TensorRecord::operation>)
      .def_prop_ro("type", &text_of<&TensorRecord::type>)
      .def_prop_ro("is_kernel",
                   [](const TensorRecord& self) { return self.level == capture::Level::kKernel; })
      .def_prop_ro("is_before",
                   [](const TensorRecord& self) { return self.moment == capture::Moment::kBefore; })
      .def_prop_ro(
          "is_input",
          [](const TensorRecord& self) { return self.direction == capture::Direction::kInput; })
      .def_ro("index", &TensorRecord::index)
      .def_ro("call", &TensorRecord::call)
      .def("__repr__", [](const TensorRecord& self) {
        return "Record(path=" + quoted(self.path) +
               (self.member.empty() ? "" : ", member=" + quoted(self.member)) + ")";
      });
}

void bind_subject(nb::module_& module) {
  nb::class_<Subject>(module, "Subject")
      .def_prop_ro("name", &text_of<&Subject::name>)
      .def_prop_ro("tensor", &text_of<&Subject::tensor>)
      .def_prop_ro("member", &text_of<&Subject::member>)
      .def_prop_ro("rank", &text_of<&Subject::rank>)
      .def_ro("first_column", &Subject::first_column)
      .def_ro("layer", &Subject::layer)
      .def("__str__", [](const Subject& self) { return decoded(tables::data_id(self)); })
      .def("__repr__",
           [](const Subject& self) { return "Subject(" + quoted(tables::data_id(self)) + ")"; });
}

void bind_side(nb::module_& module) {
  nb::class_<Side>(module, "RowSide")
      .def_prop_ro("is_missing", &Side::is_missing)
      .def_ro("records", &Side::records)
      .def_prop_ro("paths", &paths_of)
      .def_prop_ro("operation",
                   [](const Side& self) { return of_first(self, &TensorRecord::operation); })
      .def_prop_ro("type", [](const Side& self) { return of_first(self, &TensorRecord::type); })
      .def_prop_ro("ranks", &ranks_of)
      .def_prop_ro("transform", [](const Side& self) { return self.transform.text(); })
      .def_prop_ro("kept", [](const Side& self) { return word(self.kept); })
      .def_prop_ro("dtype",
                   [](const Side& self) {
                     return self.dtype ? std::optional(std::string(name(*self.dtype)))
                                       : std::nullopt;
                   })
      .def_prop_ro("shape",
                   [](const Side& self) -> nb::object {
                     if (!self.dtype) return nb::none();
                     return nb::tuple(nb::cast(self.shape));
                   })
      .def_ro("statistics", &Side::statistics)
      .def("__repr__", [](const Side& self) {
        if (self.is_missing()) return std::string("RowSide(missing)");
        return "RowSide(" + quoted(tables::path_text(self)) +
               (self.dtype ? ", dtype=" + std::string(name(*self.dtype)) +
                                 ", shape=" + shape_text(self.shape)
                           : "") +
               ")";
      });
}

}  // namespace

void bind_row(nb::module_& module) {
  using metrics::Comparison;
  bind_record(module);
  bind_subject(module);
  bind_side(module);
  nb::class_<Row>(module, "Row")
      .def_prop_ro("token", &text_of<&Row::token>)
      .def_prop_ro("phase", &phase_of)
      .def_ro("subject", &Row::subject)
      .def_prop_ro("data_id",
                   [](const Row& self) { return decoded(tables::data_id(self.subject)); })
      .def_prop_ro("certainty", &certainty_of)
      .def_prop_ro("certainty_reason", &text_of<&Row::certainty_reason>)
      .def_ro("golden", &Row::golden)
      .def_ro("actual", &Row::actual)
      .def_prop_ro("comparison", &comparison_of)
      .def_prop_ro("cosine_similarity", &metric_of<&Comparison::cosine_similarity>)
      .def_prop_ro("max_relative_error", &metric_of<&Comparison::max_relative_error>)
      .def_prop_ro("mean_relative_error", &metric_of<&Comparison::mean_relative_error>)
      .def_prop_ro("max_absolute_error", &metric_of<&Comparison::max_absolute_error>)
      .def_prop_ro("mean_absolute_error", &metric_of<&Comparison::mean_absolute_error>)
      .def_prop_ro("kl_divergence", &metric_of<&Comparison::kl_divergence>)
      .def_prop_ro("relative_euclidean_distance",
                   &metric_of<&Comparison::relative_euclidean_distance>)
      .def_ro("distance_at_least", &Row::distance_at_least)
      .def_prop_ro("reason", &text_of<&Row::reason>)
      .def("as_dict", &as_dict, "extended"_a = false)
      .def("__repr__", &row_repr);
}

}  // namespace ait::python
