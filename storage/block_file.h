#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "storage/file_system.h"
#include "storage/hashing.h"
#include "storage/manifest.h"
#include "storage/tensor_file.h"

namespace everstep::storage {

// The ports that files of state go through.
struct FilePorts {
  FileSystem& files;  // of the job's directory
  const Hashing& hashing;
  const TensorFormat& tensors;
};

// One block's state of one kind, ready to be written. The spans are parallel to record.tensors and must stay as they
// are until write_block_file returns. `record` has everything but size and digest.
struct BlockState {
  FileRecord record;
  std::vector<std::span<const std::byte>> tensors;
};

// Writes one file: metadata and tensors in file order, hashed on the way, then synced. The checkpoint's directory must
// exist; its name is durable only after sync_directory. Returns the record with size and digest. A failure leaves a
// file that nobody names. From any thread, for different files. `cancelled` (may be empty) is asked between pieces.
Result<FileRecord> write_block_file(const FilePorts& ports, const std::string& job, std::uint64_t lineage,
                                    const BlockState& state, const std::function<bool()>& cancelled = {});

// A file whose every byte was verified, in memory.
struct LoadedBlockFile {
  std::unique_ptr<std::byte[]> bytes;  // no vector: it would write zeros over all of it before the file is read
  std::size_t size = 0;
  std::vector<std::uint64_t> offsets;  // per tensor of the record

  std::span<const std::byte> tensor(const FileRecord& record, int index) const;
};

// Reads the file into memory, verifies size and digest, then names, types, shapes and attributes. kDataLoss, with the
// path and what is wrong, if anything differs or the file is not there. From any thread.
Result<LoadedBlockFile> load_block_file(const FilePorts& ports, const std::string& job, std::uint64_t lineage,
                                        const FileRecord& record);

// The same check in pieces, without keeping the tensors: size and digest only.
Status verify_block_file(const FilePorts& ports, std::uint64_t lineage, const FileRecord& record);

}  // namespace everstep::storage
