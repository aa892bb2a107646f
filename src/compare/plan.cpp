#include "compare/plan.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "base/node_paths.h"
#include "base/parallel.h"
#include "compare/plan_codec.h"
#include "formats/registry.h"
#include "record/crc32.h"

namespace ait::compare {
namespace {

constexpr BlockKind kPlan = {"ait plan",
                             "pair",
                             kPlanVersion,
                             "pairs",
                             "is not a plan; name a file that ait llm compare --plan wrote",
                             "make the plan again",
                             false};

// Opening two files and writing a row takes as long as reading so many bytes.
constexpr uint64_t kPairWeight = uint64_t{64} << 10;

// In larger files tensors may differ much in size, and there are not many of them.
constexpr uint64_t kLargeFileBytes = uint64_t{16} << 20;
constexpr size_t kKnownFiles = 512;

constexpr size_t kLookedUpAtOnce = 1024;

uint64_t file_bytes(const std::string& path) {
  if (const auto listed = node_file(path)) return listed->bytes;
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)
             ? static_cast<uint64_t>(status.st_size)
             : 0;
}

using MemberBytes = std::unordered_map<std::string, uint64_t>;

MemberBytes members_of(const std::string& path) {
  MemberBytes out;
  const auto file = formats::open_tensor_file(path);
  if (!file) return out;
  for (size_t i = 0; i < (*file)->size(); ++i) {
    const auto description = (*file)->describe(i);
    if (!description) continue;
    const auto elements = count_elements(description->shape);
    if (elements) out.emplace((*file)->name(i), *elements * size_bytes(description->dtype));
  }
  return out;
}

// Of a table with a line for each tensor.
constexpr uint64_t kLineBytes = 200;

// Bytes on disk of the records of a pair; 0 for what is not there. Of one tensor among others in a large file,
// those of the tensor.
class Sizes {
 public:
  // Thread-safe.
  uint64_t of(const capture::TensorRecord& record) {
    const uint64_t whole = file_bytes(record.path);
    if (record.kept == capture::Kept::kStatistics && !record.member.empty())
      return std::min(whole, kLineBytes);
    if (record.member.empty() || whole < kLargeFileBytes) return whole;
    const std::lock_guard lock(mutex_);
    if (files_.size() >= kKnownFiles && !files_.contains(record.path)) files_.clear();
    const auto [file, is_new] = files_.try_emplace(record.path);
    if (is_new) file->second = members_of(record.path);
    const auto member = file->second.find(record.member);
    return member == file->second.end() ? 0 : std::min(member->second, whole);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, MemberBytes> files_;
};

// Takes pairs in the order of their numbers, and writes those of a node together.
class PlanWriter {
 public:
  PlanWriter(BlockWriter file, size_t nodes) : file_(std::move(file)), waiting_(nodes + 1) {}

  Result<void> append(const PlannedPair& pair, uint32_t node) {
    Waiting& waiting = waiting_[node];
    if (waiting.pairs == 0) waiting.facts = {node, 0, pair.number};
    Encoder encoder(waiting.payload, waiting.previous);
    waiting.codec.fields(encoder, pair);
    waiting.facts.weight += pair.bytes + kPairWeight;
    ++pairs_;
    bytes_ += pair.bytes;
    return ++waiting.pairs == kItemsPerBlock ? end_block(waiting) : Result<void>();
  }

  Result<std::string> finish_as(const std::string& path, PlanFacts facts) {
    for (Waiting& waiting : waiting_)
      if (waiting.pairs > 0)
        if (auto ended = end_block(waiting); !ended) return fail(ended.error());
    if (!facts.only) facts.identity = {pairs_, bytes_, checksum_now()};
    std::string note;
    std::vector<std::string> previous;
    Encoder encoder(note, previous);
    facts_fields(encoder, std::as_const(facts));
    blocks_fields(encoder, std::as_const(blocks_));
    if (auto ended = file_.end(note); !ended) return fail(Error(ended.error()).set_path(path));
    return file_.finish_as(path);
  }

 private:
  struct Waiting {
    std::string payload;
    std::vector<std::string> previous;
    PairCodec codec;
    uint32_t pairs = 0;
    BlockFacts facts;
  };

  // Of the pairs and of when they are planned: a plan with other settings, or one that is made after
  // files have changed under the same names, is another one, and has no parts in common with this.
  uint32_t checksum_now() const {
    const int64_t now = std::chrono::system_clock::now().time_since_epoch().count();
    return record::crc32(&now, sizeof now, file_.checksum());
  }

  Result<void> end_block(Waiting& waiting) {
    blocks_.push_back(waiting.facts);
    auto written = file_.append(waiting.payload, waiting.pairs);
    waiting = Waiting();
    return written;
  }

