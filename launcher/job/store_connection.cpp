#include "launcher/job/store_connection.h"

#include <utility>

#include "base/check.h"
#include "elastic/etcd_client.h"
#include "elastic/keys.h"
#include "launcher/cli/files.h"
#include "launcher/job/patient_store.h"

namespace everstep::launcher {
namespace {

constexpr std::size_t kLargestEtcdPem = std::size_t{1} << 20;

Status read_pem(const std::string& path, std::string& text) {
  if (path.empty()) return {};
  auto content = read_file(path, kLargestEtcdPem);
  if (!content) return content.error();
  text = std::move(content).value();
  return {};
}

}  // namespace

Result<std::unique_ptr<elastic::KvStore>> connect_store(const EtcdAddress& etcd) {
  EVERSTEP_CHECK(etcd.kind == EtcdAddress::Kind::kServers, "there are no servers to connect to");
  elastic::EtcdOptions options{.endpoints = etcd.urls, .allow_plain_text = etcd.allow_plain_text};
  EVERSTEP_TRY(read_pem(etcd.ca_path, options.ca));
  EVERSTEP_TRY(read_pem(etcd.certificate_path, options.certificate));
  EVERSTEP_TRY(read_pem(etcd.key_path, options.key));
  auto store = elastic::connect_etcd(options);
  if (!store) return store.error();
  // A key that is never there.
  const auto answer = transact_patiently(**store, {{}, {elastic::get(std::string(elastic::kAllJobs))}, {}});
  if (answer) return store;
  Error error = answer.error();
  error.message = "the job's etcd cannot be used: " + error.message;
  return error;
}

}  // namespace everstep::launcher
