// Reading and pairing dumps of an acceleration library with many rounds and ranks.
//
//   match_bench list FOLDER                 lists a dump
//   match_bench match RANKS ROUNDS LAYERS   pairs two runs of that size and makes every pair
//
// Pairing needs no files, as both runs have the same graph.
//
// Prints one JSON line.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "capture/atb_dump.h"
#include "capture/recording.h"
#include "match/automatic.h"

namespace {

using ait::capture::Operation;
using ait::capture::Recording;
using ait::capture::RecordingBuilder;

constexpr int kOperations = 20;  // of a layer

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string files_of_a_layer() {
  std::string files;
  for (int i = 0; i < kOperations; ++i)
    files += std::to_string(i) + "_LinearOperation/after/outtensor0.bin" + '\0';
  return files;
}

// As if it had been listed.
Recording make(size_t ranks, size_t rounds, size_t layers) {
  Recording recording;
  recording.traits = ait::capture::kAtbTraits;
  for (size_t i = 0; i < ranks; ++i)
    recording.ranks.push_back({"rank" + std::to_string(i), "", std::to_string(i), ""});
  for (size_t i = 0; i < rounds; ++i) recording.rounds.push_back(std::to_string(i));
  RecordingBuilder builder;
  const std::string files = files_of_a_layer();
  for (size_t rank = 0; rank < ranks; ++rank)
    for (size_t round = 0; round < rounds; ++round)
      for (size_t layer = 0; layer < layers; ++layer)
        builder.add(rank, round, std::to_string(layer) + "_Layer", files);
  const auto part = [](const std::string& path) {
    return path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
  };
  builder.finish(
      recording, {},
      [](std::string_view file) {
        RecordingBuilder::Name name;
        name.operation = file.substr(0, file.find("/after/"));
        return std::vector{name};
      },
      [&](const std::string& name) {
        Operation operation;
        operation.name = name;
        operation.type = part(name).substr(part(name).find('_') + 1);
        operation.ids = {std::strtoull(name.c_str(), nullptr, 10)};
        if (part(name) != name)
          operation.ids.push_back(std::strtoull(part(name).c_str(), nullptr, 10));
        return operation;
      },
      [](const std::string& name) {
        const size_t slash = name.rfind('/');
        return slash == std::string::npos ? std::string() : name.substr(0, slash);
      },
      [](const Operation& a, const Operation& b) { return a.ids < b.ids; });
  return recording;
}

int list(const char* folder) {
  const auto start = std::chrono::steady_clock::now();
  const auto recording = ait::capture::read_atb_dump(folder);
  if (!recording) {
    std::fprintf(stderr, "%s\n", recording.error().text().c_str());
    return 1;
  }
  std::printf("{\"seconds\": %.4f, \"tensors\": %zu}\n", seconds_since(start),
              recording->slots.size());
  return 0;
}

int match(size_t ranks, size_t rounds, size_t layers) {
  const auto start = std::chrono::steady_clock::now();
  const auto golden = std::make_shared<const Recording>(make(ranks, rounds, layers));
  const auto actual = std::make_shared<const Recording>(make(ranks, rounds, layers));
  const auto found = ait::match::pair_automatically(golden, actual, {});
  if (!found) {
    std::fprintf(stderr, "%s\n", found.error().text().c_str());
    return 1;
  }
  size_t complete = 0;
  for (size_t i = 0; i < found->pairs.count; ++i) complete += found->pairs.at(i).complete() ? 1 : 0;
  std::printf("{\"seconds\": %.4f, \"pairs\": %zu}\n", seconds_since(start), complete);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view what = count > 1 ? arguments[1] : "";
  const auto number = [&](int i) { return std::strtoull(arguments[i], nullptr, 10); };
  if (what == "list" && count == 3) return list(arguments[2]);
  if (what == "match" && count == 5) return match(number(2), number(3), number(4));
  std::fprintf(stderr, "usage: match_bench list FOLDER | match RANKS ROUNDS LAYERS\n");
  return 2;
}
