"""A minimal session with an installed upturn, run by CI outside the source tree on the runtime dependencies alone."""

import pathlib
import tempfile
from importlib.resources import files

import numpy as np

import upturn as up
from upturn.meta import ClassTransformation
from upturn.metrics import auuc

rng = np.random.default_rng(0)
X, treatment = rng.normal(size=(2000, 3)), rng.integers(0, 2, 2000)
y = (rng.random(2000) < 0.5 + 0.3 * treatment * np.sign(X[:, 0])).astype(int)
model = ClassTransformation().fit(X, y, treatment)
assert auuc(y, model.predict(X), treatment) > 0.05
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "model.upturn"
    model.save(path)
    assert np.array_equal(up.load(path).predict(X), model.predict(X))
page = files("upturn._report")
assert all(
    page.joinpath(*part).is_file() for part in (("page", "report.html"), ("vendor", "uplot", "uPlot.iife.min.js"))
)
print(f"upturn {up.__version__} works in {pathlib.Path(up.__file__).parent.parent.name}")
