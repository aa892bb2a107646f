#include "locate/locate.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace ait::locate {
namespace {

using capture::OpKind;
using compare::Row;
using compare::Verdict;

constexpr double kUnit = 0x1p-8;  // of bfloat16

// Rows of a model as a comparison would give them, with errors that the test chooses.
class Rows {
 public:
  Rows() = default;
  explicit Rows(std::string token) : token_(std::move(token)) {}

  // What it is computed from is named by rows before it.
  Row& add(const std::string& operation, OpKind kind, const std::vector<std::string>& sources,
           double error, std::optional<uint32_t> layer = {}) {
    Row row;
    row.token = token_;
    row.subject.name = operation;
    row.subject.tensor = "output";
    row.subject.layer = layer;
    row.origin.is_known = true;
    row.origin.operation = operation;
    row.origin.kind = kind;
    for (const std::string& source : sources)
      row.origin.sources.push_back(static_cast<uint32_t>(rows_.size() - place_.at(source)));
    row.golden.dtype = DType::kFloat32;
    row.actual.dtype = DType::kBFloat16;
    row.golden.shape = row.actual.shape = {64, 256};
    row.golden.records.resize(1);
    row.golden.records[0].path = "golden/" + token_ + "/" + operation;
    row.actual.records = row.golden.records;
    set_error(row, error);
    place_[operation] = rows_.size();
    rows_.push_back(std::move(row));
    return rows_.back();
  }

  static void set_error(Row& row, double error) {
    row.comparison.emplace();
    row.comparison->compared = row.comparison->elements = 64 * 256;
    row.comparison->relative_euclidean_distance = error;
    metrics::ErrorProfile& profile = row.comparison->profile.emplace();
    profile.rows = 64;
    profile.columns = 256;
    profile.column_rows = 64;
    profile.error = error;
    profile.worst_row_error = 1.5 * error;
    profile.usual_row_error = error;
    profile.worst_column_error = 2 * error;
    profile.usual_column_error = error;
  }

  Row& at(const std::string& operation) { return rows_[place_.at(operation)]; }
  std::vector<Row>& all() { return rows_; }

 private:
  std::string token_ = "0";
  std::vector<Row> rows_;
  std::map<std::string, size_t> place_;
};

struct Step {
  const char* name;
  OpKind kind;
  std::vector<const char*> sources;  // "": what the layer was given
  double gain;
};

// One layer of a decoder. Gains are about what they are in a real one.
const std::vector<Step>& layer_steps() {
  static const std::vector<Step> kSteps = {
      {"norm1", OpKind::kNorm, {""}, 1.05},
      {"q_proj", OpKind::kLinear, {"norm1"}, 1.05},
      {"k_proj", OpKind::kLinear, {"norm1"}, 1.05},
      {"v_proj", OpKind::kLinear, {"norm1"}, 1.05},
      {"attention", OpKind::kUnknown, {"q_proj", "k_proj", "v_proj"}, 0.8},
      {"o_proj", OpKind::kLinear, {"attention"}, 1.05},
      {"sum", OpKind::kUnknown, {"", "o_proj"}, 0.95},
      {"norm2", OpKind::kNorm, {"sum"}, 1.05},
      {"up", OpKind::kLinear, {"norm2"}, 1.05},
      {"down", OpKind::kLinear, {"up"}, 1.05},
      {"out", OpKind::kUnknown, {"sum", "down"}, 0.95},
  };
  return kSteps;
}

// A healthy model of this many layers, and what a fault of `times` the noise makes of it at one
// operation and after it.
Rows model(uint32_t layers, const std::map<std::string, double>& faults = {},
           const std::string& token = "0", uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> jitter(0.85, 1.15);
  Rows rows(token);
  std::map<std::string, double> errors;
  const auto add = [&](const std::string& name, OpKind kind, std::vector<std::string> sources,
                       double gain, std::optional<uint32_t> layer) {
    double input = 0;
    for (const std::string& source : sources) input = std::max(input, errors.at(source));
    double error = std::hypot(gain * input, 0.45 * kUnit) * jitter(random);
    if (const auto fault = faults.find(name); fault != faults.end()) error *= fault->second;
    errors[name] = std::min(error, 1.4);
    rows.add(name, kind, sources, errors[name], layer);
  };
  add("root.embed", OpKind::kEmbedding, {}, 1, {});
  std::string trunk = "root.embed";
  for (uint32_t i = 0; i < layers; ++i) {
    const std::string prefix = "root.layers." + std::to_string(i) + ".";
    for (const Step& step : layer_steps()) {
      std::vector<std::string> sources;
      for (const char* source : step.sources)
        sources.push_back(*source == 0 ? trunk : prefix + source);
      add(prefix + step.name, step.kind, sources, step.gain, i);
    }
    trunk = prefix + "out";
  }
  add("root.norm", OpKind::kNorm, {trunk}, 1.05, {});
  add("root.head", OpKind::kLinear, {"root.norm"}, 1.05, {});
  return rows;
}

struct Located {
  std::vector<Finding> findings;
  std::vector<Row> rows;