  BlockWriter file_;
  std::vector<Waiting> waiting_;  // by node
  std::vector<BlockFacts> blocks_;
  uint64_t pairs_ = 0;
  uint64_t bytes_ = 0;
};

Result<PlanWriter> create_plan(const std::string& path, size_t nodes) {
  const std::filesystem::path whole(path);
  auto file = BlockWriter::create(whole.parent_path().native(), whole.filename().native(), kPlan);
  if (!file) return fail(file.error());
  return PlanWriter(std::move(*file), nodes);
}

}  // namespace

std::optional<size_t> node_of(const std::string& path, const std::vector<std::string>& nodes) {
  const size_t colon = path.find(":/");
  if (colon == std::string::npos) return std::nullopt;
  const auto found = std::find(nodes.begin(), nodes.end(), std::string_view(path).substr(0, colon));
  if (found == nodes.end()) return std::nullopt;
  return static_cast<size_t>(found - nodes.begin());
}

Result<std::string> write_plan(const std::string& path, const match::PairList& list,
                               const PlanSettings& settings, const std::atomic<bool>& stop,
                               const std::vector<std::string>& nodes, const PathOf& path_of) {
  auto writer = create_plan(path, nodes.size());
  if (!writer) return fail(writer.error());
  Sizes sizes;
  struct Looked {
    PlannedPair pair;
    uint32_t node = 0;
  };
  std::vector<Looked> batch;
  for (size_t first = 0; first < list.pairs.count; first += batch.size()) {
    if (stop) return fail(Error(ErrorCode::kInterrupted, path) << "stopped; no plan was written");
    batch.assign(std::min(kLookedUpAtOnce, list.pairs.count - first), {});
    for (size_t i = 0; i < batch.size(); ++i)
      batch[i].pair = {first + i, 0, list.pairs.at(first + i)};
    // A file system may be far away.
    parallel_for(batch.size(), 0, [&](size_t i) {
      Looked& at = batch[i];
      std::vector<uint64_t> bytes_of(nodes.size() + 1);
      for (match::Side* side : {&at.pair.pair.golden, &at.pair.pair.actual})
        for (capture::TensorRecord& record : side->records) {
          const uint64_t bytes = at.pair.pair.unread ? 0 : sizes.of(record);
          at.pair.bytes += bytes;
          if (path_of) record.path = path_of(record.path);
          bytes_of[node_of(record.path, nodes).value_or(nodes.size())] += bytes;
        }
      at.node = static_cast<uint32_t>(std::max_element(bytes_of.begin(), bytes_of.end()) -
                                      bytes_of.begin());
    });
    for (const Looked& at : batch)
      if (auto written = writer->append(at.pair, at.node); !written) return fail(written.error());
  }
  PlanFacts facts;
  facts.list = list;
  facts.settings = settings;
  facts.nodes = nodes;
  return writer->finish_as(path, std::move(facts));
}

uint64_t Plan::Part::number(size_t index) const {
  const auto after = std::upper_bound(runs.begin(), runs.end(), index,
                                      [](size_t i, const Run& run) { return i < run.index; });
  const Run& run = *std::prev(after);
  return run.number + (index - run.index);
}

uint64_t Plan::Part::smallest() const {
  uint64_t out = ~uint64_t{0};
  for (const Run& run : runs) out = std::min(out, run.number);
  return out;
}

struct Plan::Inside {
  BlockFile file;
  PlanFacts facts;
  std::vector<BlockFacts> blocks;
  std::vector<uint32_t> by_node;  // blocks, those of a node together
  std::vector<size_t> first_of;   // of each node, its place there; one more at the end

  // The last block that was read.
  mutable size_t loaded = ~size_t{0};
  mutable Result<std::vector<PlannedPair>> pairs;

  const Result<std::vector<PlannedPair>>& load(size_t block) const {
    if (block != loaded) {
      pairs = read(block);
      loaded = block;
    }
    return pairs;
  }

  Result<std::vector<PlannedPair>> read(size_t block) const {
    const auto found = file.block(block);
    if (!found) return fail(found.error());
    std::vector<PlannedPair> out(found->items);
    std::vector<std::string> previous;
    Decoder decoder(found->payload, previous);
    PairCodec codec;
    for (size_t i = 0; i < out.size(); ++i)
      if (!codec.fields(decoder, out[i]) || out[i].number >= facts.identity.pairs ||
          (i > 0 ? out[i].number <= out[i - 1].number : out[i].number != blocks[block].first))
        return fail(file.damaged(block));
    if (!decoder.is_empty()) return fail(file.damaged(block));
    return out;
  }

