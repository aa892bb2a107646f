// What a healthy value may be off by: the error model. docs/locate.md explains it.
//
//   const Expectations expectations(values, noise, memory);
//   if (values[i].errors[k] > expectations.at(i).limit(k)) …      // more than noise
//
// A value is off by what went into it, times a gain, and by the rounding of its own operation, the
// floor. Where the same operation of other layers was recorded, its gain is theirs; otherwise it is
// what operations of its kind have. Where a third run shows what noise is, both are measured.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "locate/noise_run.h"
#include "locate/value.h"

namespace ait::locate {

// Where an expectation comes from.
enum class Basis : uint8_t {
  kKind,      // the types of both sides, and what operations of its kind do to errors
  kPeers,     // what the same operation does in other layers
  kKin,       // what other operations of its kind do in the same model
  kNoiseRun,  // what was measured of a noise run
  kBefore,    // its inputs are not known: the largest error before it
};

struct Expected {
  Errors errors{};  // of a healthy value
  Errors limits{};  // above which it is a fault
  Basis basis = Basis::kKind;
  double input = 0;  // the largest error of what went into it
  double gain = 1;   // by which that grows in a healthy operation
  double floor = 0;  // the error of the operation's own rounding
  size_t peers = 0;
  bool is_open = false;  // what went in is so far off that nothing can be told

  // How many times what is expected makes a fault.
  double factor(Measure measure) const {
    const auto k = static_cast<size_t>(measure);
    return errors[k] > 0 ? limits[k] / errors[k] : 0;
  }
  // How far above the limit the errors are: a fault from 1 on.
  double excess(const Errors& errors, size_t* measure = nullptr) const;
  std::string basis_text() const;  // "3 other layers"
};

// What is kept of the tokens before, by Value::id.
struct Memory {
  std::unordered_map<uint64_t, Errors> inputs;  // their errors: what attention finds in its cache
  std::unordered_map<uint64_t, Errors> noise_inputs;  // the same of the noise run
  // Of a linear layer, the largest size of its output relative to its input. Where less is left, sums
  // have cancelled, and errors have not.
  std::unordered_map<uint64_t, double> sizes;
};

// Of all values of a token. `noise` has an entry for each value, or none at all.
std::vector<Expected> expect(const std::vector<Value>& values,
                             const std::vector<std::optional<NoiseRun::Measured>>& noise,
                             Memory& memory);

}  // namespace ait::locate