  const Row& at(const std::string& operation) const {
    for (const Row& row : rows)
      if (row.subject.name == operation) return row;
    ADD_FAILURE() << operation;
    return rows.front();
  }
  bool accuses() const {
    return !findings.empty() && findings.front().verdict() != Verdict::kSuspicious;
  }
};

Located locate(const std::vector<Rows>& tokens, const LocateOptions& options = {}) {
  Located out;
  Locator locator(options, [&](Row&& row, uint64_t) { out.rows.push_back(std::move(row)); });
  for (Rows token : tokens)
    for (Row& row : token.all()) locator.add(std::move(row), 0);
  locator.finish();
  out.findings = locator.findings();
  return out;
}

TEST(Locator, TakesErrorsThatGrowWithDepthForNoise) {
  for (const uint32_t layers : {1U, 2U, 4U, 40U})
    for (uint32_t seed = 1; seed <= 20; ++seed) {
      const Located located = locate({model(layers, {}, "0", seed)});
      EXPECT_FALSE(located.accuses()) << located.findings.front().reason;
      EXPECT_EQ(located.rows.size(), model(layers).all().size());
      EXPECT_EQ(located.at("root.head").judgement->verdict, Verdict::kNoise);
    }
}

TEST(Locator, NamesTheOperationWhoseInputsAreRight) {
  for (const uint32_t layers : {2U, 4U, 40U})
    for (const Step& step : layer_steps())
      for (const uint32_t layer : {0U, layers - 1}) {
        const std::string faulty = "root.layers." + std::to_string(layer) + "." + step.name;
        const Located located = locate({model(layers, {{faulty, 10}})});
        ASSERT_TRUE(located.accuses()) << faulty << " of " << layers;
        EXPECT_EQ(located.findings[0].operation, faulty);
        EXPECT_EQ(located.findings.size(), 1U) << located.findings.back().operation;
        EXPECT_EQ(located.findings[0].row.subject.layer, layer);
        EXPECT_GT(located.findings[0].follow, 0U);
      }
}

TEST(Locator, FoldsWhatFollowsIntoTheFinding) {
  const Located located = locate({model(4, {{"root.layers.1.up", 30}})});
  ASSERT_EQ(located.findings.size(), 1U);
  const compare::Judgement& judgement = *located.at("root.layers.1.down").judgement;
  EXPECT_EQ(judgement.verdict, Verdict::kFault);
  EXPECT_NE(judgement.reason.find("follows from root.layers.1.up"), std::string::npos);
  EXPECT_EQ(located.at("root.layers.1.norm1").judgement->verdict, Verdict::kNoise);
}

TEST(Locator, TellsTwoFaultsApart) {
  const Located located =
      locate({model(8, {{"root.layers.1.up", 10}, {"root.layers.5.q_proj", 20}})});
  ASSERT_EQ(located.findings.size(), 2U);
  EXPECT_EQ(located.findings[0].operation, "root.layers.1.up");
  EXPECT_EQ(located.findings[1].operation, "root.layers.5.q_proj");
}

TEST(Locator, TellsTwoFaultsOfTheSameOperationApart) {
  for (const uint32_t layers : {2U, 3U, 8U}) {
    const std::string last = "root.layers." + std::to_string(layers - 1) + ".q_proj";
    const Located located = locate({model(layers, {{"root.layers.0.q_proj", 12}, {last, 300}})});
    ASSERT_EQ(located.findings.size(), 2U) << layers;
    EXPECT_EQ(located.findings[0].operation, "root.layers.0.q_proj");
    EXPECT_EQ(located.findings[1].operation, last);
  }
}

TEST(Locator, NamesALargeFaultBeforeOneThatIsHardlyBeyondItsLimit) {
  Rows rows = model(8, {{"root.layers.5.up", 200}});
  metrics::ErrorProfile& stray = *rows.at("root.layers.1.o_proj").comparison->profile;
  stray.worst_row_error *= 4;
  const Located located = locate({rows});
  ASSERT_EQ(located.findings.size(), 2U);
  EXPECT_EQ(located.findings[0].operation, "root.layers.5.up");
  EXPECT_EQ(located.findings[1].operation, "root.layers.1.o_proj");
  EXPECT_LT(located.findings[1].excess, 1.7);
}

TEST(Locator, SeesDamageToOneRowOrColumnThatTheWholeTensorHides) {
  for (const bool is_row : {true, false}) {
    Rows rows = model(4);
    metrics::ErrorProfile& profile = *rows.at("root.layers.2.o_proj").comparison->profile;
    (is_row ? profile.worst_row_error : profile.worst_column_error) *= 15;
    (is_row ? profile.worst_row : profile.worst_column) = 17;
    const Located located = locate({rows});
    ASSERT_TRUE(located.accuses());
    EXPECT_EQ(located.findings[0].operation, "root.layers.2.o_proj");
    EXPECT_EQ(located.findings[0].measure, is_row ? Measure::kRow : Measure::kColumn);
    EXPECT_NE(located.findings[0].reason.find(is_row ? "row 17" : "column 17"), std::string::npos);
  }
}

TEST(Locator, ExpectsANormToShowWhatLargeChannelsHid) {
  Rows rows = model(1);
  // A few channels are so large that the errors of all others do not count in the whole.
  Row& sum = rows.at("root.layers.0.sum");
  const double error = sum.comparison->relative_euclidean_distance;
  sum.comparison->relative_euclidean_distance = sum.comparison->profile->error = error / 30;
  sum.comparison->profile->worst_row_error = sum.comparison->profile->usual_row_error = error / 20;
  const Located located = locate({rows});
  EXPECT_FALSE(located.accuses()) << located.findings[0].operation << located.findings[0].reason;
}

TEST(Locator, NamesTheFirstThatIsNotFinite) {
  Rows rows = model(3);
  for (const char* broken : {"root.layers.1.up", "root.layers.1.down", "root.layers.1.out"})
    rows.at(broken).comparison->non_finite_agree = false;
  const Located located = locate({rows});
  ASSERT_EQ(located.findings.size(), 1U);
  EXPECT_EQ(located.findings[0].operation, "root.layers.1.up");
  EXPECT_EQ(located.findings[0].verdict(), Verdict::kBroken);
  EXPECT_GE(located.findings[0].follow, 2U);
  EXPECT_EQ(located.at("root.head").judgement->verdict, Verdict::kNoise);
}

TEST(Locator, TakesWhatTheCacheOfAnEarlierTokenBringsForThat) {
  // Token 1 finds in its cache what the fault of token 0 left there, though its own keys are right.
  Rows first = model(4, {{"root.layers.1.down", 40}});
  Rows second =
      model(4, {{"root.layers.2.attention", 30}, {"root.layers.3.attention", 10}}, "1", 2);
  const Located located = locate({first, second});
  ASSERT_EQ(located.findings.size(), 1U) << located.findings.back().operation;
  EXPECT_EQ(located.findings[0].operation, "root.layers.1.down");
}

TEST(Locator, FindsAFaultThatBeginsAtALaterToken) {
  const Located located =
      locate({model(4), model(4, {{"root.layers.1.down", 20}}, "1", 2), model(4, {}, "2", 3)});
  ASSERT_EQ(located.findings.size(), 1U);
  EXPECT_EQ(located.findings[0].row.token, "1");
  EXPECT_EQ(located.findings[0].operation, "root.layers.1.down");
}

TEST(Locator, FindsSmallerFaultsWhereNoiseWasMeasured) {
  NoiseRun noise;
  Rows repeated = model(4, {}, "0", 7);
  for (const Row& row : repeated.all()) noise.add(row);
  const LocateOptions options{.in_order = true, .noise = &noise};
  EXPECT_FALSE(locate({model(4, {}, "0", 8)}, options).accuses());
  for (const Step& step : layer_steps()) {
    const std::string faulty = std::string("root.layers.2.") + step.name;
    const Located located = locate({model(4, {{faulty, 3}}, "0", 8)}, options);
    ASSERT_TRUE(located.accuses()) << faulty;
    EXPECT_EQ(located.findings[0].operation, faulty);
    EXPECT_EQ(located.findings[0].expected.basis, Basis::kNoiseRun);
  }
}

// Both runs compute alike: whatever noise was measured, what differs alone is wrong.
TEST(Locator, LetsNoNoiseRunExcuseWhatIsIdenticalInOtherLayers) {
  NoiseRun noise;
  Rows noisy = model(4, {}, "0", 7);
  for (Row& row : noisy.all()) {
    Rows::set_error(row, 0.2);
    noise.add(row);
  }
  Rows rows = model(4);
  for (Row& row : rows.all()) row.comparison->identical = true;
  Row& wrong = rows.at("root.layers.2.attention");
  wrong.comparison->identical = false;
  Rows::set_error(wrong, 0.1);
  const Located located = locate({rows}, {.in_order = true, .noise = &noise});
  ASSERT_TRUE(located.accuses());
  EXPECT_EQ(located.findings[0].operation, "root.layers.2.attention");
}

// Choices of one token differ; the experts may make anything of it, but not of all others.
TEST(Locator, LooksBeyondTheTokensWithAnotherChoice) {
  for (const bool is_wrong : {false, true}) {
    Rows rows("0");
    rows.add("root.embed", OpKind::kEmbedding, {}, 0.5 * kUnit);
    for (uint32_t layer = 0; layer < 4; ++layer) {
      const std::string prefix = "root.layers." + std::to_string(layer) + ".";
      rows.add(prefix + "norm", OpKind::kNorm, {"root.embed"}, 0.8 * kUnit, layer);
      Row& choice = rows.add(prefix + "choice", OpKind::kUnknown, {prefix + "norm"}, 0.3, layer);
      choice.golden.dtype = choice.actual.dtype = DType::kInt64;
      choice.comparison->identical = layer != 2;
      choice.comparison->differing = 2;
      rows.add(prefix + "experts", OpKind::kUnknown, {prefix + "norm", prefix + "choice"},
               1.2 * kUnit, layer);
      rows.add(prefix + "out", OpKind::kAdd, {"root.embed", prefix + "experts"}, kUnit, layer);
      if (layer != 2) continue;
      Rows::set_error(rows.at(prefix + "experts"), is_wrong ? 0.9 : 0.25);
      metrics::ErrorProfile& profile = *rows.at(prefix + "experts").comparison->profile;
      profile.worst_row_error = 1.4;
      profile.usual_row_error = is_wrong ? 0.8 : 1.2 * kUnit;
    }
    const Located located = locate({rows});
    ASSERT_EQ(located.accuses(), is_wrong);
    if (is_wrong) {
      EXPECT_EQ(located.findings[0].operation, "root.layers.2.experts");
    }
  }
}

TEST(Locator, JudgesACopyAsItsSource) {
  Rows rows = model(2, {{"root.layers.0.down", 20}});
  Row& copy = rows.add("root.layers.0.mlp", OpKind::kUnknown, {"root.layers.0.down"},
                       rows.at("root.layers.0.down").comparison->relative_euclidean_distance, 0);
  copy.origin.is_copy = true;
  const Located located = locate({rows});
  ASSERT_EQ(located.findings.size(), 1U);
  EXPECT_EQ(located.findings[0].operation, "root.layers.0.down");
  EXPECT_EQ(located.at("root.layers.0.mlp").judgement->verdict, Verdict::kFault);
}

TEST(Locator, FallsBackToTheLargestErrorBeforeWhereInputsAreNotKnown) {
  Rows healthy = model(4);
  for (Row& row : healthy.all()) row.origin = {};
  EXPECT_FALSE(locate({healthy}).accuses());
  Rows faulty = model(4, {{"root.layers.2.up", 40}});
  for (Row& row : faulty.all()) row.origin = {};
  const Located located = locate({faulty});
  ASSERT_TRUE(located.accuses());
  EXPECT_EQ(located.findings[0].operation, "root.layers.2.up");
}

TEST(Locator, AccusesNobodyWhereRowsAreInNoOrder) {
  Rows rows = model(1, {{"root.layers.0.up", 100}});
  rows.at("root.embed").comparison->identical = true;
  const Located located = locate({rows}, {.in_order = false});
  EXPECT_TRUE(located.findings.empty());
  EXPECT_EQ(located.at("root.layers.0.up").judgement->verdict, Verdict::kSuspicious);
  EXPECT_EQ(located.at("root.embed").judgement->verdict, Verdict::kIdentical);
  EXPECT_EQ(located.at("root.layers.0.norm1").judgement->verdict, Verdict::kNoise);
}

TEST(Locator, HandsOnEveryRowInOrder) {
  const Located located = locate({model(40), model(40, {}, "1", 2)});
  ASSERT_EQ(located.rows.size(), 2 * model(40).all().size());
  EXPECT_EQ(located.rows.front().token, "0");
  EXPECT_EQ(located.rows.back().token, "1");
  for (const Row& row : located.rows) EXPECT_TRUE(row.judgement.has_value()) << row.subject.name;
}

TEST(RoleText, IsTheSameInAllLayers) {
  match::Subject subject;
  subject.name = "root.model.layers.3.mlp.experts.5.w1";
  subject.tensor = "output";
  EXPECT_EQ(role_text(subject), "");
  subject.layer = 3;
  EXPECT_EQ(role_text(subject), "root.model.layers.#.mlp.experts.#.w1/output@");
  subject.name = "12_Layer/4_Mlp/0_LinearOperation";
  EXPECT_EQ(role_text(subject), "#_Layer/4_Mlp/0_LinearOperation/output@");
}

}  // namespace
}  // namespace ait::locate
