#include "compare/part.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <queue>

#include "compare/row_codec.h"

namespace ait::compare {
namespace {

namespace fs = std::filesystem;

constexpr BlockKind kPart = {"ait part",
                             "rows",
                             kPartVersion,
                             "rows",
                             "is not a part of a comparison; name a folder that "
                             "ait llm compare --from-plan wrote into",
                             "compare this part again"};
constexpr const char* kPlanName = "plan.ait";
constexpr std::string_view kStem = "part_";
constexpr std::string_view kOf = "_of_";
constexpr std::string_view kExtension = ".part";

// "part_3_of_16.part"
std::string name_of(PartNumber which) {
  std::string name(kStem);
  name += std::to_string(which.part);
  name += kOf;
  name += std::to_string(which.parts);
  return name += kExtension;
}

std::optional<PartNumber> part_named(std::string_view name) {
  if (!name.starts_with(kStem) || !name.ends_with(kExtension)) return std::nullopt;
  const char* end = name.data() + name.size() - kExtension.size();
  PartNumber out;
  auto read = std::from_chars(name.data() + kStem.size(), end, out.part);
  if (!std::string_view(read.ptr, end).starts_with(kOf)) return std::nullopt;
  read = std::from_chars(read.ptr + kOf.size(), end, out.parts);
  if (read.ptr != end || name != name_of(out)) return std::nullopt;
  return out;
}

// A row, and the pair that it is of.
struct PartRow {
  uint64_t pair = 0;
  Row row;
};

template <typename Codec, typename T>
bool part_row_fields(Codec& c, T& item) {
  return field(c, item.pair) && row_fields(c, item.row);
}

// Rows from this one on are of ascending pairs, from this one on.
struct Run {
  uint64_t row = 0;
  uint64_t pair = 0;
};

struct PartFacts {
  PlanIdentity identity;
  PartNumber which;
  uint64_t pairs = 0;
  std::vector<Run> runs;
};

// A run for each node at most.
constexpr size_t kMaxRuns = 65536;

template <typename Codec, typename T>
bool part_facts_fields(Codec& c, T& facts) {
  c.texts.start_row();
  return field(c, facts.identity.pairs) && field(c, facts.identity.bytes) &&
         field(c, facts.identity.checksum) && field(c, facts.which.part) &&
         field(c, facts.which.parts) && field(c, facts.pairs) &&
         list(c, facts.runs, kMaxRuns,
              [&](auto& run) { return field(c, run.row) && field(c, run.pair); });
}

class PartWriter {
 public:
  explicit PartWriter(BlockWriter file) : file_(std::move(file)) {}

  Result<void> append(PartRow&& item, PartFacts& facts) {
    if (facts.runs.empty() || item.pair < last_pair_) facts.runs.push_back({rows_, item.pair});
    last_pair_ = item.pair;
    ++rows_;
    Encoder encoder(payload_, previous_);
    part_row_fields(encoder, std::as_const(item));
    return ++payload_rows_ == kItemsPerBlock ? end_block() : Result<void>();
  }

  Result<std::string> finish_as(const std::string& path, const PartFacts& facts) {
    if (payload_rows_ > 0)
      if (auto ended = end_block(); !ended) return fail(ended.error());
    std::string note;
    Encoder encoder(note, previous_);
    part_facts_fields(encoder, facts);
    if (auto ended = file_.end(note); !ended) return fail(ended.error());
    return file_.finish_as(path);
  }

  uint64_t rows() const { return rows_; }

 private:
  Result<void> end_block() {
    auto written = file_.append(payload_, payload_rows_);
    payload_.clear();
    payload_rows_ = 0;
    previous_.clear();
    return written;
  }

  BlockWriter file_;
  std::string payload_;
  uint32_t payload_rows_ = 0;
  std::vector<std::string> previous_;
  uint64_t rows_ = 0;
  uint64_t last_pair_ = 0;
};

// Keeps the block that was read last.
class PartStore {
 public:
  static Result<PartStore> read(std::shared_ptr<const MappedFile> file) {
    auto blocks = BlockFile::read(std::move(file), kPart);
    if (!blocks) return fail(blocks.error());
    PartStore store;
    store.file_ = std::move(*blocks);
    const auto cut_short = [&](std::string_view why) {
      return fail(Error(ErrorCode::kCorrupt, store.file_.path()) << why << "; " << kPart.advice);
    };
    if (!store.file_.is_complete()) return cut_short("was cut short");
    const auto note = store.file_.note();
    if (!note) return fail(note.error());
    std::vector<std::string> previous;
    Decoder decoder(std::as_bytes(std::span(note->data(), note->size())), previous);
    PartFacts& facts = store.facts_;
    if (!part_facts_fields(decoder, facts) || !decoder.is_empty() ||
        facts.which.parts > kMaxParts || facts.which.part < 1 ||
        facts.which.part > facts.which.parts || facts.runs.empty() != (store.rows() == 0))
      return cut_short("says nothing that makes sense of its rows");
    for (size_t i = 0; i < facts.runs.size(); ++i)
      if (facts.runs[i].row >= store.rows() ||
          (i == 0 ? facts.runs[i].row != 0 : facts.runs[i].row <= facts.runs[i - 1].row))
        return cut_short("says nothing that makes sense of its rows");
    return store;
  }

