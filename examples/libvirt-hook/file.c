#include "hook.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { FIRST = 1 << 16, MOST = 1 << 28 };

/* Everything up to the end, with a NUL behind it; NULL with errno set. The caller frees it. */
char *read_all(int file, size_t *length) {
  size_t capacity = FIRST, used = 0;
  char *text = malloc(capacity + 1);

  while (text != NULL) {
    ssize_t got = read(file, text + used, capacity - used);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      break;
    }
    if (got == 0) {
      text[used] = 0;
      *length = used;
      return text;
    }
    used += (size_t)got;
    if (used == capacity) {
      char *larger = capacity < MOST ? realloc(text, 2 * capacity + 1) : NULL;
      if (larger == NULL) {
        errno = EFBIG;
        break;
      }
      text = larger;
      capacity *= 2;
    }
  }
  free(text);
  return NULL;
}
