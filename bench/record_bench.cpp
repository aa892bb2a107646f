// Times the recording of tensors against a plain loop that creates, writes and renames the same
// files.
//
//   record_bench FOLDER [repeats, default 9]
//
// Prints one JSON line per size and format. The two are interleaved, so that a noisy neighbour hits
// both alike; figures are medians, spread is (maximum - minimum) / median, of_plain the speed as a
// share of the plain loop's. `host` is the time that the recording program itself is held up: until
// the last submit returns, not until the last file is there.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "plain_files.h"
#include "record/torch_zip_encoder.h"
#include "record/writer.h"

namespace {

using namespace ait::bench;
using namespace ait::record;
namespace fs = std::filesystem;

constexpr size_t kSources = 32;  // different tensors, so that not one of them stays in the caches

struct Format {
  const char* name;
  Encoding encoding;
  EncodeResult (*encode)(const TensorImage&, FileImage&);
};

void measure(const fs::path& folder, int repeats, size_t bytes, size_t files,
             const Format& format) {
  const int64_t dims[] = {static_cast<int64_t>(bytes / 4)};
  std::vector<std::vector<uint32_t>> tensors(kSources, std::vector<uint32_t>(bytes / 4));
  std::vector<std::string> contents(kSources);
  uint32_t random = 1;
  for (size_t s = 0; s < kSources; ++s) {
    for (uint32_t& value : tensors[s]) value = random = random * 1664525u + 1013904223u;
    FileImage file;
    if (format.encode({ElementType::kFloat32, dims, 1, tensors[s].data(), bytes}, file) !=
        EncodeResult::kOk)
      std::abort();
    const iovec* parts = file.parts();
    for (size_t p = 0; p < file.part_count(); ++p)
      contents[s].append(static_cast<const char*>(parts[p].iov_base), parts[p].iov_len);
  }
  std::vector<std::string> paths(files);
  for (size_t i = 0; i < files; ++i)
    paths[i] = (folder / (std::to_string(i) + "_tensor.pth")).string();

  std::vector<double> plain;
  std::vector<double> recorded;
  std::vector<double> held_up;
  Writer writer;
  const auto in_fresh_folder = [&](const auto& work) {
    fs::create_directories(folder);
    ::sync();  // the files of the round before are not to be paid for in this one
    work();
    fs::remove_all(folder);
  };
  for (int r = 0; r < repeats; ++r) {
    in_fresh_folder([&] {
      const double start = seconds();
      for (size_t i = 0; i < files; ++i) create_write_rename(paths[i], contents[i % kSources]);
      plain.push_back(seconds() - start);
    });
    in_fresh_folder([&] {
      const double start = seconds();
      Job job;
      job.encoding = format.encoding;
      for (size_t i = 0; i < files; ++i) {
        job.path = paths[i].c_str();
        job.image = {ElementType::kFloat32, dims, 1, tensors[i % kSources].data(), bytes};
        writer.submit(job);
      }
      held_up.push_back(seconds() - start);
      writer.flush();
      recorded.push_back(seconds() - start);
      if (writer.counters().failed > 0) give_up(writer.counters().first_failed_path);
    });
  }
  std::printf(
      "{\"bytes\": %zu, \"files\": %zu, \"format\": \"%s\", \"plain\": {\"seconds\": %.6f, "
      "\"spread\": %.3f}",
      bytes, files, format.name, median(plain), spread(plain));
  std::printf(", \"writer\": {\"seconds\": %.6f, \"spread\": %.3f, \"of_plain\": %.3f}",
              median(recorded), spread(recorded), median(plain) / median(recorded));
  std::printf(", \"host\": {\"seconds\": %.6f, \"spread\": %.3f, \"of_plain\": %.3f}}\n",
              median(held_up), spread(held_up), median(plain) / median(held_up));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: record_bench FOLDER [repeats]\n");
    return 2;
  }
  const fs::path folder = fs::path(argv[1]) / "record_bench";
  const int repeats = argc > 2 ? std::max(1, std::atoi(argv[2])) : 9;
  const Format formats[] = {
      {"torch", Encoding::kTorch, &encode_torch},
      {"atb_bin", Encoding::kAtbBin,
       [](const TensorImage& image, FileImage& file) { return encode_atb_bin(image, file); }}};
  for (const Format& format : formats) {
    measure(folder, repeats, size_t{16} << 10, 4000, format);
    measure(folder, repeats, size_t{1} << 20, 400, format);
  }
}