  const PartFacts& facts() const { return facts_; }
  size_t rows() const { return file_.items(); }
  Error damaged(size_t row) const { return file_.damaged(row / kItemsPerBlock); }

  Result<const PartRow*> at(size_t row) {
    const size_t block = row / kItemsPerBlock;
    if (block != loaded_) {
      loaded_ = ~size_t{0};
      if (auto read = load(block); !read) return fail(read.error());
      loaded_ = block;
    }
    return &block_[row % kItemsPerBlock];
  }

 private:
  Result<void> load(size_t block) {
    const auto found = file_.block(block);
    if (!found) return fail(found.error());
    if (found->items != std::min(kItemsPerBlock, rows() - block * kItemsPerBlock))
      return fail(file_.damaged(block));
    block_.assign(found->items, {});
    std::vector<std::string> previous;
    Decoder decoder(found->payload, previous);
    for (PartRow& item : block_)
      if (!part_row_fields(decoder, item) ||
          !complete_row(item.row, static_cast<size_t>(item.pair)))
        return fail(file_.damaged(block));
    return decoder.is_empty() ? Result<void>() : fail(file_.damaged(block));
  }

  BlockFile file_;
  PartFacts facts_;
  size_t loaded_ = ~size_t{0};
  std::vector<PartRow> block_;
};

Result<PartStore> open_store(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return fail(file.error());
  return PartStore::read(std::move(*file));
}

// A copy of the plan beside the parts, so that whoever joins them needs nothing else.
Result<void> keep_plan(const Plan& plan, const std::string& folder) {
  const std::string path = folder + "/" + kPlanName;
  std::error_code ignored;
  if (fs::exists(path, ignored)) {
    const auto kept = Plan::open(path);
    if (!kept) return fail(kept.error());
    if (kept->facts().identity == plan.facts().identity) return {};
    return fail(Error(ErrorCode::kUsage, folder)
                << "holds parts of another plan; name another folder");
  }
  if (plan.facts().only) return {};  // whoever cut it has the whole
  return plan.copy_to(folder, kPlanName);
}

// The row of a pair whose part is not there.
Row missing_row(match::Pair pair, PartNumber which) {
  pair.alone = "not compared: part " + std::to_string(which.part) + " of " +
               std::to_string(which.parts) + " is missing.";
  pair.unread = true;
  return unread_row(pair);
}

}  // namespace

Result<PartDone> compare_part(const Plan& plan, PartNumber which, const std::string& folder,
                              const Options& options, const std::atomic<bool>& stop,
                              const std::function<void(uint64_t bytes)>& advanced) {
  const auto part = plan.part(which);
  if (!part) return fail(part.error());
  const std::string where = folder.empty() ? "." : folder;
  auto file = BlockWriter::create(where, name_of(which), kPart);
  if (!file) return fail(file.error());
  if (auto kept = keep_plan(plan, where); !kept) return fail(kept.error());
  PartWriter writer(std::move(*file));
  PartFacts facts{plan.facts().identity, which, part->pairs.count, {}};
  PartDone done;
  std::optional<Error> write_error;
  const size_t finished =
      compare_numbered(part->pairs, options, stop, [&](Row&& row, uint64_t bytes, size_t pair) {
        if (write_error) return;
        auto written = writer.append({part->number(pair), std::move(row)}, facts);
        if (!written) write_error = written.error();
        done.bytes += bytes;
        advanced(bytes);
      });
  if (write_error) return fail(*write_error);
  if (finished < part->pairs.count)
    return fail(Error(ErrorCode::kInterrupted)
                << "stopped: part " << which.part << " of " << which.parts
                << " is not written; compare it again");
  auto path = writer.finish_as(where + "/" + name_of(which), facts);
  if (!path) return fail(path.error());
  done.path = std::move(*path);
  done.pairs = finished;
  done.rows = writer.rows();
  return done;
}

struct Parts::Found {
  std::string path;
  PartFacts facts;
  uint64_t rows = 0;
};

Result<Parts> Parts::open(const std::string& folder) {
  const std::string plan_path = folder + "/" + kPlanName;
  std::error_code error;
  if (!fs::exists(plan_path, error))
    return fail(Error(ErrorCode::kNotFound, folder)
                << "holds no parts of a comparison; compare them with: ait llm compare "
                   "--from-plan FILE --part 1/N -o "
                << printable(folder));
  auto plan = Plan::open(plan_path);
  if (!plan) return fail(plan.error());
  Parts out(std::move(*plan));
  std::map<uint32_t, std::vector<std::string>> divisions;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (const auto which = part_named(entry.path().filename().native()))
      divisions[which->parts].push_back(entry.path().native());
  if (error)
    return fail(Error(ErrorCode::kUnreadable, folder) << "cannot list it: " << error.message());
  if (divisions.empty())
    return fail(Error(ErrorCode::kNotFound, folder)
                << "holds a plan and none of its parts; compare them with: ait llm compare "
                   "--from-plan "
                << printable(plan_path) << " --part 1/N -o " << printable(folder));
  if (divisions.size() > 1)
    return fail(Error(ErrorCode::kUsage, folder)
                << "holds parts of a division by " << divisions.begin()->first << " and by "
                << divisions.rbegin()->first << "; remove those of one of the two");
  out.count_ = divisions.begin()->first;
  if (out.count_ > kMaxParts)
    return fail(Error(ErrorCode::kUsage, folder)
                << "holds a division by " << out.count_ << "; a plan has at most " << kMaxParts
                << " parts");
  out.found_.resize(out.count_);
  for (const std::string& path : divisions.begin()->second) {
    const auto store = open_store(path);
    if (!store) return fail(store.error());
    const PartFacts& facts = store->facts();
    if (facts.identity != out.plan_.facts().identity || facts.which.parts != out.count_ ||
        name_of(facts.which) != fs::path(path).filename().native())
      return fail(Error(ErrorCode::kUsage, path)
                  << "is a part of another plan than the one beside it; remove it");
    out.found_[facts.which.part - 1] =
        std::make_shared<const Found>(Found{path, facts, store->rows()});
  }
  return out;
}

std::vector<uint32_t> Parts::missing() const {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < count_; ++i)
    if (!found_[i]) out.push_back(i + 1);
  return out;
}

