"""Sound files of every estimator, in the variants whose state differs: what an attacker starts from."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC

from estimators import ESTIMATORS, TRANSFORMERS
from saved import zipped
from upturn import pack, persist
from upturn.boosting import UpliftBagging, UpliftBoosting
from upturn.ensemble import UpliftAuto, UpliftStacking
from upturn.features import FilterSelector, UMODLDiscretizer, UMODLSelector
from upturn.meta import ClassTransformation, DRLearner, RLearner, SLearner, TLearner, TreatedOnly, XLearner
from upturn.policy import UpliftCalibrator
from upturn.svm import StandardSVM, UpliftSVM
from upturn.trees import UpliftForest, UpliftTree

N = 400

# What differs from tests/estimators.py in the state it saves: kernels, propensities, bases of other libraries, members of
# members. They are fitted to the table of mixed kinds.
MIXED = {
    "boosted T-learner": lambda: TLearner(random_state=0),
    "boosted S-learner": lambda: SLearner(random_state=0),
    "X-learner, propensities of columns": lambda: XLearner(propensity="chance", random_state=0),
    "X-learner, propensity of a classifier": lambda: XLearner(LogisticRegression(), propensity=LogisticRegression()),
    "DR-learner, shares": lambda: DRLearner(propensity="shares", cv=2, random_state=0),
    "R-learner over a pipeline": lambda: RLearner(
        make_pipeline(SimpleImputer(), StandardScaler(), LinearRegression()), cv=2, random_state=0
    ),
    "S-learner with interactions": lambda: SLearner(Ridge(), interactions=True),
    "class transformation over scores": lambda: ClassTransformation(LinearSVC()),
    "treated only, naive Bayes": lambda: TreatedOnly(GaussianNB()),
    "rbf": lambda: UpliftSVM(kernel="rbf", p=1.5, n_components=30, random_state=0),
    "poly": lambda: StandardSVM(kernel="poly", degree=2, coef0=1.0, p=2.0, n_components=20, random_state=0),
    "forest with groups": lambda: UpliftForest(n_estimators=6, ci_group_size=2, random_state=0),
    "pruned tree": lambda: UpliftTree(prune=True, max_depth=3, random_state=0),
    "boosting of learners": lambda: UpliftBoosting(ClassTransformation(), n_estimators=3, random_state=0),
    "bagging of machines": lambda: UpliftBagging(StandardSVM(p=2.0), n_estimators=2, random_state=0),
    "one-hot": lambda: UMODLDiscretizer(encode="onehot"),
    "effects": lambda: UMODLDiscretizer(encode="effect"),
    "selector of likelihood ratios": lambda: FilterSelector(criterion="lr", k=2),
    "selector with fillers": lambda: UMODLSelector(min_features=3),
    "calibrated forest": lambda: UpliftCalibrator(UpliftForest(n_estimators=3, random_state=0), cv=2, random_state=0),
    "linear calibration of boosting": lambda: UpliftCalibrator(
        UpliftBoosting(n_estimators=3, random_state=0), method="linear", cv=2, random_state=0
    ),
}
# Several arms.
ARMS = {
    "forest of arms": lambda: UpliftForest(n_estimators=3, random_state=0),
    "S-learner of arms": lambda: SLearner(Ridge(), interactions=True),
    "X-learner of arms": lambda: XLearner(random_state=0),
    "bagging of arms": lambda: UpliftBagging(n_estimators=2, random_state=0),
    "discretizer of arms": lambda: UMODLDiscretizer(encode="effect"),
    "stack of arms": lambda: UpliftStacking(
        {"T": TLearner(Ridge()), "tree": UpliftTree(max_depth=2)}, estimator=Ridge(), cv=2, ridge=0.1, random_state=0
    ),
    "choice of arms": lambda: UpliftAuto(
        "low",
        estimators={"T": TLearner(Ridge()), "tree": UpliftTree(max_depth=2)},
        estimator=Ridge(),
        cv=3,
        random_state=0,
    ),
    "calibrator of arms": lambda: UpliftCalibrator(TLearner(Ridge()), cv=2, random_state=0),
}
# Pipelines of scikit-learn that end in a model, fitted to the table of mixed kinds: every step that needs no trust.
NUMBERS = ["age", "visits", "chance"]
PIPELINES = {
    "pipeline of columns": lambda: make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore", drop="if_binary", sparse_output=False), ["channel"]),
            (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "visits"]),
            remainder="passthrough",
        ),
        UpliftSVM(C=0.1),
    ),
    "pipeline of a sparse table": lambda: make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["channel"]),
            (make_pipeline(SimpleImputer(strategy="median"), MaxAbsScaler()), ["age", "visits"]),
            sparse_threshold=1.0,
        ),
        TLearner(LogisticRegression()),
    ),
    "pipeline of levels": lambda: make_pipeline(
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), "passthrough", UpliftTree(random_state=0)
    ),
    "pipeline of scalers": lambda: make_pipeline(
        make_column_transformer((SimpleImputer(strategy="most_frequent"), NUMBERS)),
        make_pipeline(MinMaxScaler(clip=True), RobustScaler(), FunctionTransformer()),
        VarianceThreshold(),
        PCA(2, whiten=True),
        UpliftTree(max_depth=2, random_state=0),
    ),
    "pipeline of ours": lambda: make_pipeline(
        make_column_transformer((SimpleImputer(strategy="constant", fill_value=0.0), NUMBERS), ("drop", ["channel"])),
        UMODLDiscretizer(),
        make_pipeline(None, UpliftForest(n_estimators=2, random_state=0)),
    ),
}
# Fitted to a sparse matrix.
SPARSE = {
    "sparse machine": lambda: UpliftSVM(C=0.1),
    "sparse learner": lambda: TLearner(LogisticRegression()),
    "sparse learner of rows": lambda: XLearner(Ridge(), propensity=LogisticRegression()),
}
# Bases that hold something else: classes, priors, constants.
BASES = {
    "T-learner of dummies": lambda: TLearner(DummyRegressor(strategy="quantile", quantile=0.3)),
    "class transformation over a dummy": lambda: ClassTransformation(DummyClassifier()),
    "treated only, scaled": lambda: TreatedOnly(make_pipeline(RobustScaler(), MinMaxScaler(), LogisticRegression())),
}


@dataclass(frozen=True)
class File:
    """A saved model: its manifest without checksums, and its other members."""

    manifest: dict
    members: dict[str, bytes]

    def pack(self) -> bytes:
        """The bytes of the file, with checksums that are right."""
        digests = {name: sha256(content).hexdigest() for name, content in self.members.items()}
        text = json.dumps({**self.manifest, "members": digests})
        return zipped([("manifest.json", text), *self.members.items()])


def experiment(n_arms=1):
    """A table of numbers, levels, holes and a column of probabilities, with an effect to find."""
    rng = np.random.default_rng(n_arms)
    X = pd.DataFrame(
        {
            "age": rng.normal(50, 10, N),
            "visits": np.where(rng.random(N) < 0.2, np.nan, rng.integers(0, 6, N)),
            "channel": rng.choice(np.array(["web", "phone", "shop", "mail"], dtype=object), N),
            "chance": rng.uniform(0.3, 0.6, N),
        }
    )
    arm = rng.integers(0, n_arms + 1, N)
    y = rng.random(N) < 0.2 + 0.6 * (arm > 0) * X["channel"].isin(["web", "mail"]).to_numpy()
    return X, y.astype(int), np.array(["control", "a", "b"], dtype=object)[arm]


def read(content):
    """The parts of a file."""
    archive = zipfile.ZipFile(io.BytesIO(content))
    members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    del manifest["members"]
    return File(manifest, members)


def files(folder):
    """Every variant, fitted and saved: {name: File}."""
    mixed, arms = experiment(), experiment(2)
    _, y, treatment = mixed
    # Numbers alone, of which the first says whom the treatment helps.
    plain = np.random.default_rng(0).normal(size=(N, 3))
    plain[:, 0] += 2.0 * mixed[0]["channel"].isin(["web", "mail"])
    made = {}
    fits = [(name, make, (plain, y, treatment)) for name, make in (ESTIMATORS | TRANSFORMERS).items()]
    fits += [(name, make, mixed) for name, make in (MIXED | BASES).items()]
    fits += [(name, make, arms) for name, make in ARMS.items()]
    rare = y * (np.random.default_rng(0).random(N) < 0.3)
    fits += [("vanishing machine", lambda: UpliftSVM(p=1.0, ratio=3.0), (mixed[0], rare, treatment))]
    shops = mixed[0].assign(shop=[f"shop {i % 300}" for i in range(N)])  # more levels than an encoder keeps apart
    fits += [("many levels", lambda: ClassTransformation(), (shops, y, treatment))]
    few = slice(0, 60)
    square = (plain[few] @ plain[few].T, y[few], treatment[few])
    fits += [("precomputed", lambda: StandardSVM(kernel="precomputed", p=2.0), square)]
    thin = sp.csr_matrix(np.where(np.abs(plain) > 0.7, plain, 0.0))
    fits += [(name, make, (thin, y, treatment)) for name, make in SPARSE.items()]
    fits += [(name, make, (mixed[0], pack(y, treatment))) for name, make in PIPELINES.items()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make, data in fits:
            persist.save(make().fit(*data), folder / "model")
            made[name] = read((folder / "model").read_bytes())
    assert {file.manifest["model"].get("$model", "Pipeline") for file in made.values()} == {
        "Pipeline",
        *persist.REGISTRY,
    }
    assert made["vanishing machine"].manifest["model"]["state"]["fitted"]["vanishing"]
    return made
