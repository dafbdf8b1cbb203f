"""The saved form of a model: a zip of one JSON manifest and plain ``.npy`` arrays. No pickle, nothing is executed.

::

    manifest.json       format, upturn's version, the model as a tree of values, a SHA-256 of every other member, and what
                        the command wrote about the data, for people
    array-00000.npy …   the arrays the tree points to
    foreign-00000.skops …   estimators of other libraries, which need the extra [skops]
    step-00000.skops …  steps of scikit-learn in a pipeline that ends in a model, likewise

Members are stored, not compressed, so no file can unpack to more than its own size. A file is written under a temporary
name and renamed when it is complete. Reading trusts nothing: names, sizes, checksums, dtypes, classes, parameters and
the state itself are checked, and whatever is wrong ends in a :class:`ModelFileError`.
"""

from upturn.persist._foreign import is_harmless
from upturn.persist._format import FORMAT, REGISTRY, ModelFileError
from upturn.persist._reading import Reader, load
from upturn.persist._writing import Writer, save

__all__ = ["FORMAT", "REGISTRY", "ModelFileError", "Reader", "Writer", "is_harmless", "load", "save"]
