#include "launcher/job/wire_options.h"

#include <gmock/gmock.h>

#include "launcher/worker/worker_order.h"
#include "tests/launcher/commands/command_run.h"

namespace everstep::launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Words = std::vector<std::string>;

class WireOptionsTest : public CommandFiles {
 protected:
  // Those of a worker that has a secret.
  WireOptions read(Words words, Outcome& failure) const {
    words.push_back("--secret-file=" + path("secret"));
    return read_as_given(words, failure);
  }

  WireOptions read(const Words& words) const {
    Outcome failure;
    WireOptions wire = read(words, failure);
    EXPECT_FALSE(failure) << failure->error;
    return wire;
  }

  std::string refusal(const Words& words) const {
    Outcome failure;
    read(words, failure);
    return failure ? failure->error.line() : "nothing was refused";
  }

  static std::string refusal_without_secret(const Words& words) {
    Outcome failure;
    read_as_given(words, failure);
    return failure ? failure->error.line() : "nothing was refused";
  }

  std::string pem(const std::string& name) const { return file(name, "-----BEGIN something-----\n"); }

 private:
  static WireOptions read_as_given(Words words, Outcome& failure) {
    CommandSpec spec{.name = "worker"};
    spec.options = worker_order_options();
    words.insert(words.end(), {"--etcd=http://127.0.0.1:2379", "--job=job"});
    const Config config = *merge_config(spec, {.args = *parse_args(spec, words)});
    Values values(config);
    return read_wire_options(config, values, failure);
  }
};

TEST_F(WireOptionsTest, OfAWorkerWithASecretAreThoseOfTheLoopbackDevice) {
  EXPECT_EQ(read({}), WireOptions());
  EXPECT_EQ(read({}).bind, "127.0.0.1");
  EXPECT_FALSE(read({"--wire=auto"}).tcp_only);
}

TEST_F(WireOptionsTest, AreTakenAsGiven) {
  const WireOptions wire = read({"--bind=::", "--advertise=fd00::7", "--port-range=4700-4799", "--wire=tcp",
                                 "--tls-ca=" + pem("ca"), "--tls-cert=" + pem("cert"), "--tls-key=" + pem("key")});
  EXPECT_EQ(wire.bind, "::");
  EXPECT_EQ(wire.advertise, "fd00::7");
  EXPECT_EQ(wire.port_range, std::pair(4700, 4799));
  EXPECT_TRUE(wire.tcp_only);
  EXPECT_EQ(wire.tls_ca, path("ca"));
  EXPECT_EQ(wire.tls_cert, path("cert"));
  EXPECT_EQ(wire.tls_key, path("key"));
}

TEST_F(WireOptionsTest, WithoutASecretNobodyListensForOtherHosts) {
  EXPECT_EQ(refusal_without_secret({}), "nothing was refused");
  EXPECT_EQ(refusal_without_secret({"--wire=auto"}), "nothing was refused");
  for (const Words& words : {Words{"--bind=10.0.0.7"}, Words{"--bind=127.0.0.1"}, Words{"--advertise=10.0.0.7"},
                             Words{"--port-range=4700-4799"}, Words{"--wire=tcp"},
                             Words{"--tls-ca=" + pem("a"), "--tls-cert=" + pem("b"), "--tls-key=" + pem("c")}}) {
    EXPECT_THAT(refusal_without_secret(words),
                AllOf(HasSubstr(words.front() + ": needs a secret"),
                      HasSubstr("(umask 077 && openssl rand -hex 32 > secret), then --secret-file=secret")));
  }
}

TEST_F(WireOptionsTest, AllAddressesOfAHostNeedOneThatPeersKnow) {
  for (const char* all : {"0.0.0.0", "::", "0:0:0:0:0:0:0:0"}) {
    EXPECT_THAT(refusal({std::string("--bind=") + all}), HasSubstr("add --advertise=ADDRESS")) << all;
    EXPECT_EQ(read({std::string("--bind=") + all, "--advertise=10.0.0.7"}).advertise, "10.0.0.7") << all;
  }
}

TEST_F(WireOptionsTest, AddressesAreInDigits) {
  for (const char* address : {"localhost", "10.0.0", "[::1]", "10.0.0.7:4711", "fe80::1%eth0"}) {
    EXPECT_THAT(refusal({std::string("--bind=") + address}), HasSubstr("is no IP address")) << address;
    EXPECT_THAT(refusal({std::string("--advertise=") + address}), HasSubstr("10.0.0.7 or fd00::7")) << address;
  }
  EXPECT_THAT(refusal({"--advertise=0.0.0.0"}), HasSubstr("is no IP address that peers can call"));
}

TEST_F(WireOptionsTest, PortsAreARange) {
  for (const char* ports : {"9", "0-9", "9-8", "1-65536", "a-b"}) {
    EXPECT_THAT(refusal({std::string("--port-range=") + ports}), HasSubstr("expected two ports")) << ports;
  }
}

TEST_F(WireOptionsTest, CertificatesComeThreeAtOnceAndInPem) {
  EXPECT_THAT(refusal({"--tls-ca=" + pem("ca")}), HasSubstr("add --tls-cert=FILE"));
  EXPECT_THAT(refusal({"--tls-ca=" + pem("ca"), "--tls-cert=" + pem("cert")}), HasSubstr("add --tls-key=FILE"));
  EXPECT_THAT(refusal({"--tls-cert=" + pem("cert"), "--tls-key=" + pem("key")}), HasSubstr("add --tls-ca=FILE"));
  EXPECT_THAT(refusal({"--tls-ca=" + path("nowhere")}), HasSubstr("nowhere"));
  EXPECT_THAT(refusal({"--tls-ca=" + file("text", "no PEM")}), HasSubstr("is no PEM file"));
}

TEST_F(WireOptionsTest, NameTheWiresThereAre) {
  EXPECT_THAT(refusal({"--wire=udp"}), AllOf(HasSubstr("auto"), HasSubstr("tcp")));
}

}  // namespace
}  // namespace everstep::launcher
