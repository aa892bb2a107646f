// Every reader of outside files, led to what is no file: it ends at once, and says what it has met.

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/text_file.h"
#include "capture/atb_dump.h"
#include "capture/checkpoint.h"
#include "capture/labels.h"
#include "capture/manual_mapping.h"
#include "capture/torch_dump.h"
#include "compare/plan.h"
#include "compare/row_store.h"
#include "dump/cpu_profiling.h"
#include "dump/overflow_results.h"
#include "dump/recorded_run.h"
#include "dump/torch_run.h"
#include "formats/registry.h"
#include "graph/atb_json.h"
#include "graph/finish.h"
#include "graph/onnx.h"
#include "launch/elf.h"
#include "launch/program.h"
#include "match/op_mapping.h"
#include "match/sample.h"
#include "record/ledger.h"
#include "test_files.h"

namespace ait {
namespace {

namespace fs = std::filesystem;
using formats::TempFolder;
using ::testing::HasSubstr;

using Texts = std::vector<std::string>;

template <typename T>
Texts texts_of(const Result<T>& result) {
  return result ? Texts() : Texts{result.error().text()};
}

Texts texts_of(const std::vector<Error>& problems) {
  Texts out;
  for (const Error& problem : problems) out.push_back(problem.text());
  return out;
}

template <typename T>
Texts with_problems(const Result<T>& result) {
  return result ? texts_of(result->problems) : texts_of(result);
}

Texts doubts_of(const Result<capture::Recording>& recording) {
  return recording ? recording->completeness.doubts : texts_of(recording);
}

// What a reader says of the strange thing.
enum class Says : uint8_t {
  kWhat,     // what it is and where
  kName,     // what it is and its name: where is said elsewhere
  kNothing,  // the file may be missing as well, and then nobody asks for it
};

struct Reader {
  std::string name;
  std::string place;  // of the strange thing, below the folder
  std::function<Texts(const std::string& folder, const std::string& path)> read;
  Says says = Says::kWhat;
};

void PrintTo(const Reader& reader, std::ostream* out) { *out << reader.name; }

constexpr const char* kTree = R"({"name": "root", "type": "Model", "order": 0, "children": []})";
constexpr const char* kTopology = R"({"opName": "L_0", "nodes": []})";

// A dump of torch and one of the library, whole but for what is planted in them.
void write_dumps(const TempFolder& folder) {
  folder.write("torch_tensors/cpu_7/model_tree.json", kTree);
  folder.write("torch_tensors/cpu_7/0/root/output.pth", "x");
  folder.write("tensors/0_7/0/0_Linear/after/outtensor0.bin", "x");
  folder.write("model/7/L.json", kTopology);
}

const std::vector<Reader>& readers() {
  static const std::vector<Reader> kReaders = {
      {"Text", "x", [](auto&, auto& path) { return texts_of(read_text(path, 100)); }},
      {"Tensors", "x", [](auto&, auto& path) { return texts_of(formats::open_tensor_file(path)); }},
      {"BareTensor", "x",
       [](auto&, auto& path) {
         return texts_of(
             formats::open_tensor_file(path, formats::RawLayout{DType::kFloat16, std::nullopt}));
       }},
      {"LinkedTensor", "other.bin",
       [](auto& folder, auto&) {
         const std::string link = folder + "/link.bin";
         const auto file = formats::open_tensor_file(link);
         return file ? texts_of((*file)->load(0)) : texts_of(file);
       },
       Says::kNothing},
      {"Rows", "x.rows", [](auto&, auto& path) { return texts_of(compare::RowStore::open(path)); }},
      {"Plan", "x.plan", [](auto&, auto& path) { return texts_of(compare::Plan::open(path)); }},
      {"Topology", "x.json",
       [](auto&, auto& path) { return texts_of(graph::read_topology(path)); }},
      {"OperationTable", "x.csv",
       [](auto&, auto& path) { return texts_of(graph::ShapeTable::read(path)); }},
      {"TopologyForOnnx", "layer/7/x.json",
       [](auto&, auto& path) { return texts_of(graph::convert_to_onnx(path, 0)); }},
      {"TableForOnnx", "operation_io_tensors/7/operation_tensors_0.csv",
       [](auto& folder, auto&) {
         const auto file = graph::convert_to_onnx(folder + "/model/7/L.json", 0);
         if (!file) return texts_of(file);
         return file->table_problem ? Texts{file->table_problem->text()} : Texts();
       }},
      {"Report", "7.graph.0.json",
       [](auto& folder, auto&) {
         return with_problems(graph::finish_topologies(folder, folder, {}));
       }},
      {"OpMapping", "op_mapping_file.json",
       [](auto&, auto& path) {
         // A folder is where a mapping file may lie.
         return fs::is_directory(path) ? Texts() : texts_of(match::read_op_mapping(path));
       }},
      {"OpMappingInFolder", "op_mapping_file.json",
       [](auto& folder, auto&) { return texts_of(match::read_op_mapping(folder)); }},
      {"Labels", "7_0_labels.jsonl",
       [](auto& folder, auto&) {
         const auto labels = capture::read_labels(folder);
         if (!labels) return texts_of(labels);
         return labels->empty() ? Texts() : texts_of(labels->front().problems);
       }},
      {"Metadata", "golden_tensor/metadata.json",
       [](auto&, auto& path) { return texts_of(capture::read_manual_mapping(path)); }},
      {"MetadataToBeExtended", "golden_tensor/metadata.json",
       [](auto& folder, auto&) {
         const capture::MappedPair pair{"0", "0", "golden", "my"};
         return texts_of(capture::add_to_metadata(folder + "/golden_tensor", {&pair, 1}));
       }},
      {"Index", "weights/model.safetensors.index.json",
       [](auto& folder, auto&) { return texts_of(capture::read_checkpoint(folder + "/weights")); }},
      {"Shard", "weights/model.safetensors",
       [](auto& folder, auto&) {
         return with_problems(capture::read_checkpoint(folder + "/weights"));
       }},
      {"ModelTree", "torch_tensors/cpu_7/model_tree.json",
       [](auto& folder, auto&) { return texts_of(capture::read_torch_dump(folder)); }},
      {"TorchStatistics", "torch_tensors/cpu_7/0/root/statistics.csv",
       [](auto& folder, auto&) { return with_problems(capture::read_torch_dump(folder)); }},
      {"TorchManifest", "torch_tensors/cpu_7/manifest.json",
       [](auto& folder, auto&) { return doubts_of(capture::read_torch_dump(folder)); },
       Says::kName},
      {"LibraryManifest", "manifest.json",
       [](auto& folder, auto&) { return doubts_of(capture::read_atb_dump(folder)); }, Says::kName},
      {"TorchManifestOfARun", "torch_tensors/cpu_7/manifest.json",
       [](auto& folder, auto&) {
         return dump::read_torch_run(folder, {7}, fs::file_time_type::min()).notes;
       },
       Says::kNothing},
      {"OpParam", "tensors/0_7/0/0_Linear/op_param.json",
       [](auto& folder, auto&) { return with_problems(capture::read_atb_dump(folder)); }},
      {"ModelOfADump", "model/7/M.json",
       [](auto& folder, auto&) { return with_problems(capture::read_atb_dump(folder)); }},
      {"LayerOfADump", "layer/7/L.json",
       [](auto& folder, auto&) { return with_problems(capture::read_atb_dump(folder)); }},
      {"SampleOfATensor", "x.bin",
       [](auto&, auto& path) {
         capture::TensorRecord record;
         record.path = path;
         return match::read_sample(record, {}) ? Texts{"was read"} : Texts();
       },
       Says::kNothing},
      {"Overflows", "ait_overflow_res_7.txt",
       [](auto& folder, auto&) { return texts_of(dump::read_results(folder, 7, {})); }},
      {"Profiling", "operation_statistic_0.txt",
       [](auto& folder, auto&) { return texts_of(dump::rewrite_profiling(folder)); },
       Says::kNothing},
      {"HalfLine", "x.csv",
       [](auto&, auto& path) { return dump::cut_off_half_line(path) ? Texts{"was cut"} : Texts(); },
       Says::kNothing},
      {"Ledger", "x.ledger",
       [](auto&, auto& path) {
         record::Ledger ledger;
         return record::read_ledger(path.c_str(), ledger) ? Texts{"was read"} : Texts();
       },
       Says::kNothing},
      {"Elf", "x", [](auto&, auto& path) { return texts_of(launch::read_elf(path)); }},
      {"ProbeInterface", "x",
       [](auto&, auto& path) { return texts_of(launch::read_probe_interface(path)); }},
      {"Program", "x",
       [](auto&, auto& path) {
         static_cast<void>(launch::find_program(path, ""));
         return Texts();
       },
       Says::kNothing},
  };
  return kReaders;
}

struct Strange {
  std::string words;
  std::function<void(const std::string& path)> make;
};

// By a relative name: that of a socket has hardly more than a hundred bytes.
void make_socket(const std::string& path) {
  const fs::path before = fs::current_path();
  fs::current_path(fs::path(path).parent_path());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fs::path(path).filename();
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(fd);
  fs::current_path(before);
}

const std::vector<Strange>& strange_things() {
  static const std::vector<Strange> kThings = {
      {"a FIFO", [](auto& path) { EXPECT_EQ(::mkfifo(path.c_str(), 0700), 0); }},
      {"a folder", [](auto& path) { fs::create_directory(path); }},
      {"a socket", make_socket},
      {"a device", [](auto& path) { fs::create_symlink("/dev/zero", path); }},
  };
  return kThings;
}

class StrangeFiles : public testing::TestWithParam<Reader> {
 protected:
  // A reader that waits for a FIFO does so for ever.
  void SetUp() override { ::alarm(30); }
  void TearDown() override { ::alarm(0); }
};

TEST_P(StrangeFiles, EndTheReadingAtOnce) {
  const Reader& reader = GetParam();
  for (const Strange& strange : strange_things()) {
    SCOPED_TRACE(strange.words);
    const TempFolder folder;
    write_dumps(folder);
    folder.write(
        "link.bin",
        "$Version=1.0\n$Object.Count=1\nformat=2\ndtype=0\ndims=1\ndata=other.bin\n$End=1\n");
    const fs::path place = folder.path() / reader.place;
    fs::create_directories(place.parent_path());
    fs::remove(place);
    strange.make(place);

    const auto start = std::chrono::steady_clock::now();
    const Texts texts = reader.read(folder.path(), place);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));

    // A folder is none of the files that a listing gives, so that nobody opens it.
    if (strange.words == "a folder" && texts.empty()) continue;
    if (reader.says == Says::kNothing) continue;
    ASSERT_FALSE(texts.empty());
    EXPECT_THAT(texts.front(),
                HasSubstr(reader.says == Says::kName ? place.filename().native() : place.native()));
    EXPECT_THAT(texts.front(), HasSubstr("is " + strange.words + " where a"));
    EXPECT_EQ(texts.front().find('\n'), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(All, StrangeFiles, testing::ValuesIn(readers()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace ait
