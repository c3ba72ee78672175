/*
 * Replays a case: the first argument is the state, each line of standard input one thing to do. Prints what the
 * library answers, so that the bytes can be compared with those of other surfaces.
 *
 *   decide FILE     decide the request in FILE; prints the answer
 *   explain FILE    prints the explanation
 *   commit          commit what was decided last; prints the status and the version
 *   release NAME    the same for a release
 *   snapshot        prints the state
 */
#include "check.h"

#include <stdlib.h>

static char *content(const char *path) {
  FILE *file = fopen(path, "rb");
  char *text;
  long size;
  assert(file != NULL && fseek(file, 0, SEEK_END) == 0);
  size = ftell(file);
  rewind(file);
  text = calloc(1, (size_t)size + 1);
  assert(text != NULL && fread(text, 1, (size_t)size, file) == (size_t)size);
  fclose(file);
  return text;
}

/* Prints a text that the library gave, or why it gave none, and frees it. */
static void print(slicewise_engine *engine, slicewise_status status, char *text) {
  if (status == SLICEWISE_STATUS_OK) {
    fputs(text, stdout);
    slicewise_string_free(text);
  } else {
    printf("%d %s\n", (int)status, slicewise_engine_last_error(engine));
  }
}

int main(int argc, char **argv) {
  char line[4096], *state, *request = NULL, *decision = NULL;
  slicewise_engine *engine;

  assert(argc == 2);
  state = content(argv[1]);
  engine = loaded(state);
  free(state);
  while (fgets(line, sizeof line, stdin) != NULL) {
    slicewise_status status;
    uint64_t version = 0;
    char *text = NULL;
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "decide ", 7) == 0) {
      free(request);
      slicewise_string_free(decision);
      decision = NULL;
      request = content(line + 7);
      status = slicewise_engine_decide_json(engine, request, &decision);
      if (status == SLICEWISE_STATUS_OK) {
        fputs(decision, stdout);
      } else {
        print(engine, status, NULL);
      }
    } else if (strncmp(line, "explain ", 8) == 0) {
      char *asked = content(line + 8);
      status = slicewise_engine_explain_json(engine, asked, &text);
      print(engine, status, text);
      free(asked);
    } else if (strcmp(line, "commit") == 0) {
      status = slicewise_engine_commit_json(engine, request, decision, &version);
      printf("%d %lu\n", (int)status, (unsigned long)version);
    } else if (strncmp(line, "release ", 8) == 0) {
      status = slicewise_engine_release(engine, line + 8, &version);
      printf("%d %lu\n", (int)status, (unsigned long)version);
    } else {
      assert(strcmp(line, "snapshot") == 0);
      status = slicewise_engine_snapshot(engine, &text);
      print(engine, status, text);
    }
  }
  free(request);
  slicewise_string_free(decision);
  slicewise_engine_free(engine);
  return 0;
}
