"""The sixteen UCI data sets split into treatment and control by an attribute (Table 6.2.1 of Zaniewicz, 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from upturn.datasets._convert import split_by_attribute
from upturn.datasets._data import UpliftData
from upturn.datasets._reading import features, table

__all__ = ["UCI_SPLITS", "load_uci_split"]


@dataclass(frozen=True)
class UCISplit:
    """A row of Table 6.2.1: the condition of the treatment group, and attributes removed and in total."""

    file: str
    condition: tuple[str, str, Any]
    target: str
    removed: int
    total: int
    categorical: tuple[str, ...] = ()  # integer codes that are categories
    identifiers: tuple[str, ...] = ()  # named attributes that only number the rows; counted as removed
    outcomes: tuple[str, ...] = ()  # further outcomes, never a feature


_DERMATOLOGY = (
    *("erythema", "scaling", "definite_borders", "itching", "koebner_phenomenon", "polygonal_papules"),
    *("follicular_papules", "oral_mucosal_involvement", "knee_and_elbow_involvement", "scalp_involvement"),
    *("family_history", "melanin_incontinence", "eosinophils_in_the_infiltrate", "PNL_infiltrate"),
    *("fibrosis_of_the_papillary_dermis", "exocytosis", "acanthosis", "hyperkeratosis", "parakeratosis"),
    *("clubbing_of_the_rete_ridges", "elongation_of_the_rete_ridges", "thinning_of_the_suprapapillary_epidermis"),
    *("spongiform_pustule", "munro_microabcess", "focal_hypergranulosis", "disappearance_of_the_granular_layer"),
    *("vacuolisation_and_damage_of_basal_layer", "spongiosis", "saw-tooth_appearance_of_retes"),
    *("follicular_horn_plug", "perifollicular_parakeratosis", "inflammatory_monoluclear_inflitrate"),
    "band-like_infiltrate",
)

UCI_SPLITS: dict[str, UCISplit] = {
    "acute-inflammations": UCISplit(
        "acute_inflammations",
        ("Lumbar pain", "==", "yes"),
        "Inflammation of urinary bladder",
        *(2, 6),
        outcomes=("Nephritis of renal pelvis origin",),
    ),
    "australian": UCISplit(
        "australian", ("A1", "==", 1), "class", 2, 14, categorical=("A1", "A4", "A5", "A6", "A8", "A9", "A11", "A12")
    ),
    "breast-cancer": UCISplit("breast_cancer", ("menopause", "==", "premeno"), "Class", 2, 9),
    "credit-a": UCISplit("credit_a", ("A7", "!=", "v"), "class", 3, 15),
    "dermatology": UCISplit("dermatology", ("exocytosis", "<=", 1), "class", 16, 34, categorical=_DERMATOLOGY),
    "diabetes": UCISplit("diabetes", ("insu", ">", 79.8), "class", 2, 8),
    "heart-c": UCISplit("heart_c", ("sex", "==", "male"), "num", 2, 13),
    "hepatitis": UCISplit("hepatitis", ("STEROID", "==", "yes"), "Class", 1, 19),
    "hypothyroid": UCISplit("hypothyroid", ("on thyroxine", "==", "t"), "Class", 2, 29),
    "labor": UCISplit("labor", ("education-allowance", "==", "yes"), "class", 4, 16),
    "liver-disorders": UCISplit("liver_disorders", ("half-pint_drinks/day", "<", 2), "selector", 2, 6),
    "nursery": UCISplit("nursery", ("children", "in", ("3", "more")), "class", 1, 8),
    "primary-tumor": UCISplit("primary_tumor", ("sex", "==", "male"), "class", 2, 17),
    "splice": UCISplit("splice", ("attribute_1", "in", ("A", "G")), "Class", 2, 61, identifiers=("Instance_name",)),
    "winequality-red": UCISplit("winequality_red", ("total sulfur dioxide", "<", 46.47), "quality", 2, 11),
    "winequality-white": UCISplit("winequality_white", ("total sulfur dioxide", "<", 138.36), "quality", 3, 11),
}

_OTHER_NAMES = {
    "diagnosis": "acute-inflammations",
    "acute inflam.": "acute-inflammations",
    "breast cancer": "breast-cancer",
}


def load_uci_split(name: str, target: str | None = None) -> UpliftData:
    """Load a UCI data set made into an experiment by splitting it on an attribute (Table 6.2.1 of [1]_).

    Rows that meet the condition are the treatment group; the attribute and all that depend on it are removed by the
    rule of `upturn.datasets.split_by_attribute`; the majority class of the target is the success. These are
    benchmarks and not randomised experiments. The counts removed/total agree with the table for all sixteen.

    =================== ================================ ================================ ==========
    name                treatment group                  target                           removed
    =================== ================================ ================================ ==========
    acute-inflammations Lumbar pain == yes               Inflammation of urinary bladder  2 of 6
    australian          A1 == 1                          class                            2 of 14
    breast-cancer       menopause == premeno             Class                            2 of 9
    credit-a            A7 != v                          class                            3 of 15
    dermatology         exocytosis <= 1                  class                            16 of 34
    diabetes            insu > 79.8                      class                            2 of 8
    heart-c             sex == male                      num                              2 of 13
    hepatitis           STEROID == yes                   Class                            1 of 19
    hypothyroid         on thyroxine == t                Class                            2 of 29
    labor               education-allowance == yes       class                            4 of 16
    liver-disorders     half-pint_drinks/day < 2         selector                         2 of 6
    nursery             children in 3, more              class                            1 of 8
    primary-tumor       sex == male                      class                            2 of 17
    splice              attribute_1 in A, G              Class                            2 of 61
    winequality-red     total sulfur dioxide < 46.47     quality                          2 of 11
    winequality-white   total sulfur dioxide < 138.36    quality                          3 of 11
    =================== ================================ ================================ ==========

    Covariates kept: all others of the data set; ``data.details["removed"]`` names those removed, with the difference
    that was measured (``nan`` for the name of an instance). The integer codes 0 to 3 of dermatology and the coded
    attributes of australian are categories.

    Parameters
    ----------
    name : str
        A name of the table; "diagnosis" is another for acute-inflammations.
    target : str, optional
        Another outcome column of the file, for acute-inflammations "Nephritis of renal pelvis origin".

    References
    ----------
    .. [1] Ł. Zaniewicz, *Support Vector Machines for Uplift Modeling*, 2018, section 6.2.

    Examples
    --------
    >>> from upturn.datasets import load_uci_split
    >>> data = load_uci_split("breast-cancer")             # doctest: +SKIP
    >>> sorted(data.details["removed"])                    # doctest: +SKIP
    ['age', 'menopause']
    """
    split = UCI_SPLITS.get(_OTHER_NAMES.get(name, name)) if isinstance(name, str) else None
    if split is None:
        raise ValueError(f"load_uci_split got {name!r}; expected one of {list(UCI_SPLITS)}.")
    outcomes = (split.target, *split.outcomes)
    chosen = split.target if target is None else target
    if not isinstance(chosen, str) or chosen not in outcomes:
        raise ValueError(f"load_uci_split got target={target!r}; {name} has {list(outcomes)}.")
    loader = f"load_uci_split({name!r})"
    rows = table(split.file, loader, (split.condition[0], *outcomes), missing=("", "?"))
    columns = tuple(column for column in rows.columns if column not in (*outcomes, *split.identifiers))
    X, treatment, removed = split_by_attribute(features(rows, columns, split.categorical), split.condition)
    majority = rows[chosen].value_counts().index[0]
    return UpliftData(
        X,
        (rows[chosen] == majority).to_numpy().astype(np.int64),
        treatment,
        name=_OTHER_NAMES.get(name, name),
        description=f"UCI {split.file}, treatment group: {' '.join(map(str, split.condition))}; success: {chosen} is "
        f"{majority}. Not a randomised experiment.",
        details={"removed": {**dict.fromkeys(split.identifiers, float("nan")), **removed}},
    )
