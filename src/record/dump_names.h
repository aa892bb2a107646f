// What folders and files in a dump are called: one place for the probe and the hooks' native side,
// which write them, and for everybody who reads them. docs/dump.md and docs/torch_dump.md show the trees.
//
//   std::string path = dump + "/" + record::kTorchTensorsFolder + "/cpu_4711/" + record::kModelTreeFile;
//
// The Python package has some of these names, too; tests/python/test_dump_names.py holds them
// against this file.
#pragma once

namespace ait::record {

// A dump, in the folder that the user chose; and what other tools call theirs.
inline constexpr char kDumpFolder[] = "ait_dump";
inline constexpr char kMsitDumpFolder[] = "msit_dump";

// Directly in a dump.
inline constexpr char kManifestFile[] = "manifest.json";  // and in each rank's folder of torch
inline constexpr char kTensorsFolder[] = "tensors";
inline constexpr char kTorchTensorsFolder[] = "torch_tensors";
inline constexpr char kTilingFolder[] = "tiling";
inline constexpr char kLayerFolder[] = "layer";
inline constexpr char kModelFolder[] = "model";
inline constexpr char kOperationTablesFolder[] = "operation_io_tensors";
inline constexpr char kKernelTablesFolder[] = "kernel_io_tensors";
inline constexpr char kCpuProfilingFolder[] = "cpu_profiling";

// Hidden in it while a run writes there (claim.h), and its scratch folder.
inline constexpr char kClaimsFolder[] = ".claims";
inline constexpr char kRunStem[] = ".run_";
inline constexpr char kScratchVariable[] = "AIT_PROBE_SCRATCH";  // which names it to every process

// In these: what a table's name begins with, before its round; an operation's parameters; what
// torch hooks leave in a rank's folder and in a round's.
inline constexpr char kOperationTableStem[] = "operation_tensors_";
inline constexpr char kKernelTableStem[] = "kernel_tensors_";
inline constexpr char kCpuProfileStem[] = "operation_statistic_";
inline constexpr char kParamFile[] = "op_param.json";
inline constexpr char kModelTreeFile[] = "model_tree.json";
inline constexpr char kStatisticsFile[] = "statistics.csv";

// What dump_data and set_label write.
inline constexpr char kGoldenTensorFolder[] = "golden_tensor";
inline constexpr char kMetadataFile[] = "metadata.json";
inline constexpr char kLabelsSuffix[] = "_labels.jsonl";

// In the scratch folder of a run: {pid}.{n}.ledger, {process}.graph.{seq}.json,
// {process}.model.{seq}.json, with the process as claim.h names it.
inline constexpr char kLedgerSuffix[] = ".ledger";
inline constexpr char kNoLedgerSuffix[] = ".no_ledger";  // {pid}.{n}.{errno}.no_ledger
inline constexpr char kGraphReport[] = "graph";
inline constexpr char kModelReport[] = "model";

}  // namespace ait::record
