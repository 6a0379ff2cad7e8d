"""`python -m skill_effectiveness.calibration`: one request on stdin, one line on stdout, an exit code.

Source: calibration.md section 3; bridge.md section 2.

It compiles the first file of `launch` from its bytes and hands over to it. What `python -m` runs before
(the empty `__init__` files and this one) takes the ordinary way; that is the stated limit of this door. The
loader comes from the frozen module behind `importlib.machinery`, which a search path cannot shadow.
"""

import sys
from _frozen_importlib_external import SourceFileLoader

if __name__ == "__main__":
    path = __file__.removesuffix("calibration/__main__.py") + "launch/start.py"
    loader = SourceFileLoader("skill_effectiveness.launch.start", path)
    source = loader.get_data(path)
    start = sys.modules[loader.name] = type(sys)(loader.name)
    start.__file__ = path
    exec(loader.source_to_code(source, path), vars(start))  # noqa: S102 - made from the bytes handed over
    sys.exit(start.enter("calibration", __file__, source))
