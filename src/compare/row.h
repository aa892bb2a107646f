// What was found out about one pair, as facts: who was compared, what was measured, and why
// something could not be. Texts are made of them where a report is written (tables/comparison.h).
//
//   if (const metrics::Comparison* c = metrics_of(row); c != nullptr && c->cosine_similarity < 0.9)
//     suspects.push_back(row.subject.layer);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capture/capture.h"
#include "match/pair.h"
#include "metrics/compare.h"
#include "metrics/sketch.h"
#include "tensor/tensor.h"

namespace ait::compare {

// One of the two sides of a row.
struct Side {
  std::vector<capture::TensorRecord> records;  // what it is made of; none: there is no such tensor
  bool lacks_member = false;  // the file is there, but holds no tensor of the other file's name
  match::Transform transform;
  capture::Kept kept = capture::Kept::kBytes;  // what of the tensor could be looked at

  std::optional<DType> dtype;  // nothing where no tensor could be read
  Shape shape;
  std::optional<metrics::Side> statistics;

  // A mapping may name an empty path, which is no tensor either.
  bool is_missing() const {
    return records.empty() || lacks_member || records.front().path.empty();
  }
  bool was_read() const { return dtype.has_value(); }
  // It holds a NaN or an infinity, as far as is known.
  bool has_non_finite() const;
};

// What a difference comes to (locate/locate.h).
enum class Verdict : uint8_t {
  kIdentical,
  kNoise,       // what rounding makes of it, or of what went into it
  kSuspicious,  // more than that, and not enough to be sure
  kFault,       // far more than what went into it explains, or it follows from such a value
  kBroken,      // NaN or infinite on one side only, or of another shape
};
const char* word(Verdict verdict);  // "suspicious"

struct Judgement {
  Verdict verdict = Verdict::kNoise;
  double error = 0;     // of what decided: the whole tensor, a row or a column of it
  double expected = 0;  // of a healthy value there
  std::string reason;   // a sentence
};

struct Row {
  std::string token = "0";
  match::Phase phase = match::Phase::kUnknown;
  match::Subject subject;
  match::Origin origin;
  // How sure it is that the two belong together, and why; nothing where a side is missing or
  // nobody had to decide.
  std::optional<match::Certainty> certainty;
  std::string certainty_reason;

  Side golden;
  Side actual;
  // Set wherever elements stood against elements; see metrics_of().
  std::optional<metrics::Comparison> comparison;
  // Where a side has statistics only: the relative euclidean distance cannot be smaller.
  std::optional<double> distance_at_least;
  // Where it has a sketch beside them.
  std::optional<metrics::Estimate> estimate;
  std::string reason;  // sentences joined by blanks; empty when there is nothing to say
  // Nothing until a Locator has seen the row, or where nothing was compared.
  std::optional<Judgement> judgement;
};

// The comparison where its seven metrics hold: some position was compared, and the old tools' rule
// did not withhold them. nullptr otherwise.
const metrics::Comparison* metrics_of(const Row& row);

}  // namespace ait::compare
