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
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from estimators import ESTIMATORS, TRANSFORMERS
from saved import zipped
from upturn import persist
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
    fits += [(name, make, mixed) for name, make in MIXED.items()]
    fits += [(name, make, arms) for name, make in ARMS.items()]
    rare = y * (np.random.default_rng(0).random(N) < 0.3)
    fits += [("vanishing machine", lambda: UpliftSVM(p=1.0, ratio=3.0), (mixed[0], rare, treatment))]
    shops = mixed[0].assign(shop=[f"shop {i % 300}" for i in range(N)])  # more levels than an encoder keeps apart
    fits += [("many levels", lambda: ClassTransformation(), (shops, y, treatment))]
    few = slice(0, 60)
    square = (plain[few] @ plain[few].T, y[few], treatment[few])
    fits += [("precomputed", lambda: StandardSVM(kernel="precomputed", p=2.0), square)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make, data in fits:
            make().fit(*data).save(folder / "model")
            made[name] = read((folder / "model").read_bytes())
    assert {file.manifest["model"]["$model"] for file in made.values()} == set(persist.REGISTRY)
    assert made["vanishing machine"].manifest["model"]["state"]["fitted"]["vanishing"]
    return made
