#include "launcher/cli/output_file.h"

#include "base/log_line.h"
#include "launcher/cli/files.h"

namespace everstep::launcher {

Outcome write_output_file(const Config& config, std::string_view option, std::string_view content, Streams& streams) {
  const std::string& path = config.setting(option).text.value();
  if (const Status written = write_file(path, content); !written) return config.blame(option, written.error());
  print_event(streams, LogLine("file_written").add("path", path).add("bytes", content.size()).text());
  return {};
}

}  // namespace everstep::launcher
