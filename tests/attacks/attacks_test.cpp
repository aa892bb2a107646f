// Replays the hostile files (manifest.tsv says what each tries) and the fuzzers' corpora. Every
// file must be read to an end; under AddressSanitizer and UBSan also without a wrong step on the
// way.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "formats/atb_bin.h"
#include "formats/atb_statistics.h"
#include "formats/ge_dump.h"
#include "formats/ge_statistics.h"
#include "formats/gguf.h"
#include "formats/msprobe_json.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/onnx_tensor.h"
#include "formats/polygraphy_json.h"
#include "formats/registry.h"
#include "formats/safetensors.h"
#include "formats/statistics_csv.h"
#include "formats/torch_legacy.h"
#include "formats/torch_zip.h"
#include "fuzz/capture_fuzzer.h"
#include "fuzz/dump_fuzzer.h"
#include "fuzz/folder_index_fuzzer.h"
#include "fuzz/launch_fuzzer.h"
#include "fuzz/match_fuzzer.h"
#include "fuzz/opcheck_fuzzer.h"
#include "fuzz/pickle_fuzzer.h"
#include "fuzz/plan_fuzzer.h"
#include "fuzz/reader_fuzzer.h"
#include "fuzz/rows_fuzzer.h"
#include "fuzz/topology_fuzzer.h"

namespace ait::formats {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;

const fs::path kAttacks = fs::path(AIT_SOURCE_DIR) / "tests" / "attacks";
const fs::path kCorpora = fs::path(AIT_SOURCE_DIR) / "fuzz" / "corpus";
constexpr size_t kFewestAttacks = 40;

struct Attack {
  std::string file;
  std::string outcome;
  std::string code;
  std::string words;
  std::string options;
};

void PrintTo(const Attack& attack, std::ostream* out) { *out << attack.file; }

std::vector<Attack> read_manifest() {
  std::ifstream in(kAttacks / "manifest.tsv");
  std::vector<Attack> attacks;
  std::string line;
  std::getline(in, line);  // the names of the columns
  while (std::getline(in, line)) {
    std::istringstream columns(line);
    Attack& attack = attacks.emplace_back();
    for (std::string* column :
         {&attack.file, &attack.outcome, &attack.code, &attack.words, &attack.options})
      std::getline(columns, *column, '\t');
  }
  return attacks;
}

std::string code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotFound:
      return "NotFound";
    case ErrorCode::kUnreadable:
      return "Unreadable";
    case ErrorCode::kUnwritable:
      return "Unwritable";
    case ErrorCode::kCorrupt:
      return "Corrupt";
    case ErrorCode::kUnsupported:
      return "Unsupported";
    case ErrorCode::kRefused:
      return "Refused";
    case ErrorCode::kUsage:
      return "Usage";
    case ErrorCode::kInterrupted:
      return "Interrupted";
  }
  return "?";
}

std::string summary(const Error& error) { return code_name(error.code()) + ": " + error.message(); }

struct Reading {
  size_t loaded = 0;
  std::vector<std::string> errors;
};

// Opens the file, loads its tensors and reads what they point at.
Reading read_all(const std::string& path, const std::optional<RawLayout>& raw = std::nullopt) {
  Reading reading;
  const auto file = open_tensor_file(path, raw);
  if (!file) {
    reading.errors.push_back(summary(file.error()));
    return reading;
  }
  if ((*file)->size() == 0) reading.errors.push_back(summary(load_single(path).error()));
  for (size_t i = 0; i < std::min((*file)->size(), fuzz::kMaxTensors); ++i) {
    const auto tensor = (*file)->load(i);
    if (tensor) {
      fuzz::touch(tensor->view());
      ++reading.loaded;
    } else {
      reading.errors.push_back(summary(tensor.error()));
    }
  }
  return reading;
}

bool is_rows(const Attack& attack) { return attack.file.starts_with("rows/"); }
bool is_plan(const Attack& attack) { return attack.file.starts_with("plan/"); }
bool is_part(const Attack& attack) { return attack.file.starts_with("part/"); }

Reading read_with(const std::string& path,
                  std::vector<Error> (*read)(std::shared_ptr<const MappedFile>)) {
  Reading reading;
  for (const Error& error : read(MappedFile::open(path).value()))
    reading.errors.push_back(summary(error));
  return reading;
}

Reading read_rows(const std::string& path) {
  const auto rows = fuzz::read_rows(MappedFile::open(path).value());
  Reading reading;
  reading.loaded = rows.read;
  for (const Error& error : rows.errors) reading.errors.push_back(summary(error));
  return reading;
}

// Those that need options of the command line are left to tests/e2e/test_attacks.py.
std::vector<Attack> attacks_without_options() {
  std::vector<Attack> attacks = read_manifest();
  std::erase_if(attacks, [](const Attack& attack) { return attack.options != "-"; });
  return attacks;
}

class EveryAttack : public testing::TestWithParam<Attack> {};

TEST_P(EveryAttack, EndsInItsError) {
  const Attack& attack = GetParam();
  const std::string path = (kAttacks / attack.file).string();
  const Reading reading = is_rows(attack)   ? read_rows(path)
                          : is_plan(attack) ? read_with(path, fuzz::read_plan)
                          : is_part(attack) ? read_with(path, fuzz::read_part)
                                            : read_all(path);
  EXPECT_THAT(reading.errors,
              Contains(AllOf(HasSubstr(attack.code + ": "), HasSubstr(attack.words))));
  EXPECT_EQ(reading.loaded > 0, attack.outcome == "listed");
}

