"""The bridge: one JSON request on stdin, one line on stdout, an exit code; or `--stream` (docs/bridge.md).

It compiles the first file of `launch` from its bytes and hands over to it. The loader comes from the frozen
module behind `importlib.machinery`, which a search path cannot shadow.
"""

import _signal  # type: ignore[import-not-found] # what `signal` is made of
import os
import sys
from _frozen_importlib_external import SourceFileLoader

UNLOADABLE = (
    b'{"reason_code":"unsupported_evaluator","request_id":"redacted-invalid-request-id","result":{},'
    b'"runtime_binding":{},"schema":"skill-effectiveness.bridge.response.v1","status":"error"}\n'
)

if __name__ == "__main__":
    # Until the bridge hears signals itself, SIGINT ends it as the others do: without a traceback.
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    here = os.path.realpath(__file__)
    path = here.removesuffix("bridge.py") + "eval/skill_effectiveness/launch/start.py"
    try:
        loader = SourceFileLoader("skill_effectiveness.launch.start", path)
        source = loader.get_data(path)
        start = sys.modules[loader.name] = type(sys)(loader.name)
        start.__file__ = path
        exec(loader.source_to_code(source, path), vars(start))  # noqa: S102 - made from the bytes handed over
        code = start.enter("bridge", here, source)
    except Exception:  # noqa: BLE001 - damaged code can fail in any way, and one line is owed
        os.write(2, b"unsupported_evaluator: The first code of the bridge cannot be loaded; restore it.\n")
        os.write(1, UNLOADABLE)
        code = 4
    sys.exit(code)
