/*
 * The state file. Whoever changes it holds an exclusive lock on `<state>.lock`, a file that is never replaced, from
 * reading to writing; so no two hooks decide on the same state. A new state is written beside the old one, flushed,
 * and renamed over it: at every moment, also after a kill or a power cut, the name holds one whole state.
 */
#include "hook.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char *joined(const char *path, const char *ending) {
  size_t length = strlen(path) + strlen(ending) + 1;
  char *text = malloc(length);
  if (text != NULL) {
    snprintf(text, length, "%s%s", path, ending);
  }
  return text;
}

/* Opens `<path>.lock` and waits for the lock. -1 with errno set. */
static int locked(const char *path) {
  char *name = joined(path, ".lock");
  int file = name != NULL ? open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

  free(name);
  while (file >= 0 && flock(file, LOCK_EX) != 0) {
    if (errno != EINTR) {
      close(file);
      return -1;
    }
  }
  return file;
}

static int load(struct store *store) {
  size_t length;
  int file = open(store->path, O_RDONLY | O_CLOEXEC);
  char *text = file >= 0 ? read_all(file, &length) : NULL;
  slicewise_status status;

  if (file >= 0) {
    close(file);
  }
  if (text == NULL) {
    return complain("%s: %s", store->path, strerror(errno));
  }
  status = slicewise_engine_load(store->engine, text);
  free(text);
  return status == SLICEWISE_STATUS_OK || complain("%s: %s", store->path, slicewise_engine_last_error(store->engine));
}

/* Locks and loads. On failure everything is closed again. */
int store_open(struct store *store, const char *path) {
  store->lock = -1;
  store->engine = slicewise_engine_new();
  /* The file itself is replaced, not a link to it. */
  store->path = realpath(path, NULL);
  if (store->path == NULL) {
    complain("%s: %s", path, strerror(errno));
  } else if (store->engine == NULL) {
    complain("out of memory");
  } else if ((store->lock = locked(store->path)) < 0) {
    complain("%s.lock: %s", store->path, strerror(errno));
  } else if (load(store)) {
    return 1;
  }
  store_close(store);
  return 0;
}

static int write_all(int file, const char *text, size_t length) {
  while (length > 0) {
    ssize_t put = write(file, text, length);
    if (put < 0 && errno != EINTR) {
      return 0;
    }
    if (put > 0) {
      text += put;
      length -= (size_t)put;
    }
  }
  return 1;
}

/* Makes the name in the directory as lasting as the file. */
static int sync_directory(const char *path) {
  char *copy = strdup(path);
  int directory = copy != NULL ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  int good = directory >= 0 && fsync(directory) == 0;

  free(copy);
  if (directory >= 0) {
    close(directory);
  }
  return good;
}

static int replace(const char *path, const char *text) {
  char *fresh = joined(path, ".new");
  struct stat old;
  int file, good;

  if (fresh == NULL || stat(path, &old) != 0) {
    free(fresh);
    return 0;
  }
  file = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, old.st_mode & 0777);
  good = file >= 0 && write_all(file, text, strlen(text)) && fsync(file) == 0;
  good = (file < 0 || close(file) == 0) && good;
  good = good && rename(fresh, path) == 0 && sync_directory(path);
  free(fresh);
  return good;
}

int store_save(struct store *store) {
  char *text = NULL;
  int good;

  if (slicewise_engine_snapshot(store->engine, &text) != SLICEWISE_STATUS_OK) {
    return complain("%s", slicewise_engine_last_error(store->engine));
  }
  good = replace(store->path, text) || complain("%s: %s", store->path, strerror(errno));
  slicewise_string_free(text);
  return good;
}

/* Closing the file gives the lock back. */
void store_close(struct store *store) {
  slicewise_engine_free(store->engine);
  if (store->lock >= 0) {
    close(store->lock);
  }
  free(store->path);
  store->engine = NULL;
  store->lock = -1;
  store->path = NULL;
}
