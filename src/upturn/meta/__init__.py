"""Meta-learners: uplift models made from ordinary classifiers and regressors.

======================  ================================================================  ==========  =========
learner                 what it fits                                                      arms        responses
======================  ================================================================  ==========  =========
SLearner                one model of the outcome, the arm being a feature                 any number  yes
TLearner                a model of the outcome per arm (the double model)                 any number  yes
XLearner                outcome models, then the effects they impute in the other group   any number  no
DRLearner               cross-fitted outcome models and propensities, then their          any number  no
                        doubly robust effects
RLearner                cross-fitted mean outcome and propensity, then what is left       any number  no
ClassTransformation     one classifier of "treated success or control failure"            one         no
OneVsControl            a model of one arm per arm, each against control: machines, boosting   any number  no
TreatedOnly             the outcome of the treated alone: the baseline to beat            any number  no
======================  ================================================================  ==========  =========

Every learner takes raw tables. Without an estimator, the base of ClassTransformation is logistic regression, and that of
all others gradient boosting, which takes categories and missing values as they are; an estimator that does not, such as
logistic regression, gets levels as 0-1 columns, and means for missing numbers with a 0-1 column that says where they are.
"""

from upturn.meta._dr import DRLearner
from upturn.meta._one_vs_control import OneVsControl
from upturn.meta._r import RLearner
from upturn.meta._s import SLearner
from upturn.meta._t import TLearner
from upturn.meta._transformation import ClassTransformation
from upturn.meta._treated import TreatedOnly
from upturn.meta._x import XLearner

__all__ = [
    "ClassTransformation",
    "DRLearner",
    "OneVsControl",
    "RLearner",
    "SLearner",
    "TLearner",
    "TreatedOnly",
    "XLearner",
]
