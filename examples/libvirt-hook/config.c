#include "hook.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG "/etc/slicewise/hook.conf"

static char *trimmed(char *text) {
  size_t length;
  while (isspace((unsigned char)*text)) {
    text++;
  }
  length = strlen(text);
  while (length > 0 && isspace((unsigned char)text[length - 1])) {
    text[--length] = 0;
  }
  return text;
}

static int set(char **field, const char *value) {
  free(*field);
  *field = strdup(value);
  return *field != NULL || complain("out of memory");
}

static int set_line(struct config *config, char *line, int number) {
  char *value, *key = trimmed(line);
  if (*key == 0 || *key == '#') {
    return 1;
  }
  value = strchr(key, '=');
  if (value == NULL) {
    return complain("%s:%d: expected `key = value`", CONFIG, number);
  }
  *value++ = 0;
  key = trimmed(key);
  if (strcmp(key, "state") == 0) {
    return set(&config->state, trimmed(value));
  }
  if (strcmp(key, "node") == 0) {
    return set(&config->node, trimmed(value));
  }
  return complain("%s:%d: unknown key `%s`; there are `state` and `node`", CONFIG, number, key);
}

static int read_file(struct config *config) {
  size_t length;
  int number = 0, good = 1, file = open(CONFIG, O_RDONLY | O_CLOEXEC);
  char *text, *line, *rest;

  if (file < 0) {
    return complain("%s: %s", CONFIG, strerror(errno));
  }
  text = read_all(file, &length);
  close(file);
  if (text == NULL) {
    return complain("%s: %s", CONFIG, strerror(errno));
  }
  for (rest = text; good && rest != NULL;) {
    line = rest;
    rest = strchr(line, '\n');
    if (rest != NULL) {
      *rest++ = 0;
    }
    good = set_line(config, line, ++number);
  }
  free(text);
  return good;
}

/* The environment, else the file. */
int config_read(struct config *config) {
  const char *state = getenv("SLICEWISE_STATE"), *node = getenv("SLICEWISE_NODE");

  config->state = NULL;
  config->node = NULL;
  if (state != NULL) {
    return set(&config->state, state) && (node == NULL || set(&config->node, node));
  }
  if (!read_file(config)) {
    return 0;
  }
  return config->state != NULL || complain("%s: `state` is missing", CONFIG);
}

void config_free(struct config *config) {
  free(config->state);
  free(config->node);
}
