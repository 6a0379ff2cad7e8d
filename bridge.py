"""The bridge: one JSON request on stdin, one line on stdout, an exit code; or `--stream` (docs/bridge.md).

It compiles the first file of `launch` from its bytes and hands over to it. The loader comes from the frozen
module behind `importlib.machinery`, which a search path cannot shadow.
"""

import os
import sys
from _frozen_importlib_external import SourceFileLoader

if __name__ == "__main__":
    here = os.path.realpath(__file__)
    path = here.removesuffix("bridge.py") + "eval/skill_effectiveness/launch/start.py"
    loader = SourceFileLoader("skill_effectiveness.launch.start", path)
    source = loader.get_data(path)
    start = sys.modules[loader.name] = type(sys)(loader.name)
    start.__file__ = path
    exec(loader.source_to_code(source, path), vars(start))  # noqa: S102 - made from the bytes handed over
    sys.exit(start.enter("bridge", here, source))