INSTANTIATE_TEST_SUITE_P(Manifest, EveryAttack, testing::ValuesIn(attacks_without_options()),
                         [](const auto& test) {
                           std::string name =
                               fs::path(test.param.file).replace_extension().string();
                           std::replace_if(
                               name.begin(), name.end(),
                               [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> paths;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(Attacks, AreManyAndAllInTheManifest) {
  std::vector<std::string> listed;
  for (const Attack& attack : read_manifest()) listed.push_back((kAttacks / attack.file).string());
  std::sort(listed.begin(), listed.end());
  EXPECT_GE(listed.size(), kFewestAttacks);
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(kAttacks))
    if (entry.is_directory() && entry.path().filename() != "__pycache__") {
      const auto below = files_below(entry.path());
      found.insert(found.end(), below.begin(), below.end());
    }
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, listed);
}

TEST(Attacks, AreOrdinaryFilesToTheRawReader) {
  const std::optional<Shape> impossible(Shape{int64_t{1} << 62, 4});
  for (const Attack& attack : read_manifest()) {
    const std::string path = (kAttacks / attack.file).string();
    for (const DType dtype : {DType::kUInt8, DType::kFloat16, DType::kComplex128}) {
      const Reading whole = read_all(path, RawLayout{dtype, std::nullopt});
      const bool fits = fs::file_size(path) % size_bytes(dtype) == 0;
      EXPECT_EQ(whole.loaded, fits ? 1 : 0) << path;
      EXPECT_EQ(read_all(path, RawLayout{dtype, impossible}).loaded, 0) << path;
    }
  }
}

std::vector<uint8_t> contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

const std::map<std::string, fuzz::Opener> kFuzzedReaders = {
    {"fuzz_atb_bin", atb_bin::open},
    {"fuzz_atb_statistics", atb_statistics::open},
    {"fuzz_ge_dump", ge_dump::open},
    {"fuzz_gguf", gguf::open},
    {"fuzz_msprobe_json", msprobe_json::open},
    {"fuzz_npy", npy::open},
    {"fuzz_onnx_tensor", onnx_tensor::open},
    {"fuzz_polygraphy_json", polygraphy_json::open},
    {"fuzz_ge_statistics", ge_statistics::open},
    {"fuzz_npz", npz::open},
    {"fuzz_safetensors", safetensors::open},
    {"fuzz_statistics_csv", statistics_csv::open},
    {"fuzz_torch_legacy", torch_legacy::open},
    {"fuzz_torch_zip", torch_zip::open},
};

// The targets that take anything else than a tensor file.
const std::map<std::string, int (*)(const uint8_t* data, size_t size)> kOtherTargets = {
    {"fuzz_dump_tree", fuzz::read_as_dump_tree},
    {"fuzz_folder_index", fuzz::read_as_folder_index},
    {"fuzz_ge_text", fuzz::read_as_ge_text},
    {"fuzz_golden", fuzz::read_as_golden},
    {"fuzz_index", fuzz::read_as_index},
    {"fuzz_labels", fuzz::read_as_labels},
    {"fuzz_manifest", fuzz::read_as_manifest},
    {"fuzz_metadata", fuzz::read_as_metadata},
    {"fuzz_model_tree", fuzz::read_as_model_tree},
    {"fuzz_msprobe_dump", fuzz::read_as_msprobe_dump},
    {"fuzz_op_mapping", fuzz::read_as_op_mapping},
    {"fuzz_op_param", fuzz::read_as_op_param},
    {"fuzz_operation_rows", fuzz::read_as_operation_rows},
    {"fuzz_operation_table", fuzz::read_as_operation_table},
    {"fuzz_part", fuzz::read_as_part},
    {"fuzz_pickle", fuzz::read_as_pickle},
    {"fuzz_plan", fuzz::read_as_plan},
    {"fuzz_program", fuzz::read_as_program},
    {"fuzz_rows", fuzz::read_as_rows},
    {"fuzz_run_file", fuzz::read_as_run_file},
    {"fuzz_topology", fuzz::read_as_topology},
};

class Corpus : public testing::TestWithParam<std::string> {};

TEST_P(Corpus, IsReadToTheEnd) {
  const auto paths = files_below(kCorpora / GetParam());
  ASSERT_FALSE(paths.empty());
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const std::vector<uint8_t> input = contents(path);
    if (const auto other = kOtherTargets.find(GetParam()); other != kOtherTargets.end())
      other->second(input.data(), input.size());
    else
      fuzz::read_as_file(kFuzzedReaders.at(GetParam()), input.data(), input.size());
  }
}

// Attacks cross-read: a reader must survive the files of the others as well as its own.
TEST(Attacks, AreHarmlessToEveryReader) {
  for (const Attack& attack : read_manifest()) {
    SCOPED_TRACE(attack.file);
    const std::vector<uint8_t> input = contents((kAttacks / attack.file).string());
    for (const auto& [name, open] : kFuzzedReaders)
      fuzz::read_as_file(open, input.data(), input.size());
    for (const auto& [name, read] : kOtherTargets) read(input.data(), input.size());
  }
}

// By what is there, so that a target without a line above fails.
std::vector<std::string> corpus_names() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(kCorpora))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Corpora, AreThereForEveryTarget) {
  std::vector<std::string> targets;
  for (const fs::directory_entry& entry : fs::directory_iterator(kCorpora.parent_path()))
    if (entry.path().extension() == ".cpp") targets.push_back(entry.path().stem());
  std::sort(targets.begin(), targets.end());
  EXPECT_EQ(targets, corpus_names());
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, testing::ValuesIn(corpus_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace ait::formats
