#include "launcher/job/checkpoint_store.h"

#include <utility>

#include <sys/stat.h>

#include "launcher/cli/files.h"
#include "launcher/job/stored_jobs.h"
#include "storage/hdf5/hdf5_format.h"
#include "storage/json/document_json.h"
#include "storage/openssl/openssl_hashing.h"
#include "storage/posix/posix_file_system.h"

namespace everstep::launcher {
namespace {

class LocalStore final : public CheckpointStore {
 public:
  LocalStore(std::unique_ptr<storage::FileSystem> files, const std::string& secret)
      : files_(std::move(files)),
        seal_(*hashing_, secret),
        head_(storage::make_file_head_store(*files_, *documents_, seal_)),
        catalog_(LocalStore::ports()) {}

  storage::Catalog& catalog() override { return catalog_; }
  storage::CatalogPorts ports() override { return {LocalStore::files(), *documents_, seal_, *head_}; }
  storage::FilePorts files() override { return {*files_, *hashing_, *tensors_}; }

 private:
  const std::unique_ptr<storage::FileSystem> files_;
  const std::unique_ptr<storage::Hashing> hashing_ = storage::make_openssl_hashing();
  const std::unique_ptr<storage::TensorFormat> tensors_ = storage::make_hdf5_format();
  const std::unique_ptr<storage::DocumentFormat> documents_ = storage::make_json_documents();
  const storage::Seal seal_;
  const std::unique_ptr<storage::HeadStore> head_;
  storage::Catalog catalog_;
};

}  // namespace

Result<std::unique_ptr<CheckpointStore>> open_checkpoint_store(const StoreLocation& location, StoreAccess access) {
  EVERSTEP_TRY(storage::check_job_name(location.job));
  if (access == StoreAccess::kCreate) {
    auto root = storage::open_posix_file_system(location.directory, true);
    if (!root) return root.error();
    EVERSTEP_TRY((*root)->make_directories(location.job));
  }
  auto files = storage::open_posix_file_system(location.path(), false);
  if (!files) {
    Error error = files.error();
    if (error.code == ErrorCode::kNotFound) error.hint = job_hint(location.job, jobs_in(location.directory));
    return error;
  }
  return std::unique_ptr<CheckpointStore>(std::make_unique<LocalStore>(std::move(files).value(), location.secret));
}

Result<std::string> read_secret_file(const std::string& path) {
  constexpr std::size_t kShortest = 16;
  constexpr std::size_t kLongest = 4096;
  auto secret = read_file(path, kLongest + 1);
  if (!secret) return secret.error();
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return invalid_argument("the secret in " + path + " is open to others", "chmod 600 " + path);
  }
  std::string text = std::move(secret).value();
  if (text.ends_with('\n')) text.pop_back();
  if (text.size() >= kShortest && text.size() <= kLongest) return text;
  return invalid_argument(path + " holds a secret of " + std::to_string(text.size()) + " bytes",
                          "16 to 4096; for instance: openssl rand -hex 32");
}

}  // namespace everstep::launcher
