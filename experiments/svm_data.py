"""The data of the SVM experiments, read from the files in UPTURN_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd


def read(*parts):
    folder = os.environ.get("UPTURN_DATA")
    if not folder:
        raise SystemExit("set UPTURN_DATA to the folder that holds the data sets")
    return pd.read_csv(Path(folder, *parts), na_values=["?", "NA"], keep_default_na=True)


def hillstrom_women():
    frame = read("hillstrom", "hillstrom.csv.gz")
    frame = frame[frame["segment"] != "Mens E-Mail"].reset_index(drop=True)
    X = frame.drop(columns=["segment", "visit", "conversion", "spend"])
    return X, frame["visit"].to_numpy(), (frame["segment"] == "Womens E-Mail").to_numpy().astype(int)


def rhc():
    """Outcome: survival (not ``death``); treatment: catheterisation. 53 covariates of Table 6.5.1."""
    frame = read("rhc", "rhc.csv.gz")
    outcomes = ["Unnamed: 0", "sadmdte", "dschdte", "dthdte", "lstctdte", "death", "t3d30", "dth30", "swang1", "ptid"]
    y, t = (frame["death"] == "No").to_numpy().astype(int), (frame["swang1"] == "RHC").to_numpy().astype(int)
    return frame.drop(columns=outcomes), y, t


def survival(time):
    """Success: observed time of at least the pooled median, censoring ignored."""
    return (time >= np.median(time)).astype(int)


def veteran():
    frame = read("survival", "veteran.csv.gz")
    X = frame[["celltype", "karno", "diagtime", "age", "prior"]]
    return X, survival(frame["time"].to_numpy()), (frame["trt"] == 2).to_numpy().astype(int)


def burn():
    frame = read("kmsurv", "burn.csv.gz")
    return frame[[f"Z{i}" for i in range(2, 12)]], survival(frame["T3"].to_numpy()), frame["Z1"].to_numpy()


def hodg():
    frame = read("kmsurv", "hodg.csv.gz")
    X = frame[["dtype", "score", "wtime"]]
    return X, survival(frame["time"].to_numpy()), (frame["gtype"] == 1).to_numpy().astype(int)


UCI = {  # file, target, treatment condition (Table 6.2.1)
    "breast-cancer": ("breast_cancer", "Class", lambda f: f["menopause"].str.strip("'").str.lower() == "premeno"),
    "credit-a": ("credit_a", None, lambda f: (f.iloc[:, 6] != "v") & f.iloc[:, 6].notna()),
    "heart-c": ("heart_c", None, lambda f: f["sex"].astype(str).str.strip("'").str.lower().isin(["male", "1", "1.0"])),
    "primary-tumor": ("primary_tumor", "class", lambda f: f["sex"].astype(str).str.strip("'").str.lower() == "male"),
    "diabetes": ("diabetes", None, lambda f: f["insu"] > 79.8),
    "australian": ("australian", "class", lambda f: f["A1"].astype(float) == 1),
}


def uci(name):
    """A classification set split into groups by an attribute; attributes that depend on the split are removed."""
    file, target, condition = UCI[name]
    frame = read("uci", f"{file}.csv.gz")
    target = frame.columns[-1] if target is None else target
    t = condition(frame).to_numpy().astype(int)
    y = (frame[target] == frame[target].value_counts().idxmax()).to_numpy().astype(int)
    X = frame.drop(columns=[target])
    kept = []
    for column in X.columns:
        values = X[column]
        if pd.api.types.is_numeric_dtype(values):
            means = [values[t == g].mean() for g in (0, 1)]
            dependent = abs(means[1] - means[0]) > 0.25 * max(abs(means[0]), abs(means[1]))
        else:
            shares = [values[t == g].value_counts(normalize=True) for g in (0, 1)]
            dependent = shares[1].sub(shares[0], fill_value=0.0).abs().max() > 0.25
        if not dependent:
            kept.append(column)
    return X[kept], y, t