namespace {

// Rows of ascending pairs that follow each other: of a store, or of the plan where the store is missing.
struct Source {
  uint64_t pair = 0;  // of the next row
  uint32_t part = 0;  // from 0
  uint64_t next = 0;  // row of the store, index in the plan's part
  uint64_t end = 0;
};

struct LaterPair {
  bool operator()(const Source& a, const Source& b) const { return a.pair > b.pair; }
};

}  // namespace

Result<void> Parts::each(const std::atomic<bool>& stop,
                         const std::function<void(Row&& row, uint64_t bytes)>& emit) const {
  std::priority_queue<Source, std::vector<Source>, LaterPair> sources;
  std::map<uint32_t, Plan::Part> missing_parts;
  const auto add_runs = [&](uint32_t part, const auto& runs, const auto& start, uint64_t end) {
    for (size_t i = 0; i < runs.size(); ++i)
      sources.push({start(runs[i]).second, part, start(runs[i]).first,
                    i + 1 < runs.size() ? start(runs[i + 1]).first : end});
  };
  for (uint32_t i = 0; i < count_; ++i) {
    if (found_[i]) {
      add_runs(
          i, found_[i]->facts.runs, [](const Run& run) { return std::pair(run.row, run.pair); },
          found_[i]->rows);
      continue;
    }
    auto part = plan_.part({i + 1, count_});
    if (!part) return fail(part.error());
    add_runs(
        i, part->runs,
        [](const Plan::Part::Run& run) { return std::pair(uint64_t{run.index}, run.number); },
        part->pairs.count);
    missing_parts.emplace(i, std::move(*part));
  }

  // Stores that are being read.
  std::map<uint32_t, PartStore> open;
  uint64_t rows = 0;
  while (!sources.empty() && !stop) {
    Source at = sources.top();
    sources.pop();
    // Up to where another source goes on.
    const uint64_t until = sources.empty() ? ~uint64_t{0} : sources.top().pair;
    const auto missing_part = missing_parts.find(at.part);
    for (; at.next < at.end && at.pair <= until && !stop; ++rows) {
      Row row;
      if (missing_part != missing_parts.end()) {
        row = missing_row(missing_part->second.pairs.at(at.next), {at.part + 1, count_});
        ++at.next;
        ++at.pair;
      } else {
        auto store = open.find(at.part);
        if (store == open.end()) {
          auto opened = open_store(found_[at.part]->path);
          if (!opened) return fail(opened.error());
          store = open.emplace(at.part, std::move(*opened)).first;
          if (store->second.rows() != found_[at.part]->rows) return fail(store->second.damaged(0));
        }
        const auto item = store->second.at(at.next);
        if (!item) return fail(item.error());
        if ((*item)->pair < at.pair || (*item)->pair >= plan_.size() ||
            !are_before((*item)->row.origin.sources, rows))
          return fail(store->second.damaged(at.next));
        at.pair = (*item)->pair;
        if (at.pair > until) break;
        row = (*item)->row;
        ++at.next;
      }
      emit(std::move(row), 0);
    }
    if (at.next < at.end) {
      sources.push(at);
    } else if (at.end == (found_[at.part] ? found_[at.part]->rows : 0)) {
      open.erase(at.part);
    }
  }
  return {};
}

Result<size_t> rows_of_part(std::shared_ptr<const MappedFile> file) {
  auto store = PartStore::read(std::move(file));
  if (!store) return fail(store.error());
  for (size_t i = 0; i < store->rows(); ++i)
    if (const auto row = store->at(i); !row) return fail(row.error());
  return store->rows();
}

}  // namespace ait::compare
