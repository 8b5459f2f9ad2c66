#include "launcher/supervise/etcd_certificates.h"

#include <algorithm>
#include <utility>

#include "storage/file_system.h"
#include "storage/openssl/certificates.h"
#include "storage/posix/posix_file_system.h"

namespace everstep::launcher {
namespace {

constexpr const char* kAuthority = "ca.pem";
constexpr const char* kServer = "server.pem";
constexpr const char* kServerKey = "server.key";
constexpr const char* kClient = "client.pem";
constexpr const char* kClientKey = "client.key";
constexpr std::size_t kLargestOwnPem = 64 << 10;

// The file that is there only if all others are.
constexpr const char* kLast = kAuthority;

Result<bool> has_file(const storage::FileSystem& files, const char* name) {
  const auto all = files.list("");
  if (!all) return all.error();
  return std::any_of(all->begin(), all->end(), [&](const storage::DirectoryEntry& one) { return one.name == name; });
}

Status write_certificates(storage::FileSystem& files) {
  const storage::PrivateCertificates made = storage::make_private_certificates();
  EVERSTEP_TRY(write_text(files, kServer, made.server.certificate));
  EVERSTEP_TRY(write_text(files, kServerKey, made.server.key));
  EVERSTEP_TRY(write_text(files, kClient, made.client.certificate));
  EVERSTEP_TRY(write_text(files, kClientKey, made.client.key));
  return write_text(files, kLast, made.authority);
}

}  // namespace

Result<EtcdCertificates> EtcdCertificates::of(const std::filesystem::path& directory) {
  const auto files = storage::open_posix_file_system(directory.string(), true);
  if (!files) return files.error();
  const auto is_complete = has_file(**files, kLast);
  if (!is_complete) return is_complete.error();
  if (!*is_complete) EVERSTEP_TRY(write_certificates(**files));
  return EtcdCertificates(std::filesystem::absolute(directory).lexically_normal());
}

std::string EtcdCertificates::ca() const { return path_of(kAuthority); }
std::string EtcdCertificates::client_certificate() const { return path_of(kClient); }
std::string EtcdCertificates::client_key() const { return path_of(kClientKey); }

std::vector<std::string> EtcdCertificates::server_arguments() const {
  std::vector<std::string> all;
  for (const std::string side : {"--", "--peer-"}) {
    all.push_back(side + "cert-file=" + path_of(kServer));
    all.push_back(side + "key-file=" + path_of(kServerKey));
    all.push_back(side + "trusted-ca-file=" + ca());
    all.push_back(side + "client-cert-auth");
  }
  return all;
}

Result<elastic::EtcdOptions> EtcdCertificates::client_options(const std::string& url) const {
  const auto files = storage::open_posix_file_system(directory_.string(), false);
  if (!files) return files.error();
  elastic::EtcdOptions options{.endpoints = {url}};
  for (const auto& [name, text] : {std::pair(kAuthority, &options.ca), std::pair(kClient, &options.certificate),
                                   std::pair(kClientKey, &options.key)}) {
    auto read = read_text(**files, name, kLargestOwnPem);
    if (!read) return read.error();
    *text = *std::move(read);
  }
  return options;
}

}  // namespace everstep::launcher
