#include <string>

#include "launcher/cli/values.h"
#include "launcher/commands/commands.h"
#include "launcher/job/checkpoint_choice.h"
#include "launcher/job/checkpoint_store.h"
#include "launcher/job/resume_config.h"
#include "launcher/job/secret_check.h"

namespace everstep::launcher {
namespace {

struct ResumeRequest {
  StoredPlace place;
  std::string secret;
  std::string wanted = "HEAD";
};

Outcome read_request(const Config& config, ResumeRequest& request) {
  Values values(config);
  const std::string from = values.path("from");
  const std::string job = config.is_set("job") ? values.path("job") : "";
  if (config.is_set("step")) request.wanted = std::to_string(values.integer("step", {.min = 0}));
  const std::string secret_file = config.is_set("secret-file") ? values.path("secret-file") : "";
  if (values.failure()) return values.failure();
  auto place = find_stored_place(from, job);
  if (!place) return config.blame("from", place.error());
  request.place = std::move(place).value();
  if (!job.empty() && job != request.place.job) {
    return config.reject("job", "--from names the job " + request.place.job, "leave one of the two out");
  }
  if (request.place.checkpoint && config.is_set("step")) {
    return config.reject("step", "--from names a checkpoint already", "leave one of the two out");
  }
  if (request.place.checkpoint) request.wanted = *request.place.checkpoint;
  if (secret_file.empty()) return {};
  auto secret = read_secret_file(secret_file);
  if (!secret) return config.blame("secret-file", secret.error());
  request.secret = std::move(secret).value();
  return {};
}

// What --resume of `everstep train` says for that checkpoint.
Outcome choose_start(const Config& config, const ResumeRequest& request, storage::Settings& settings,
                     std::string& resume) {
  const StoreLocation location{request.place.directory, request.place.job, request.secret};
  if (auto failure = check_secret(config, location, request.wanted)) return failure;
  const auto store = open_checkpoint_store(location, StoreAccess::kExisting);
  if (!store) return config.blame("from", store.error());
  const auto listing = (*store)->catalog().list();
  if (!listing) return config.blame("from", listing.error());
  const auto chosen = choose_checkpoint(*listing, request.wanted);
  if (!chosen) return config.blame(config.is_set("step") ? "step" : "from", chosen.error());
  settings = chosen->manifest.configuration;
  resume = "newest";
  if (request.wanted == "HEAD") return {};
  resume = std::to_string(chosen->manifest.version.value);
  const auto newest = choose_checkpoint(*listing, resume);
  if (newest && newest->manifest.name == chosen->manifest.name) return {};
  return config.reject("from", "a newer checkpoint has the same step " + resume + ", and a run starts from that one",
                       "name the job's directory and --step=" + resume);
}

// The configuration of the `everstep train` that goes on.
Outcome find_train_config(const Config& config, Config& train) {
  ResumeRequest request;
  if (auto failure = read_request(config, request)) return failure;
  storage::Settings settings;
  std::string resume;
  if (auto failure = choose_start(config, request, settings, resume)) return failure;
  train = resume_config(config, settings, request.place, resume);
  return {};
}

Outcome run(const Config& config, Streams& streams) {
  Config train;
  Outcome failure = find_train_config(config, train);
  return failure ? failure : train_command().run(train, streams);
}

Outcome check(const Config& config) {
  Config train;
  Outcome failure = find_train_config(config, train);
  return failure ? failure : train_command().check(train);
}

}  // namespace

Command resume_command() {
  CommandSpec spec;
  spec.name = "resume";
  spec.summary = "Go on with a job from its checkpoints alone";
  spec.text =
      "For when everything is gone but the files: workers, hosts, etcd. Is everstep train --resume with the settings "
      "that the checkpoint was made with, so that none has to be repeated; what is given here wins. The number of "
      "workers, the plan, how long to train, and where things are may differ; other changes are refused, with old and "
      "new values. What belongs to a host (addresses, etcd, metrics, secret, memory) is not stored: give it again. A "
      "job with a secret is refused without it, unless --drop-secret says that what follows may be unsigned. A run "
      "that "
      "ends early prints the whole command.\n"
      "Exit codes are those of everstep train; 64 also if --from holds no checkpoint, or those of several jobs.";
  spec.examples = {"everstep resume --from=checkpoints", "everstep resume --from=checkpoints/first --workers=2",
                   "everstep resume --from=checkpoints/first --step=120 --steps=500 --etcd=http://127.0.0.1:2379"};
  spec.options = resume_options();
  spec.options.insert(
      spec.options.begin(),
      {{.name = "from",
        .value_name = "DIR",
        .help = "Checkpoints of a job: what --checkpoint-dir named, the job's directory in it, or one "
                "checkpoint's",
        .required = true},
       {.name = "step", .value_name = "N", .help = "Not from the newest checkpoint, but from that step"}});
  return {spec, run, {}, check};
}

}  // namespace everstep::launcher
