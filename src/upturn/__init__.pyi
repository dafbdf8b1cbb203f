from upturn import base as base
from upturn import boosting as boosting
from upturn import datasets as datasets
from upturn import engines as engines
from upturn import ensemble as ensemble
from upturn import features as features
from upturn import meta as meta
from upturn import metrics as metrics
from upturn import model_selection as model_selection
from upturn import persist as persist
from upturn import plot as plot
from upturn import policy as policy
from upturn import svm as svm
from upturn import trees as trees
from upturn._check import check as check
from upturn._compile import compile as compile
from upturn._power import power as power
from upturn._report import report as report
from upturn._subgroups import factorial as factorial
from upturn._subgroups import subgroups as subgroups
from upturn._target import pack as pack
from upturn._target import unpack as unpack
from upturn.persist import ModelFileError as ModelFileError
from upturn.persist import load as load
from upturn.persist import save as save

__version__: str
