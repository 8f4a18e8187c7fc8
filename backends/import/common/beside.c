// SPDX-License-Identifier: Apache-2.0
// Opens files that a model file names. The name is not trusted: the file must be in the folder of
// the model, even if the directory that the daemon may read is larger.
#include "backends/import/common/beside.h"

#include <stdio.h>
#include <string.h>

#include "backends/storage/file.h"

enum inf_code inf_beside_open(int *out_fd, uint64_t *out_bytes, char path[INF_BESIDE_PATH],
                              const struct inf_shard_place *place, struct inf_span location,
                              struct inf_error *err)
{
    if (place->directory_fd < 0)
        return inf_fail(err, INF_UNSUPPORTED, "its data are in another file");
    if (location.size == 0 || memchr(location.data, 0, location.size) != NULL ||
        location.size + (size_t)place->folder_length >= INF_BESIDE_PATH)
        return inf_fail(err, INF_INVALID, "its external location is no file name");
    snprintf(path, INF_BESIDE_PATH, "%.*s%.*s", place->folder_length, place->folder,
             (int)location.size, (const char *)location.data);
    if (location.data[0] == '/' || strstr(path + place->folder_length, "..") != NULL)
        return inf_fail(err, INF_DENIED, "external location '%.200s' leaves the model's folder",
                        path + place->folder_length);
    inf_open_sink_note(place->opened, path);
    return inf_file_open_beneath(out_fd, out_bytes, place->directory_fd, path, err);
}
