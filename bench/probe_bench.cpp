// Times recording through the probe, as a host would meet it, against a plain loop that creates,
// writes and renames the same files in the same folders.
//
//   probe_bench LIBATB_PROBE FOLDER [repeats, default 9]
//
// Prints one JSON line per size, like record_bench. The probe's files are all there when its ledger
// says so.
#include <dlfcn.h>

#include <cinttypes>
#include <filesystem>

#include "plain_files.h"
#include "record/ledger.h"

namespace {

using namespace ait::bench;
using namespace ait::record;
namespace fs = std::filesystem;

constexpr size_t kSources = 32;  // different tensors, so that not one of them stays in the caches
constexpr size_t kTensorsPerOperation = 4;
constexpr const char* kSaveTensor =
    "_ZN3atb5Probe10SaveTensorERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES8_S8_PKvmS8_";

using SaveTensor = void (*)(const std::string& format, const std::string& type,
                            const std::string& dims, const void* data, uint64_t bytes,
                            const std::string& path);

uint64_t written_so_far(const std::string& ledger_path) {
  Ledger ledger;
  if (!read_ledger(ledger_path.c_str(), ledger)) return 0;
  if (ledger.failed > 0) give_up(ledger.failure_path);
  return ledger.written;
}

void measure(SaveTensor save, const fs::path& folder, int repeats, size_t bytes, size_t files) {
  const std::string dims = std::to_string(bytes / 2);
  const std::string header =
      "$Version=1.0\n$Object.Count=1\n$Object.Length=" + std::to_string(bytes) +
      "\nformat=2\ndtype=1\ndims=" + dims + "\n$Object.data=0," + std::to_string(bytes) +
      "\n$End=1\n";
  std::vector<std::string> tensors(kSources, std::string(bytes, '\0'));
  uint32_t random = 1;
  for (std::string& tensor : tensors)
    for (char& byte : tensor)
      byte = static_cast<char>((random = random * 1664525u + 1013904223u) >> 24);
  std::vector<std::string> contents;
  for (const std::string& tensor : tensors) contents.push_back(header + tensor);

  const fs::path root = folder / "out/ait_dump/tensors";
  std::vector<std::string> paths(files);
  for (size_t i = 0; i < files; ++i)
    paths[i] = "0_1/0/" + std::to_string(i / kTensorsPerOperation) + "_LinearOperation/after/" +
               (i % kTensorsPerOperation < 3 ? "intensor" : "outtensor") +
               std::to_string(i % kTensorsPerOperation) + ".bin";
  const std::string ledger_path = folder / "run" / (std::to_string(::getpid()) + ".0.ledger");

  std::vector<double> plain;
  std::vector<double> recorded;
  std::vector<double> held_up;
  const auto in_fresh_folder = [&](const auto& work) {
    fs::create_directories(root / "0_1/0");
    ::sync();  // the files of the round before are not to be paid for in this one
    work();
    fs::remove_all(folder / "out");
  };
  for (int r = 0; r < repeats; ++r) {
    in_fresh_folder([&] {
      const double start = seconds();
      for (size_t i = 0; i < files; ++i) {
        const fs::path path = root / paths[i];
        if (i % kTensorsPerOperation == 0) fs::create_directories(path.parent_path());
        create_write_rename(path, contents[i % kSources]);
      }
      plain.push_back(seconds() - start);
    });
    in_fresh_folder([&] {
      const uint64_t before = written_so_far(ledger_path);
      const double start = seconds();
      for (size_t i = 0; i < files; ++i)
        save("2", "1", dims, tensors[i % kSources].data(), bytes, paths[i]);
      held_up.push_back(seconds() - start);
      while (written_so_far(ledger_path) < before + files) ::usleep(200);
      recorded.push_back(seconds() - start);
    });
  }
  std::printf(
      "{\"bytes\": %zu, \"files\": %zu, \"format\": \"atb_bin by the probe\", \"plain\": "
      "{\"seconds\": %.6f, \"spread\": %.3f}, \"writer\": {\"seconds\": %.6f, \"spread\": %.3f, "
      "\"of_plain\": %.3f}, \"host\": {\"seconds\": %.6f, \"spread\": %.3f, \"of_plain\": %.3f}}\n",
      bytes, files, median(plain), spread(plain), median(recorded), spread(recorded),
      median(plain) / median(recorded), median(held_up), spread(held_up),
      median(plain) / median(held_up));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: probe_bench LIBATB_PROBE FOLDER [repeats]\n");
    return 2;
  }
  const fs::path folder = fs::absolute(fs::path(argv[2]) / "probe_bench");
  const int repeats = argc > 3 ? std::max(1, std::atoi(argv[3])) : 9;
  fs::remove_all(folder);
  ::setenv("ATB_DUMP_TYPE", "tensor", 1);
  ::setenv("ATB_SAVE_TENSOR", "1", 1);
  ::setenv("ATB_OUTPUT_DIR", (folder / "out").c_str(), 1);
  ::setenv("AIT_PROBE_SCRATCH", (folder / "run").c_str(), 1);
  void* probe = ::dlopen(argv[1], RTLD_NOW);
  auto* save =
      probe == nullptr ? nullptr : reinterpret_cast<SaveTensor>(::dlsym(probe, kSaveTensor));
  if (save == nullptr) {
    std::fprintf(stderr, "probe_bench: %s\n", ::dlerror());
    return 2;
  }
  measure(save, folder, repeats, size_t{16} << 10, 4000);
  measure(save, folder, repeats, size_t{1} << 20, 400);
  fs::remove_all(folder);
}
