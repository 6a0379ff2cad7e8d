"""`python -m skill_effectiveness.calibration`: one request on stdin, one line on stdout, an exit code.

Source: calibration.md section 3; bridge.md section 2.

It compiles the first file of `launch` from its bytes and hands over to it. What `python -m` runs before
(the empty `__init__` files and this one) takes the ordinary way; that is the stated limit of this door. The
loader comes from the frozen module behind `importlib.machinery`, which a search path cannot shadow.
"""

import _signal  # type: ignore[import-not-found] # what `signal` is made of
import os
import sys
from _frozen_importlib_external import SourceFileLoader

UNLOADABLE = (
    b'{"reason_code":"internal_error","request_id":"redacted-invalid-request-id",'
    b'"schema":"skill-effectiveness.reviewer-calibration.response.v1","status":"error"}\n'
)

if __name__ == "__main__":
    # Until the door hears signals itself, SIGINT ends it as the others do: without a traceback.
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    path = __file__.removesuffix("calibration/__main__.py") + "launch/start.py"
    try:
        loader = SourceFileLoader("skill_effectiveness.launch.start", path)
        source = loader.get_data(path)
        start = sys.modules[loader.name] = type(sys)(loader.name)
        start.__file__ = path
        exec(loader.source_to_code(source, path), vars(start))  # noqa: S102 - made from the bytes handed over
        code = start.enter("calibration", __file__, source)
    except Exception:  # noqa: BLE001 - damaged code can fail in any way, and one line is owed
        os.write(2, b"internal_error: The first code of this door cannot be loaded; restore it.\n")
        os.write(1, UNLOADABLE)
        code = 4
    sys.exit(code)