  static match::Pair unreadable(const Error& error) {
    match::Pair pair;
    pair.alone = error.text();
    pair.unread = true;
    return pair;
  }

  match::Pair pair_of(size_t number) const {
    for (size_t node = 0; node + 1 < first_of.size(); ++node) {
      const auto begin = by_node.begin() + static_cast<ptrdiff_t>(first_of[node]);
      const auto end = by_node.begin() + static_cast<ptrdiff_t>(first_of[node + 1]);
      auto after = std::upper_bound(begin, end, number, [&](size_t wanted, uint32_t block) {
        return wanted < blocks[block].first;
      });
      if (after == begin) continue;
      const auto& found = load(*--after);
      if (!found) return unreadable(found.error());
      const auto pair = std::lower_bound(
          found->begin(), found->end(), number,
          [](const PlannedPair& each, size_t wanted) { return each.number < wanted; });
      if (pair != found->end() && pair->number == number) return pair->pair;
    }
    return unreadable(Error(ErrorCode::kCorrupt, file.path())
                      << "holds no pair " << number << "; make the plan again");
  }

  Result<void> put_in_order() {
    const size_t nodes = facts.nodes.size() + 1;
    if (blocks.size() != file.blocks())
      return fail(Error(ErrorCode::kCorrupt, file.path())
                  << "its facts do not fit its number of pairs; make the plan again");
    by_node.resize(blocks.size());
    std::iota(by_node.begin(), by_node.end(), 0U);
    std::stable_sort(by_node.begin(), by_node.end(),
                     [&](uint32_t a, uint32_t b) { return blocks[a].node < blocks[b].node; });
    for (size_t node = 0, at = 0; node <= nodes; ++node) {
      first_of.push_back(at);
      for (; at < by_node.size() && blocks[by_node[at]].node == node; ++at)
        if (at > first_of.back() && blocks[by_node[at]].first <= blocks[by_node[at - 1]].first)
          return fail(file.damaged(by_node[at]));
    }
    if (first_of.back() != by_node.size() || (!facts.only && file.items() != facts.identity.pairs))
      return fail(Error(ErrorCode::kCorrupt, file.path())
                  << "its facts do not fit its number of pairs; make the plan again");
    return {};
  }

  // A stretch of the pairs as they lie in the file, those of a node together.
  struct Place {
    size_t block = 0;  // an index into by_node
    size_t pair = 0;   // in it
  };

  // Where the pairs begin that have at least `weight` before them.
  Result<Place> place_at(uint64_t weight) const {
    uint64_t before = 0;
    for (size_t at = 0; at < by_node.size(); ++at) {
      const uint64_t here = blocks[by_node[at]].weight;
      if (before + here <= weight) {
        before += here;
        continue;
      }
      const auto& found = load(by_node[at]);
      if (!found) return fail(found.error());
      for (size_t i = 0; i < found->size(); ++i) {
        if (before >= weight) return Place{at, i};
        before += (*found)[i].bytes + kPairWeight;
      }
      return Place{at + 1, 0};
    }
    return Place{by_node.size(), 0};
  }

  // Where a part begins and ends.
  Result<std::pair<Place, Place>> range_of(PartNumber which) const {
    if (which.part < 1 || which.part > which.parts || which.parts > kMaxParts)
      return fail(Error(ErrorCode::kUsage, file.path())
                  << "has no part " << which.part << " of " << which.parts
                  << "; parts are counted from 1 to at most " << kMaxParts);
    std::pair<Place, Place> out{{}, {by_node.size(), 0}};
    if (facts.only) {
      if (*facts.only == which) return out;
      return fail(Error(ErrorCode::kUsage, file.path())
                  << "holds part " << facts.only->part << " of " << facts.only->parts
                  << " alone; ask for that one");
    }
    uint64_t total = 0;
    for (const BlockFacts& block : blocks) total += block.weight;
    const auto begins = [&](uint32_t part) {
      return place_at(static_cast<uint64_t>(static_cast<__uint128_t>(total) * part / which.parts));
    };
    auto begin = begins(which.part - 1);
    if (!begin) return fail(begin.error());
    out.first = *begin;
    if (which.part == which.parts) return out;
    auto end = begins(which.part);
    if (!end) return fail(end.error());
    out.second = *end;
    return out;
  }

