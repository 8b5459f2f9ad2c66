#include <gmock/gmock.h>

#include "tests/elastic/etcd/calls.h"
#include "tests/elastic/etcd/certificates.h"
#include "tests/elastic/etcd_cluster.h"

namespace everstep::elastic {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(EtcdTls, CertificatesOfOneAuthorityAreTaken) {
  const Certificates certificates;
  const ServerCertificates server = certificates.make("server", 1);
  EtcdCluster cluster(1, server);
  const auto store = connect_etcd(Certificates::options_with(certificates.make("client", 1), cluster));
  ASSERT_TRUE(store.ok()) << store.error();
  EXPECT_TRUE((*store)->transact(kWrite, kLong).ok());
  const auto lease = (*store)->grant(seconds(60), kLong);
  ASSERT_TRUE(lease.ok()) << lease.error();
  EXPECT_TRUE((*store)->renew(*lease, kLong).ok());
}

// What a client with these options is told.
std::string refusal_of(const EtcdOptions& options) {
  const auto store = connect_etcd(options);
  if (!store) return store.error().line();
  const auto reply = (*store)->transact(kRead, seconds(1));
  return reply ? "taken" : reply.error().line();
}

TEST(EtcdTls, AnExpiredOrForeignOrMissingCertificateIsOneClearError) {
  const Certificates certificates;
  const Certificates others;
  EtcdCluster cluster(1, certificates.make("server", 1));
  const EtcdOptions good = Certificates::options_with(certificates.make("client", 1), cluster);
  const EtcdOptions foreign = Certificates::options_with(others.make("foreign", 1), cluster);
  EtcdOptions nobody = good;
  nobody.certificate.clear();
  nobody.key.clear();
  EtcdOptions stranger = foreign;
  stranger.ca = good.ca;
  EtcdOptions distrustful = good;
  distrustful.ca = foreign.ca;
  const EtcdOptions expired = Certificates::options_with(certificates.make("expired", -1), cluster);
  EXPECT_EQ(refusal_of(good), "taken");
  for (const EtcdOptions& options : {expired, foreign, nobody, stranger, distrustful}) {
    const std::string line = refusal_of(options);
    EXPECT_THAT(line, HasSubstr("certificate"));
    EXPECT_THAT(line, HasSubstr(cluster.endpoint(0)));
    EXPECT_THAT(line, Not(HasSubstr("\n")));
  }
}

TEST(EtcdOptions, ThatMakeNoSenseAreRefused) {
  const auto refusal = [](const EtcdOptions& options) {
    const auto store = connect_etcd(options);
    return store ? std::string("taken") : store.error().line();
  };
  EXPECT_EQ(refusal({.endpoints = {"http://127.0.0.1:2379"}}), "taken");
  EXPECT_EQ(refusal({.endpoints = {"http://localhost:2379", "http://[::1]:2379/"}}), "taken");
  EXPECT_THAT(refusal({.endpoints = {"http://etcd.example:2379"}}), HasSubstr("plain text"));
  EXPECT_THAT(refusal({.endpoints = {"http://127.evil.example:2379"}}), HasSubstr("plain text"));
  EXPECT_EQ(refusal({.endpoints = {"http://192.0.2.1:2379"}, .allow_plain_text = true}), "taken");
  EXPECT_THAT(refusal({.endpoints = {"https://192.0.2.1:2379"}}), HasSubstr("authority"));
  EXPECT_EQ(refusal({.endpoints = {"https://192.0.2.1:2379"}, .ca = "PEM"}), "taken");
  EXPECT_THAT(refusal({.endpoints = {"https://192.0.2.1:2379"}, .ca = "PEM", .key = "PEM"}), HasSubstr("only one"));
  EXPECT_THAT(refusal({.endpoints = {}}), HasSubstr("no etcd endpoint"));
  for (const char* url : {"127.0.0.1:2379", "http://127.0.0.1", "http://:1", "http://a:0", "http://a:70000",
                          "ftp://a:1", "http://a@127.0.0.1:1", "http://::1:1"}) {
    EXPECT_THAT(refusal({.endpoints = {url}}), HasSubstr(url));
  }
}

}  // namespace
}  // namespace everstep::elastic
