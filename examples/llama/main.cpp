// ait-llama: a llama-family model on the embedded acceleration library. Prints the token ids that
// it generates, one line for each prompt.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

#include "base/parallel.h"
#include "formats/write.h"
#include "options.h"
#include "random_model.h"
#include "ranks.h"

namespace ait_llama {
namespace {

using ait::fail;
using ait::Result;

constexpr int kCannot = 2;

// Of several ranks only the first that fails has something to say.
int report(const ait::Error& error, atb::Communicator* communicator = nullptr) {
  if (communicator == nullptr || communicator->fail())
    std::fprintf(stderr, "ait-llama: error: %s\n", error.text().c_str());
  return kCannot;
}

// The most likely token of each row; of equals the first, as torch's argmax.
std::vector<int64_t> greedy(const std::vector<float>& logits, size_t vocabulary) {
  std::vector<int64_t> tokens;
  for (size_t at = 0; at < logits.size(); at += vocabulary) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(at);
    tokens.push_back(std::max_element(row, row + static_cast<std::ptrdiff_t>(vocabulary)) - row);
  }
  return tokens;
}

struct Generated {
  std::vector<std::vector<int64_t>> tokens;  // by step, then by prompt
  std::vector<float> logits;                 // steps x batch x vocabulary, where asked for
};

Result<Generated> generate(const Options& options, atb_speed::Llama& model) {
  using Clock = std::chrono::steady_clock;
  Generated generated;
  const auto keep = [&](std::vector<float> logits) {
    generated.tokens.push_back(greedy(logits, static_cast<size_t>(model.vocabulary())));
    if (!options.logits_path.empty())
      generated.logits.insert(generated.logits.end(), logits.begin(), logits.end());
  };
  const auto start = Clock::now();
  auto logits = model.prefill(options.prompts, options.steps - 1);
  if (!logits) return fail(logits.error());
  keep(std::move(*logits));
  const auto filled = Clock::now();
  for (size_t step = 1; step < options.steps; ++step) {
    logits = model.decode(generated.tokens.back());
    if (!logits) return fail(logits.error());
    keep(std::move(*logits));
  }
  if (options.time) {
    const std::chrono::duration<double> prefill = filled - start, decode = Clock::now() - filled;
    std::fprintf(stderr, "prefill %.6f s, decoding %zu steps %.6f s\n", prefill.count(),
                 options.steps - 1, decode.count());
  }
  return generated;
}

Result<void> store_logits(const Options& options, std::vector<float> logits, int64_t vocabulary) {
  const auto storage = std::make_shared<std::vector<float>>(std::move(logits));
  auto tensor =
      ait::Tensor::contiguous(storage, std::as_bytes(std::span(*storage)), ait::DType::kFloat32,
                              {static_cast<int64_t>(options.steps),
                               static_cast<int64_t>(options.prompts.size()), vocabulary});
  if (!tensor) return fail(tensor.error());
  const ait::formats::NamedTensor named{"", *tensor};
  return ait::formats::write_tensor_file(options.logits_path, {&named, 1},
                                         ait::formats::FileFormat::kNpy);
}

int run_rank(const Options& options, size_t rank, atb::Communicator* communicator) {
  auto model_options = options.model;
  model_options.device = static_cast<int>(rank);
  model_options.communicator = communicator;
  auto model = atb_speed::Llama::load(options.folder, model_options);
  if (!model) return report(model.error(), communicator);
  auto generated = generate(options, **model);
  if (!generated) return report(generated.error(), communicator);
  if (rank != 0) return 0;
  if (!options.logits_path.empty())
    if (auto stored = store_logits(options, std::move(generated->logits), (*model)->vocabulary());
        !stored)
      return report(stored.error());
  for (size_t b = 0; b < options.prompts.size(); ++b) {
    std::string line;
    for (const auto& step : generated->tokens)
      line += fmt::format("{}{}", line.empty() ? "" : ",", step[b]);
    std::printf("%s\n", line.c_str());
  }
  if (std::fflush(stdout) != 0) {
    std::perror("ait-llama: error: cannot print the tokens");
    return kCannot;
  }
  return 0;
}

int run(std::vector<std::string> arguments) {
  auto options = parse_options(std::move(arguments));
  if (!options) return report(options.error());
  if (!options->text.empty()) {
    std::printf("%s", options->text.c_str());
    return 0;
  }
  if (!options->make_model.empty()) {
    auto written = write_random_model(options->make_model);
    return written ? 0 : report(written.error());
  }
  // The ranks share the machine.
  size_t threads = options->threads;
  if (threads == 0 && options->ranks > 1)
    threads = std::max<size_t>(1, std::thread::hardware_concurrency() / options->ranks);
  return run_ranks(options->ranks, [&](size_t rank, atb::Communicator* communicator) {
    int status = kCannot;
    ait::with_threads(threads, [&] { status = run_rank(*options, rank, communicator); });
    return status;
  });
}

}  // namespace
}  // namespace ait_llama

int main(int argc, char** argv) {
  try {
    return ait_llama::run({argv + (argc > 0 ? 1 : 0), argv + argc});
  } catch (const std::exception& error) {  // out of memory, or a fault of ours
    std::fprintf(stderr, "ait-llama: error: %s\n", error.what());
    return 2;
  }
}
