#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "storage/catalog.h"
#include "storage/catalog_documents.h"
#include "storage/catalog_survey.h"

namespace everstep::storage {
namespace {

class FileHeadStore final : public HeadStore {
 public:
  FileHeadStore(FileSystem& files, const DocumentFormat& documents, const Seal& seal)
      : files_(files), documents_(documents), seal_(seal) {}

  Result<std::optional<Head>> read() const override {
    auto head = read_head(files_, documents_, seal_, kHeadName);
    if (head) return std::optional<Head>(std::move(*head));
    if (head.error().code == ErrorCode::kNotFound) return std::optional<Head>();
    return head.error();
  }

  Status advance(const std::optional<Head>& expected, const Head& next) override {
    auto current = read();
    if (!current && current.error().code == ErrorCode::kDataLoss) current = std::optional<Head>();
    if (!current) return current.error();
    if (*current != expected) {
      return Error{ErrorCode::kStaleGeneration,
                   "HEAD is " + (*current ? to_string((*current)->checkpoint) : std::string("missing")) +
                       ", and not the checkpoint that was to be replaced",
                   "another process commits to this directory: stop one of them"};
    }
    return replace_file(files_, "", head_temporary_name(next), kHeadName, seal_.seal(documents_.encode(next)));
  }

 private:
  FileSystem& files_;
  const DocumentFormat& documents_;
  const Seal& seal_;
};

}  // namespace

std::unique_ptr<HeadStore> make_file_head_store(FileSystem& files, const DocumentFormat& documents, const Seal& seal) {
  return std::make_unique<FileHeadStore>(files, documents, seal);
}

}  // namespace everstep::storage
