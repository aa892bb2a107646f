#include "trigger.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <new>
#include <string_view>

#include "errors.h"
#include "fused/recording.h"
#include "watch/trigger.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace ait::python {

using watch::Event;
using watch::Trigger;

void bind_trigger(nb::module_& module) {
  nb::class_<Event>(module, "TriggerEvent")
      .def_ro("round", &Event::round)
      .def_ro("condition", &Event::condition)
      .def_prop_ro("module", [](const Event& self) { return decoded(self.module); })
      .def_prop_ro("tensor", [](const Event& self) { return decoded(self.tensor); })
      .def_ro("statistic", &Event::statistic)
      .def_ro("value", &Event::value)
      .def_ro("median", &Event::median);
  nb::class_<Trigger>(module, "Trigger")
      .def(
          "__init__",
          [](Trigger* self, std::string_view conditions, size_t keep) {
            new (self) Trigger(value_or_raise(watch::parse_conditions(conditions)), keep);
          },
          "conditions"_a, "keep"_a)
      .def(
          "see",
          [](Trigger& self, const fused::RoundTable& round, std::string_view kind) {
            const nb::gil_scoped_release unlocked;
            round.table->each_known([&](const std::string& place, const std::string& stem,
                                        const std::string& shape, const fused::Result& numbers) {
              if (stem.starts_with(kind)) {
                // Not every device counts.
                watch::Values values =
                    watch::Values::of(numbers.maximum, numbers.minimum, numbers.l2_norm);
                values.has_nan |= numbers.nan > 0;
                values.has_inf |= numbers.inf > 0;
                self.see(round.table->number(), place, stem, shape, values);
              }
            });
          },
          "table"_a, "kind"_a)
      .def("end_round", &Trigger::end_round, "round"_a)
      .def("finish", &Trigger::finish)
      .def_prop_ro("events", &Trigger::events)
      .def_prop_ro("more_events", &Trigger::more_events)
      .def_prop_ro("kept", &Trigger::kept)
      .def_prop_ro("rounds_seen", &Trigger::rounds_seen)
      .def_ro_static("max_keep", &Trigger::kMaxKeep);
}

}  // namespace ait::python