  // Calls use(pair, node, place of its block in by_node) for every pair of a part.
  template <typename Use>
  Result<void> each(PartNumber which, const Use& use) const {
    const auto range = range_of(which);
    if (!range) return fail(range.error());
    const auto& [from, to] = *range;
    for (size_t at = from.block; at < by_node.size() && at <= to.block; ++at) {
      const uint32_t block = by_node[at];
      const size_t begin = at == from.block ? from.pair : 0;
      const auto& found = load(block);
      if (!found) return fail(found.error());
      const size_t end = at == to.block ? to.pair : found->size();
      for (size_t i = begin; i < end; ++i)
        if (auto used = use((*found)[i], block, i); !used) return used;
    }
    return {};
  }
};

Result<Plan> Plan::open(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return fail(file.error());
  return read(std::move(*file));
}

Result<Plan> Plan::read(std::shared_ptr<const MappedFile> file) {
  auto blocks = BlockFile::read(std::move(file), kPlan);
  if (!blocks) return fail(blocks.error());
  if (!blocks->is_complete())
    return fail(Error(ErrorCode::kCorrupt, blocks->path()) << "was cut short; make the plan again");
  const auto note = blocks->note();
  if (!note) return fail(note.error());
  auto inside = std::make_shared<Inside>();
  std::vector<std::string> previous;
  Decoder decoder(std::as_bytes(std::span(note->data(), note->size())), previous);
  if (!facts_fields(decoder, inside->facts) || !blocks_fields(decoder, inside->blocks) ||
      !decoder.is_empty())
    return fail(Error(ErrorCode::kCorrupt, blocks->path())
                << "says nothing that makes sense of its pairs; make the plan again");
  inside->file = std::move(*blocks);
  if (auto ordered = inside->put_in_order(); !ordered) return fail(ordered.error());
  Plan plan;
  plan.inside_ = std::move(inside);
  return plan;
}

const PlanFacts& Plan::facts() const { return inside_->facts; }

match::Pairs Plan::pairs() const {
  match::Pairs out;
  out.count = size();
  out.at = [inside = inside_](size_t number) { return inside->pair_of(number); };
  return out;
}

Result<Plan::Part> Plan::part(PartNumber which) const {
  const Inside& plan = *inside_;
  // Pairs of which blocks, and how many up to the end of each.
  struct Stretch {
    std::vector<uint32_t> blocks;
    std::vector<size_t> ends;
    size_t skipped = 0;  // of the first block
  };
  auto stretch = std::make_shared<Stretch>();
  Part out;
  out.bytes_of_node.resize(plan.facts.nodes.size() + 1);
  size_t count = 0;
  auto read = plan.each(which, [&](const PlannedPair& pair, uint32_t block, size_t i) {
    if (stretch->blocks.empty()) stretch->skipped = i;
    if (stretch->blocks.empty() || stretch->blocks.back() != block) {
      stretch->blocks.push_back(block);
      stretch->ends.push_back(count);
    }
    out.bytes += pair.bytes;
    out.bytes_of_node[plan.blocks[block].node] += pair.bytes;
    if (out.runs.empty() || out.number(count) != pair.number)
      out.runs.push_back({count, pair.number});
    stretch->ends.back() = ++count;
    return Result<void>();
  });
  if (!read) return fail(read.error());
  out.bytes_of_node.pop_back();
  out.pairs.count = count;
  out.pairs.at = [inside = inside_, stretch](size_t index) {
    const auto& ends = stretch->ends;
    const auto after = std::upper_bound(ends.begin(), ends.end(), index);
    const auto at = static_cast<size_t>(after - ends.begin());
    const auto& found = inside->load(stretch->blocks[at]);
    if (!found) return Inside::unreadable(found.error());
    return (*found)[at == 0 ? index + stretch->skipped : index - ends[at - 1]].pair;
  };
  return out;
}

Result<void> Plan::copy_to(const std::string& folder, const std::string& name) const {
  auto copy = OutputFile::create(folder, name);
  if (!copy) return fail(copy.error());
  constexpr size_t kPieceBytes = size_t{1} << 20;
  const auto bytes = inside_->file.bytes();
  for (size_t at = 0; at < bytes.size(); at += kPieceBytes) {
    const auto piece = bytes.subspan(at, std::min(kPieceBytes, bytes.size() - at));
    auto written = copy->write({reinterpret_cast<const char*>(piece.data()), piece.size()});
    if (!written) return fail(written.error());
  }
  const auto path = copy->finish_as(folder + "/" + name);
  if (!path) return fail(path.error());
  return {};
}

Result<std::string> Plan::cut(PartNumber which, const std::string& path) const {
  auto writer = create_plan(path, facts().nodes.size());
  if (!writer) return fail(writer.error());
  auto written = inside_->each(which, [&](const PlannedPair& pair, uint32_t block, size_t) {
    return writer->append(pair, inside_->blocks[block].node);
  });
  if (!written) return fail(written.error());
  PlanFacts out;
  out.settings = facts().settings;
  out.identity = facts().identity;
  out.nodes = facts().nodes;
  out.only = which;
  return writer->finish_as(path, std::move(out));
}

}  // namespace ait::compare
