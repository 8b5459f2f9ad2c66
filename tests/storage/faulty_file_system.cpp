#include "tests/storage/faulty_file_system.h"

#include <utility>
#include <vector>

namespace everstep::storage {
namespace {

class Forwarding : public FileSystem {
 public:
  explicit Forwarding(FileSystem& inner) : inner_(inner) {}

  Result<std::unique_ptr<WritableFile>> create(std::string_view path) override { return inner_.create(path); }
  Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const override { return inner_.open(path); }
  Status make_directories(std::string_view path) override { return inner_.make_directories(path); }
  Status sync_directory(std::string_view path) override { return inner_.sync_directory(path); }
  Status rename(std::string_view from, std::string_view to) override { return inner_.rename(from, to); }
  Status remove(std::string_view path) override { return inner_.remove(path); }
  Status remove_directory(std::string_view path) override { return inner_.remove_directory(path); }
  Result<std::vector<DirectoryEntry>> list(std::string_view path) const override { return inner_.list(path); }
  Result<std::unique_ptr<Lock>> lock(std::string_view path) override { return inner_.lock(path); }
  Result<std::uint64_t> free_bytes() const override { return inner_.free_bytes(); }

 protected:
  FileSystem& inner_;
};

// A file whose sync is another function.
class FileWithSync final : public WritableFile {
 public:
  using Sync = std::function<Status(WritableFile&)>;
  FileWithSync(std::shared_ptr<WritableFile> inner, Sync sync) : inner_(std::move(inner)), sync_(std::move(sync)) {}

  Status write(std::span<const std::byte> bytes) override { return inner_->write(bytes); }
  Status sync() override { return sync_(*inner_); }

 private:
  std::shared_ptr<WritableFile> inner_;
  Sync sync_;
};

Status pretend_to_sync(WritableFile&) { return {}; }

Status sync_until_it_works(WritableFile& file) { return file.sync() ? Status() : file.sync(); }

class WithSync final : public Forwarding {
 public:
  WithSync(FileSystem& inner, FileWithSync::Sync sync) : Forwarding(inner), sync_(std::move(sync)) {}

  Result<std::unique_ptr<WritableFile>> create(std::string_view path) override {
    auto file = inner_.create(path);
    if (!file) return file;
    return {std::make_unique<FileWithSync>(std::move(*file), sync_)};
  }

 private:
  FileWithSync::Sync sync_;
};

class WithoutDirectorySync final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  Status sync_directory(std::string_view) override { return {}; }
};

// Tells that tensor files are durable, and sees to it once HEAD has moved.
class SyncingFilesAfterHead final : public Forwarding {
 public:
  using Forwarding::Forwarding;

  Result<std::unique_ptr<WritableFile>> create(std::string_view path) override {
    auto file = inner_.create(path);
    if (!file || !path.ends_with(".h5")) return file;
    const std::shared_ptr<WritableFile> shared = std::move(*file);
    late_.push_back(shared);
    return {std::make_unique<FileWithSync>(shared, pretend_to_sync)};
  }

  Status sync_directory(std::string_view path) override {
    EVERSTEP_TRY(inner_.sync_directory(path));
    if (std::exchange(head_moved_, false)) {
      for (const auto& file : std::exchange(late_, {})) EVERSTEP_TRY(file->sync());
    }
    return {};
  }

  Status rename(std::string_view from, std::string_view to) override {
    head_moved_ = to == "HEAD";
    return inner_.rename(from, to);
  }

 private:
  std::vector<std::shared_ptr<WritableFile>> late_;
  bool head_moved_ = false;
};

// Removes manifests and commit records when somebody looks for them.
class RemovingDocumentsLast final : public Forwarding {
 public:
  using Forwarding::Forwarding;

  Status remove(std::string_view path) override {
    if (!path.ends_with(".json")) return inner_.remove(path);
    late_.emplace_back(path);
    return {};
  }

  Result<std::vector<DirectoryEntry>> list(std::string_view path) const override {
    for (const std::string& document : std::exchange(late_, {})) EVERSTEP_TRY(inner_.remove(document));
    return inner_.list(path);
  }

 private:
  mutable std::vector<std::string> late_;
};

class Overwriting final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  Result<std::unique_ptr<WritableFile>> create(std::string_view path) override {
    (void)inner_.remove(path);
    return inner_.create(path);
  }
};

// Moves HEAD into its place before its bytes are durable.
class RenamingBeforeSync final : public Forwarding {
 public:
  using Forwarding::Forwarding;

  Result<std::unique_ptr<WritableFile>> create(std::string_view path) override {
    auto file = inner_.create(path);
    if (!file || !path.ends_with(".tmp")) return file;
    temporary_ = std::move(*file);
    return {std::make_unique<FileWithSync>(temporary_, pretend_to_sync)};
  }

  Status rename(std::string_view from, std::string_view to) override {
    EVERSTEP_TRY(inner_.rename(from, to));
    return std::exchange(temporary_, nullptr)->sync();
  }

 private:
  std::shared_ptr<WritableFile> temporary_;
};

class SyncingAgainAfterFailure final : public Forwarding {
 public:
  explicit SyncingAgainAfterFailure(FileSystem& inner) : Forwarding(inner), files_(inner, sync_until_it_works) {}

  Result<std::unique_ptr<WritableFile>> create(std::string_view path) override { return files_.create(path); }
  Status sync_directory(std::string_view path) override {
    return inner_.sync_directory(path) ? Status() : inner_.sync_directory(path);
  }

 private:
  WithSync files_;
};

}  // namespace

std::unique_ptr<FileSystem> without_fault(FileSystem& files) { return std::make_unique<Forwarding>(files); }
std::unique_ptr<FileSystem> without_file_sync(FileSystem& files) {
  return std::make_unique<WithSync>(files, pretend_to_sync);
}
std::unique_ptr<FileSystem> without_directory_sync(FileSystem& files) {
  return std::make_unique<WithoutDirectorySync>(files);
}
std::unique_ptr<FileSystem> syncing_files_after_head(FileSystem& files) {
  return std::make_unique<SyncingFilesAfterHead>(files);
}
std::unique_ptr<FileSystem> removing_documents_last(FileSystem& files) {
  return std::make_unique<RemovingDocumentsLast>(files);
}
std::unique_ptr<FileSystem> overwriting(FileSystem& files) { return std::make_unique<Overwriting>(files); }
std::unique_ptr<FileSystem> renaming_before_sync(FileSystem& files) {
  return std::make_unique<RenamingBeforeSync>(files);
}
std::unique_ptr<FileSystem> syncing_again_after_failure(FileSystem& files) {
  return std::make_unique<SyncingAgainAfterFailure>(files);
}

}  // namespace everstep::storage
