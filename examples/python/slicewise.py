"""libslicewise by ctypes: the calls that take and give JSON."""

import ctypes
import ctypes.util
import json
import os

OK = 0


class Error(Exception):
    """A call failed: `status` is the number of the table of codes."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def _load():
    name = os.environ.get("SLICEWISE_LIBRARY") or ctypes.util.find_library("slicewise") or "libslicewise.so.0"
    library = ctypes.CDLL(name)
    engine, text = ctypes.c_void_p, ctypes.c_char_p
    out = ctypes.POINTER(ctypes.c_void_p)
    library.slicewise_engine_new.restype = engine
    library.slicewise_engine_free.argtypes = [engine]
    library.slicewise_engine_last_error.argtypes = [engine]
    library.slicewise_engine_last_error.restype = text
    library.slicewise_engine_load.argtypes = [engine, text]
    library.slicewise_engine_decide_json.argtypes = [engine, text, out]
    library.slicewise_engine_snapshot.argtypes = [engine, out]
    library.slicewise_string_free.argtypes = [ctypes.c_void_p]
    return library


_LIBRARY = _load()


class Engine:
    """A fleet with what runs on it."""

    def __init__(self, state):
        self._engine = _LIBRARY.slicewise_engine_new()
        if not self._engine:
            raise MemoryError
        self._check(_LIBRARY.slicewise_engine_load(self._engine, json.dumps(state).encode()))

    def __del__(self):
        _LIBRARY.slicewise_engine_free(self._engine)

    def _check(self, status):
        if status != OK:
            raise Error(status, _LIBRARY.slicewise_engine_last_error(self._engine).decode())

    def _answer(self, call, *arguments):
        out = ctypes.c_void_p()
        self._check(call(self._engine, *arguments, ctypes.byref(out)))
        try:
            return json.loads(ctypes.string_at(out))
        finally:
            _LIBRARY.slicewise_string_free(out)

    def decide(self, request):
        """The decision on a request, and what would help; changes nothing."""
        return self._answer(_LIBRARY.slicewise_engine_decide_json, json.dumps(request).encode())

    def snapshot(self):
        """The state as a document."""
        return self._answer(_LIBRARY.slicewise_engine_snapshot)
