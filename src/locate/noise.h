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

#include "locate/value.h"

namespace ait::locate {

// Errors of a run that is healthy by definition, against the same golden: a repeat, golden in
// another precision, or golden with its inputs moved by a rounding unit.
class NoiseRun {
 public:
  void add(const compare::Row& row);
  // After the last row.
  void settle();
  bool is_empty() const { return errors_.empty(); }
  size_t size() const { return errors_.size(); }

  struct Measured {
    Errors errors{};
    double spread = 0;
    double unit = 0;       // what it was rounded by, or perturbed
    double type_unit = 0;  // what its type rounds by
    bool is_identical = true;
    double share_differing = 0;
  };
  // Of the same golden tensor; nothing where the noise run has none.
  std::optional<Measured> of(const compare::Row& row) const;

 private:
  std::unordered_map<uint64_t, Measured> errors_;  // by golden's files and columns
  double perturbed_ = 0;  // the rounding unit that its smallest errors are of
};

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
